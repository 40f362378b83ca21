//! The store's tree, real or implicit, and its contents.

use varve_access::Op;

use super::btree::BTree;
use super::implicit::Implicit;
use super::store::Store;
use varve_access::random::mix;

/// One of the two trees.
pub enum Tree {
    /// The tree and one word per item.
    Real(BTree, Vec<u64>),
    /// The computed one, without values.
    Implicit(Implicit),
}

/// The key of a record: scattered over all keys, no two alike.
pub fn key_of(record: u64) -> u64 {
    mix(record)
}

/// An item's word after loading.
pub fn first_value(record: u64) -> u64 {
    mix(!record)
}

impl Tree {
    /// Loads records `0..items` at once, without saying how.
    pub fn load(&mut self, items: u64, store: &Store) {
        let Tree::Real(tree, words) = self else {
            return;
        };
        let mut ops = Vec::with_capacity(64);
        for record in 0..items {
            words[record as usize] = first_value(record);
            tree.insert(key_of(record), record as u32, store, &mut ops);
            ops.clear();
        }
    }

    /// Nodes so far.
    pub fn nodes(&self) -> u64 {
        match self {
            Tree::Real(tree, _) => tree.nodes(),
            Tree::Implicit(tree) => tree.nodes(),
        }
    }

    /// Levels, leaves included.
    pub fn levels(&self) -> u32 {
        match self {
            Tree::Real(tree, _) => tree.levels(),
            Tree::Implicit(tree) => tree.levels(),
        }
    }

    /// Walks to a record that was inserted. The error names the record that a real tree found instead.
    pub fn find(&self, record: u64, store: &Store, out: &mut Vec<Op>) -> Result<(), String> {
        match self {
            Tree::Real(tree, _) => {
                let found = tree.get(key_of(record), store, out);
                if found != Some(record as u32) {
                    return Err(format!("ycsb: record {record} leads to item {found:?}"));
                }
            }
            Tree::Implicit(tree) => {
                tree.walk(record, store, out);
            }
        }
        Ok(())
    }

    /// Inserts a record, whose item has its number.
    pub fn insert(&mut self, record: u64, store: &Store, out: &mut Vec<Op>) {
        match self {
            Tree::Real(tree, words) => {
                words[record as usize] = first_value(record);
                tree.insert(key_of(record), record as u32, store, out);
            }
            Tree::Implicit(tree) => tree.insert(record, store, out),
        }
    }

    /// Changes the value of a record, where there are values.
    #[inline]
    pub fn change(&mut self, record: u64, by: u64) {
        if let Tree::Real(_, words) = self {
            let word = &mut words[record as usize];
            *word = word.wrapping_add(by);
        }
    }

    /// A number that changes with the value or place of any of the first `items` items; `None` where there are none.
    pub fn checksum(&self, items: u64) -> Option<u64> {
        let Tree::Real(_, words) = self else {
            return None;
        };
        let words = words[..items as usize].iter().enumerate();
        let mixed = words.map(|(record, &word)| mix(word ^ mix(record as u64)));
        Some(mixed.fold(0, u64::wrapping_add))
    }
}
