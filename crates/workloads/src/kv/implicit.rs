//! A B+-tree that is computed, not stored: for a thousand million keys, whose nodes would not fit the host.
//!
//! It has the shape that random insertion gives a real tree of as many keys: every node holds the
//! [mean](crate::node::mean_entries) number of entries, and nodes lie in the pool in random order, since leaves split in random
//! order. What it leaves out: the variation of fill between nodes (so a tree whose size is close to a change of
//! depth may have one level more or fewer in part of the real one), new leaves, which are written when inserts have
//! filled one but not read later, and splits of inner nodes.

use varve_machine::Op;

use super::store::Store;
use crate::node::{self, CAPACITY, mean_entries};
use crate::rng::{Permutation, mix};

/// The tree over keys whose order is a random permutation of their record numbers.
#[derive(Clone, Debug)]
pub struct Implicit {
    keys: u64,
    /// Nodes on each level, the leaves first, and where their numbers start in the pool's permutation.
    levels: Vec<Level>,
    ranks: Permutation,
    places: Permutation,
    /// Mean number of entries in a node, and its inverse.
    mean: f64,
    per_node: f64,
    /// Nodes so far, those of the start and those added by inserts; entries since the last of them.
    nodes: u64,
    unsplit: f64,
}

/// Deepest tree: more keys than any address space.
const DEEPEST: usize = 24;

/// Nodes from a leaf to the root and the place in each; those beyond the root are unused.
type Path = [(u64, usize); DEEPEST];

/// Levels of up to this many nodes keep their places in a table (64 KiB), which is quicker than computing them.
const TABLED: u64 = 8192;

#[derive(Clone, Debug)]
struct Level {
    first: u64,
    /// Places of the level's nodes; empty on the large levels.
    table: Vec<u64>,
}

impl Implicit {
    /// A tree of `keys` keys (at least 1).
    pub fn new(keys: u64, seed: u64) -> Implicit {
        let mean = mean_entries();
        let per_node = 1.0 / mean;
        let mut levels = Vec::new();
        let (mut count, mut first) = (keys, 0);
        loop {
            count = ((count - 1) as f64 * per_node) as u64 + 1;
            levels.push(Level {
                first,
                table: vec![0; if count <= TABLED { count as usize } else { 0 }],
            });
            first += count;
            if count == 1 {
                break;
            }
        }
        let places = Permutation::new(first, mix(seed ^ 2));
        for level in &mut levels {
            for (node, place) in level.table.iter_mut().enumerate() {
                *place = places.at(level.first + node as u64);
            }
        }
        Implicit {
            keys,
            levels,
            ranks: Permutation::new(keys, mix(seed ^ 1)),
            places,
            mean,
            per_node,
            nodes: first,
            unsplit: 0.0,
        }
    }

    /// Nodes so far.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Levels, leaves included.
    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Walks to the leaf of record `number`; returns the nodes on the way, the leaf first, and the place in each.
    #[inline]
    pub fn walk(&self, number: u64, store: &Store, out: &mut Vec<Op>) -> Path {
        // A record inserted later has a place among the others by its hash.
        let rank = if number < self.keys {
            self.ranks.at(number)
        } else {
            self.hashed(number)
        };
        let mut path = [(0u64, 0usize); DEEPEST];
        let mut entry = rank;
        for (step, level) in path.iter_mut().zip(&self.levels) {
            let node = (entry as f64 * self.per_node) as u64;
            // Rounding may put an entry at the boundary of two nodes just before the first slot.
            let slot = entry.saturating_sub((node as f64 * self.mean) as u64);
            let place = match level.table.get(node as usize) {
                Some(&place) => place,
                None => self.places.at(level.first + node),
            };
            *step = (place, (slot as usize).min(CAPACITY - 1));
            entry = node;
        }
        for &(node, slot) in path[..self.levels.len()].iter().rev() {
            node::search(store.nodes.at(node), slot, out);
        }
        path
    }

    /// Inserts record `number`: the walk, the place in the leaf, and a split whenever inserts have filled another leaf.
    pub fn insert(&mut self, number: u64, store: &Store, out: &mut Vec<Op>) {
        let path = self.walk(number, store, out);
        let (leaf, slot) = path[0];
        let count = self.mean as usize;
        self.unsplit += 1.0;
        if self.unsplit >= self.mean {
            self.unsplit -= self.mean;
            node::split(store.nodes.at(leaf), store.nodes.at(self.nodes), out);
            self.nodes += 1;
            if self.levels.len() > 1 {
                let (parent, slot) = path[1];
                node::place(store.nodes.at(parent), slot, count.max(slot), out);
            }
        }
        node::place(store.nodes.at(leaf), slot, count.max(slot), out);
    }

    fn hashed(&self, number: u64) -> u64 {
        ((u128::from(mix(number)) * u128::from(self.keys)) >> 64) as u64
    }
}
