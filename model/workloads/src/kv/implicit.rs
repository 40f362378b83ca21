//! A B+-tree that is computed, not stored: for a thousand million keys, whose nodes would not fit the host.
//!
//! It has the shape that random insertion gives a real tree of as many keys: every node holds the
//! [mean](crate::node::mean_entries) number of entries, and nodes lie in the pool in random order, since leaves split
//! in random order. Left out: the variation of fill between nodes (so a tree whose size is close to a change of depth
//! may have one level more or fewer in part of the real one), new leaves, which are written when inserts have filled
//! one but not read later, and splits of inner nodes.

use varve_access::Op;

use super::store::Store;
use crate::node::{self, CAPACITY, mean_entries};
use varve_access::random::{Permutation, mix};

/// The tree over keys whose order is a random permutation of their record numbers.
#[derive(Clone, Debug)]
pub struct Implicit {
    keys: u64,
    /// Nodes on each level, the leaves first, and where their numbers start in the pool's permutation.
    levels: Vec<Level>,
    ranks: Permutation,
    places: Permutation,
    /// Mean number of entries in a node.
    mean: f64,
    /// Nodes so far, those of the start and those added by inserts; entries since the last of them.
    nodes: u64,
    unsplit: f64,
}

/// Levels of up to this many nodes keep their places in a table (64 KiB), which is quicker than computing them.
const TABLED: u64 = 8192;

#[derive(Clone, Debug)]
struct Level {
    first: u64,
    /// Nodes per key.
    per_key: f64,
    /// Places of the level's nodes; empty on the large levels.
    table: Vec<u64>,
}

impl Implicit {
    /// A tree of `keys` keys (at least 1).
    pub fn new(keys: u64, seed: u64) -> Implicit {
        let mean = mean_entries();
        let mut levels = Vec::new();
        let (mut per_key, mut first) = (1.0, 0);
        loop {
            per_key /= mean;
            let count = ((keys - 1) as f64 * per_key) as u64 + 1;
            let table = vec![0; if count <= TABLED { count as usize } else { 0 }];
            levels.push(Level {
                first,
                per_key,
                table,
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

    /// Walks to the leaf of record `number`.
    #[inline]
    pub fn walk(&self, number: u64, store: &Store, out: &mut Vec<Op>) {
        let rank = self.rank(number);
        for level in (0..self.levels.len()).rev() {
            let (node, slot) = self.step(rank, level);
            node::search(store.nodes.at(node), slot, out);
        }
    }

    /// Inserts record `number`: the walk, the place in the leaf, and a split whenever inserts have filled another leaf.
    pub fn insert(&mut self, number: u64, store: &Store, out: &mut Vec<Op>) {
        self.walk(number, store, out);
        let rank = self.rank(number);
        let (leaf, slot) = self.step(rank, 0);
        let count = self.mean as usize;
        self.unsplit += 1.0;
        if self.unsplit >= self.mean {
            self.unsplit -= self.mean;
            node::split(store.nodes.at(leaf), store.nodes.at(self.nodes), out);
            self.nodes += 1;
            if self.levels.len() > 1 {
                let (parent, slot) = self.step(rank, 1);
                node::place(store.nodes.at(parent), slot, count.max(slot), out);
            }
        }
        node::place(store.nodes.at(leaf), slot, count.max(slot), out);
    }

    /// The node of `level` on the way to the key of `rank`, and the place in it.
    #[inline(always)]
    fn step(&self, rank: u64, level: usize) -> (u64, usize) {
        let this = &self.levels[level];
        let node = (rank as f64 * this.per_key) as u64;
        let entry = match level {
            0 => rank,
            _ => (rank as f64 * self.levels[level - 1].per_key) as u64,
        };
        // Rounding may put an entry at the boundary of two nodes just before the first slot.
        let slot = entry.saturating_sub((node as f64 * self.mean) as u64) as usize;
        let place = match this.table.get(node as usize) {
            Some(&place) => place,
            None => self.places.at(this.first + node),
        };
        (place, slot.min(CAPACITY - 1))
    }

    /// Where a record's key stands among all: anywhere; for one that was inserted later, by its hash.
    #[inline(always)]
    fn rank(&self, number: u64) -> u64 {
        if number < self.keys {
            self.ranks.at(number)
        } else {
            self.hashed(number)
        }
    }

    fn hashed(&self, number: u64) -> u64 {
        ((u128::from(mix(number)) * u128::from(self.keys)) >> 64) as u64
    }
}
