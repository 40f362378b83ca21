//! B+-tree indexes over dense keys: which nodes a search visits is computed from the key's rank.

use varve_access::Op;

use crate::layout::{Array, Layout};
use crate::node::{self, CAPACITY, NODE};

const FANOUT: u64 = CAPACITY as u64;

/// An index loaded in the order of its keys: full leaves one after another, then the levels above.
#[derive(Clone, Debug)]
pub struct Index {
    nodes: Array,
    /// Number of the first node of each level, the leaves first.
    levels: Vec<u64>,
}

impl Index {
    /// An index over `entries` keys (at least 1).
    pub fn new(layout: &mut Layout, name: &str, entries: u64) -> Index {
        let (mut levels, mut total, mut count) = (Vec::new(), 0, entries);
        loop {
            count = count.div_ceil(FANOUT);
            levels.push(total);
            total += count;
            if count == 1 {
                break;
            }
        }
        Index {
            nodes: layout.array(name, total, NODE),
            levels,
        }
    }

    /// Memory of the index.
    pub fn array(&self) -> Array {
        self.nodes
    }

    /// Searches for the key of `rank` from the root down.
    pub fn walk(&self, rank: u64, out: &mut Vec<Op>) {
        self.descend(rank, out);
        node::search(self.leaf(rank), (rank % FANOUT) as usize, out);
    }

    /// Searches the inner nodes on the way to the leaf of `rank`.
    fn descend(&self, rank: u64, out: &mut Vec<Op>) {
        let mut path = [(0u64, 0usize); 20];
        let mut entry = rank / FANOUT;
        let inner = &self.levels[1..];
        for (step, first) in path.iter_mut().zip(inner) {
            *step = (
                self.nodes.at(first + entry / FANOUT),
                (entry % FANOUT) as usize,
            );
            entry /= FANOUT;
        }
        for &(address, slot) in path[..inner.len()].iter().rev() {
            node::search(address, slot, out);
        }
    }

    /// Address of the leaf that holds `rank`.
    pub fn leaf(&self, rank: u64) -> u64 {
        self.nodes.at(rank / FANOUT)
    }
}

/// An index whose keys fall into groups (districts) that grow at their ends: orders, order lines.
#[derive(Clone, Debug)]
pub struct Growing {
    index: Index,
    /// Entries of a group at the start, and the same with its last leaf filled up.
    initial: u64,
    padded: u64,
    /// Leaves of each group beyond the initial ones.
    tails: Vec<Vec<u64>>,
}

impl Growing {
    /// An index over `groups` groups of `initial` keys each.
    pub fn new(layout: &mut Layout, name: &str, groups: u64, initial: u64) -> Growing {
        let padded = initial.next_multiple_of(FANOUT);
        let index = Index::new(layout, name, groups * padded);
        Growing {
            index,
            initial,
            padded,
            tails: vec![Vec::new(); groups as usize],
        }
    }

    /// Memory of the initial index.
    pub fn array(&self) -> Array {
        self.index.array()
    }

    /// Keys of a group at the start.
    pub fn initial(&self) -> u64 {
        self.initial
    }

    /// Searches for key number `rank` of `group`.
    pub fn walk(&self, group: usize, rank: u64, out: &mut Vec<Op>) {
        self.index
            .descend(group as u64 * self.padded + rank.min(self.initial - 1), out);
        node::search(self.leaf(group, rank), (rank % FANOUT) as usize, out);
    }

    /// Goes on to the next leaf in a scan that has reached the first key of that leaf.
    pub fn step(&self, group: usize, rank: u64, out: &mut Vec<Op>) {
        node::search(self.leaf(group, rank), 0, out);
    }

    /// Is `rank` the first key of its leaf?
    pub fn starts_leaf(rank: u64) -> bool {
        rank.is_multiple_of(FANOUT)
    }

    /// Appends key number `rank`, the next one of `group`. `fresh` gives the address of a new node when one is needed.
    pub fn append(
        &mut self,
        group: usize,
        rank: u64,
        fresh: impl FnOnce() -> u64,
        out: &mut Vec<Op>,
    ) {
        self.walk(group, rank - 1, out);
        let slot = (rank % FANOUT) as usize;
        if rank >= self.padded && slot == 0 {
            let (last, leaf) = (self.leaf(group, rank - 1), fresh());
            node::split(last, leaf, out);
            self.tails[group].push(leaf);
        }
        node::place(self.leaf(group, rank), slot, slot, out);
    }

    /// Takes key number `rank` out of its leaf.
    pub fn remove(&self, group: usize, rank: u64, out: &mut Vec<Op>) {
        node::place(self.leaf(group, rank), 0, CAPACITY - 1, out);
    }

    fn leaf(&self, group: usize, rank: u64) -> u64 {
        match rank.checked_sub(self.padded) {
            None => self.index.leaf(group as u64 * self.padded + rank),
            Some(beyond) => self.tails[group][(beyond / FANOUT) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_walk_goes_from_the_root_to_the_leaf_of_the_rank() {
        let mut layout = Layout::new();
        let index = Index::new(&mut layout, "index", 15 * 15 * 15 + 1);
        let root = index.array().at(index.array().len - 1);
        let mut leaves = BTreeSet::new();
        for rank in 0..15 * 15 * 15 {
            let mut out = Vec::new();
            index.walk(rank, &mut out);
            assert_eq!(out.len(), 8);
            assert_eq!(out[0].addr, root);
            leaves.insert(out[6].addr);
            assert_eq!(out[6].addr, index.leaf(rank));
        }
        assert_eq!(leaves.len(), 225);
    }

    #[test]
    fn groups_grow_into_fresh_leaves() {
        let mut layout = Layout::new();
        let mut index = Growing::new(&mut layout, "index", 3, 20);
        let mut fresh = (0..).map(|number| 0x7000_0000 + number * NODE);
        let mut out = Vec::new();
        // 20 keys leave room for 10 more in the second leaf; then every 15 keys need a fresh one.
        for rank in 20..75 {
            index.append(1, rank, || fresh.next().unwrap(), &mut out);
        }
        assert_eq!(index.tails[1], [0x7000_0000, 0x7000_0100, 0x7000_0200]);
        assert!(index.tails[0].is_empty() && index.tails[2].is_empty());
        out.clear();
        index.walk(1, 46, &mut out);
        assert_eq!(out[out.len() - 2].addr, 0x7000_0100);
        out.clear();
        index.walk(2, 0, &mut out);
        assert_eq!(out[out.len() - 2].addr, index.array().at(4));
    }
}
