//! A real B+-tree over 64-bit keys, whose every step also reports the memory that it touched.

use varve_access::Op;

use super::store::Store;
use crate::node::{self, CAPACITY};

/// The tree: nodes in a pool, addressed by number in the order of their allocation.
#[derive(Clone, Debug, Default)]
pub struct BTree {
    nodes: Vec<Node>,
    root: u32,
    levels: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// A leaf's keys; in an inner node `keys[i]` is the smallest key under child `i + 1`.
    keys: [u64; CAPACITY],
    /// A leaf's items, an inner node's children.
    links: [u32; CAPACITY],
    count: u8,
}

const EMPTY: Node = Node {
    keys: [0; CAPACITY],
    links: [0; CAPACITY],
    count: 0,
};

/// Deepest tree: 8^24 keys, more than any address space.
const DEEPEST: usize = 24;

/// Entries of either half after a split.
const HALF: usize = CAPACITY / 2 + 1;

impl BTree {
    /// An empty tree.
    pub fn new() -> BTree {
        BTree {
            nodes: vec![EMPTY],
            root: 0,
            levels: 1,
        }
    }

    /// Nodes so far.
    pub fn nodes(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Levels, leaves included.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The item of `key`. The accesses of the walk are appended to `out`.
    #[inline]
    pub fn get(&self, key: u64, store: &Store, out: &mut Vec<Op>) -> Option<u32> {
        let mut number = self.root;
        for _ in 1..self.levels {
            let node = &self.nodes[number as usize];
            let slot = node.child(key);
            node::search(store.nodes.at(u64::from(number)), slot, out);
            number = node.links[slot];
        }
        let leaf = &self.nodes[number as usize];
        let slot = leaf.position(key);
        node::search(
            store.nodes.at(u64::from(number)),
            slot.min(CAPACITY - 1),
            out,
        );
        let found = slot < leaf.count as usize && leaf.keys[slot] == key;
        found.then(|| leaf.links[slot])
    }

    /// Makes `key` lead to `item`; returns the item that it led to before. The accesses are appended to `out`.
    pub fn insert(&mut self, key: u64, item: u32, store: &Store, out: &mut Vec<Op>) -> Option<u32> {
        let mut path = [(0u32, 0u8); DEEPEST];
        let mut number = self.root;
        for step in path.iter_mut().take(self.levels as usize - 1) {
            let node = &self.nodes[number as usize];
            let slot = node.child(key);
            node::search(store.nodes.at(u64::from(number)), slot, out);
            *step = (number, slot as u8);
            number = node.links[slot];
        }
        let leaf = &mut self.nodes[number as usize];
        let slot = leaf.position(key);
        node::search(
            store.nodes.at(u64::from(number)),
            slot.min(CAPACITY - 1),
            out,
        );
        if slot < leaf.count as usize && leaf.keys[slot] == key {
            let old = std::mem::replace(&mut leaf.links[slot], item);
            node::place(store.nodes.at(u64::from(number)), slot, slot, out);
            return Some(old);
        }
        let mut new = self.put(number, slot, key, item, true, store, out);
        for level in (0..self.levels as usize - 1).rev() {
            let (key, child) = new?;
            let (parent, slot) = path[level];
            new = self.put(parent, slot as usize, key, child, false, store, out);
        }
        if let Some((key, child)) = new {
            self.grow(key, child, store, out);
        }
        None
    }

    /// Puts an entry into a node, a leaf's at `slot`, an inner node's after child `slot`. Returns the smallest key and the
    /// number of the new sibling when the node had to be split.
    #[expect(clippy::too_many_arguments, reason = "an entry and where it goes")]
    fn put(
        &mut self,
        number: u32,
        slot: usize,
        key: u64,
        link: u32,
        leaf: bool,
        store: &Store,
        out: &mut Vec<Op>,
    ) -> Option<(u64, u32)> {
        // In both kinds of nodes the new key goes to `slot`; a child goes one place further than its key.
        let link_slot = slot + usize::from(!leaf);
        let count = self.nodes[number as usize].count as usize;
        if count < CAPACITY {
            self.nodes[number as usize].place(slot, key, link_slot, link, leaf);
            node::place(store.nodes.at(u64::from(number)), link_slot, count, out);
            return None;
        }
        let sibling = self.nodes.len() as u32;
        node::split(
            store.nodes.at(u64::from(number)),
            store.nodes.at(u64::from(sibling)),
            out,
        );
        // Sixteen entries, the new one included, become eight and eight.
        let below = link_slot < HALF;
        let half = if below { HALF - 1 } else { HALF };
        let old = &mut self.nodes[number as usize];
        let mut upper = EMPTY;
        let moved = CAPACITY - half;
        upper.links[..moved].copy_from_slice(&old.links[half..]);
        upper.count = moved as u8;
        old.count = half as u8;
        // An inner node gives the key between the halves away to its parent.
        let mut between = old.keys[if leaf { half } else { half - 1 }];
        let keys = if leaf { moved } else { moved - 1 };
        upper.keys[..keys].copy_from_slice(&old.keys[half..half + keys]);
        self.nodes.push(upper);
        let (node, link_slot) = if below {
            (number, link_slot)
        } else {
            (sibling, link_slot - half)
        };
        let target = &mut self.nodes[node as usize];
        let count = target.count as usize;
        if leaf {
            target.place(link_slot, key, link_slot, link, true);
            between = self.nodes[sibling as usize].keys[0];
        } else if link_slot == 0 && !below {
            // The new child is the first of the upper half: its key goes up, and the one that would have gone up
            // divides it from the next child.
            target.place(0, between, 0, link, false);
            between = key;
        } else {
            target.place(link_slot - 1, key, link_slot, link, false);
        }
        node::place(store.nodes.at(u64::from(node)), link_slot, count, out);
        Some((between, sibling))
    }

    fn grow(&mut self, key: u64, child: u32, store: &Store, out: &mut Vec<Op>) {
        let mut root = EMPTY;
        root.keys[0] = key;
        root.links[..2].copy_from_slice(&[self.root, child]);
        root.count = 2;
        self.root = self.nodes.len() as u32;
        self.nodes.push(root);
        self.levels += 1;
        node::grow(store.nodes.at(u64::from(self.root)), out);
    }

    /// Every key and its item in the order of the keys, for checks.
    pub fn entries(&self) -> Vec<(u64, u32)> {
        let mut entries = Vec::new();
        self.collect(self.root, self.levels, &mut entries);
        entries
    }

    fn collect(&self, number: u32, level: u32, entries: &mut Vec<(u64, u32)>) {
        let node = &self.nodes[number as usize];
        for slot in 0..node.count as usize {
            if level == 1 {
                entries.push((node.keys[slot], node.links[slot]));
            } else {
                self.collect(node.links[slot], level - 1, entries);
            }
        }
    }
}

impl Node {
    /// The child that leads to `key`.
    #[inline(always)]
    fn child(&self, key: u64) -> usize {
        let separators = &self.keys[..self.count as usize - 1];
        separators
            .iter()
            .map(|&separator| usize::from(separator <= key))
            .sum()
    }

    /// The first place of a leaf whose key is not smaller.
    #[inline(always)]
    fn position(&self, key: u64) -> usize {
        self.keys[..self.count as usize]
            .iter()
            .map(|&other| usize::from(other < key))
            .sum()
    }

    fn place(&mut self, slot: usize, key: u64, link_slot: usize, link: u32, leaf: bool) {
        let count = self.count as usize;
        let keys = if leaf { count } else { count - 1 };
        self.keys.copy_within(slot..keys, slot + 1);
        self.keys[slot] = key;
        self.links.copy_within(link_slot..count, link_slot + 1);
        self.links[link_slot] = link;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kv::store::ITEM;
    use crate::layout::Layout;
    use crate::node::{NODE, mean_entries};
    use varve_access::random::mix;

    fn store() -> Store {
        let mut layout = Layout::new();
        let nodes = layout.array("nodes", 1 << 20, NODE);
        Store {
            nodes,
            items: layout.array("items", 1 << 20, ITEM),
        }
    }

    proptest::proptest! {
        #[test]
        fn it_holds_what_a_sorted_map_holds(
            keys in proptest::collection::vec(0u64..3000, 0..2000),
            probes in proptest::collection::vec(0u64..3000, 0..50),
        ) {
            let (store, mut out) = (store(), Vec::new());
            let (mut tree, mut map) = (BTree::new(), BTreeMap::new());
            for (item, key) in keys.into_iter().enumerate() {
                let old = tree.insert(key, item as u32, &store, &mut out);
                proptest::prop_assert_eq!(old, map.insert(key, item as u32));
            }
            proptest::prop_assert_eq!(tree.entries(), map.clone().into_iter().collect::<Vec<_>>());
            for key in probes {
                proptest::prop_assert_eq!(tree.get(key, &store, &mut out), map.get(&key).copied());
            }
        }
    }

    #[test]
    fn rising_and_falling_keys_are_held_too() {
        let (store, mut out) = (store(), Vec::new());
        for falling in [false, true] {
            let mut tree = BTree::new();
            for step in 0..5000u64 {
                let key = if falling { 5000 - step } else { step };
                tree.insert(key, step as u32, &store, &mut out);
            }
            let keys: Vec<u64> = tree.entries().into_iter().map(|(key, _)| key).collect();
            assert!(keys.is_sorted() && keys.len() == 5000);
        }
    }

    #[test]
    fn random_insertion_fills_leaves_as_the_theory_says() {
        let (store, mut out) = (store(), Vec::new());
        let mut tree = BTree::new();
        for number in 0..200_000u64 {
            tree.insert(mix(number), number as u32, &store, &mut out);
            out.clear();
        }
        let nodes = tree.nodes() as f64;
        let mean = mean_entries();
        let leaves = 200_000.0 / mean;
        let want = leaves * (1.0 + 1.0 / mean + 1.0 / (mean * mean));
        assert!(
            (nodes / want - 1.0).abs() < 0.01,
            "{nodes} nodes, {want} by theory"
        );
    }

    #[test]
    fn a_lookup_reads_each_level_once_and_waits_for_each() {
        let (store, mut out) = (store(), Vec::new());
        let mut tree = BTree::new();
        for number in 0..10_000u64 {
            tree.insert(mix(number), number as u32, &store, &mut out);
        }
        out.clear();
        assert_eq!(tree.get(mix(77), &store, &mut out), Some(77));
        assert_eq!(out.len() as u32, 2 * tree.levels());
        assert!(out.iter().all(|op| op.dependent == 1));
    }
}
