//! What nodes and items look like in memory, and the accesses of each step on them.
//!
//! A node is 256 bytes, four lines: a header of 16 (version and lock, count, sibling), 15 keys of 8, 15 pointers of 8. A
//! leaf points at items, an inner node at children. As Masstree does, a search prefetches the whole node and then
//! reads the pointer, so each level costs about one memory latency.

use varve_machine::{Kind, Op};

use crate::layout::Array;

/// Keys in a leaf, children of an inner node.
pub const CAPACITY: usize = 15;

/// Bytes of a node.
pub const NODE: u64 = 256;

/// Bytes of an item (Johnny Cache, section 5.4): version and lock 8, key 8, value 112.
pub const ITEM: u64 = 128;

const KEYS: u64 = 16;
const POINTERS: u64 = KEYS + 8 * CAPACITY as u64;

/// Instructions of searching a node: four prefetches, the version check before and after (load, mask, compare,
/// branch: 10), and a linear search over five keys on average (load, compare, branch: 15).
const SEARCH: u32 = 29;

/// Instructions of following a pointer: address, load, null and leaf check.
const FOLLOW: u32 = 4;

/// Instructions of locking (compare and swap with its retry loop) and unlocking (version increment, store).
const LOCK: u32 = 8;
const UNLOCK: u32 = 4;

/// Instructions per 8 bytes moved when a node makes room or splits.
const PER_WORD: u32 = 2;

/// Instructions of copying an item's value by vector moves of 32 bytes.
const COPY: u32 = 10;

/// Where nodes and items lie.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The pool of nodes.
    pub nodes: Array,
    /// The pool of items.
    pub items: Array,
}

impl Store {
    /// Searches `node`, whose address came from the load before, and reads its pointer number `slot`.
    #[inline(always)]
    pub fn search(&self, node: u64, slot: usize, out: &mut Vec<Op>) {
        let base = self.nodes.at(node);
        out.push(Op::read(base, NODE as u16, SEARCH).after_load());
        out.push(Op::read(base + POINTERS + 8 * slot as u64, 8, FOLLOW).after_load());
    }

    /// Puts a key and pointer at `slot` of a node that held `count` of them, moving the later ones, under its lock.
    pub fn place(&self, node: u64, slot: usize, count: usize, out: &mut Vec<Op>) {
        let base = self.nodes.at(node);
        let (at, moved) = (8 * slot as u64, (count - slot) as u64);
        out.push(Op::new(Kind::Update, base, 8, LOCK));
        for column in [KEYS, POINTERS] {
            if moved > 0 {
                let bytes = 8 * moved as u16;
                out.push(Op::read(base + column + at, bytes, PER_WORD * moved as u32));
            }
            let bytes = 8 * (moved as u16 + 1);
            out.push(Op::write(
                base + column + at,
                bytes,
                PER_WORD * (moved as u32 + 1),
            ));
        }
        out.push(Op::write(base, 8, UNLOCK));
    }

    /// Moves the upper half of the full `node` into the fresh `sibling`.
    pub fn split(&self, node: u64, sibling: u64, out: &mut Vec<Op>) {
        let half = CAPACITY as u64 / 2 + 1;
        let moved = CAPACITY as u64 - half;
        let (from, to) = (self.nodes.at(node), self.nodes.at(sibling));
        let (bytes, work) = (8 * moved as u16, PER_WORD * moved as u32);
        out.push(Op::new(Kind::Update, from, 16, LOCK));
        out.push(Op::write(to, 16, LOCK));
        for column in [KEYS, POINTERS] {
            out.push(Op::read(from + column + 8 * half, bytes, work));
            out.push(Op::write(to + column, bytes, work));
        }
        out.push(Op::write(from, 16, UNLOCK));
        out.push(Op::write(to, 8, UNLOCK));
    }

    /// A new root over two nodes.
    pub fn grow(&self, root: u64, out: &mut Vec<Op>) {
        let base = self.nodes.at(root);
        out.push(Op::write(base, KEYS as u16 + 8, LOCK));
        out.push(Op::write(base + POINTERS, 16, UNLOCK));
    }

    /// Reads the item that a leaf pointed at, and copies its value to `buffer`.
    #[inline(always)]
    pub fn read_item(&self, item: u64, buffer: u64, out: &mut Vec<Op>) {
        out.push(Op::read(self.items.at(item), ITEM as u16, COPY).after_load());
        out.push(Op::write(buffer, ITEM as u16 - 16, COPY));
    }

    /// Overwrites the value of the item that a leaf pointed at, in place and under its lock.
    #[inline(always)]
    pub fn write_item(&self, item: u64, buffer: u64, out: &mut Vec<Op>) {
        let base = self.items.at(item);
        out.push(Op::new(Kind::Update, base, 8, LOCK).after_load());
        out.push(Op::read(buffer, ITEM as u16 - 16, COPY));
        out.push(Op::write(base + 16, ITEM as u16 - 16, COPY));
        out.push(Op::write(base, 8, UNLOCK));
    }

    /// Fills a fresh item.
    pub fn new_item(&self, item: u64, buffer: u64, out: &mut Vec<Op>) {
        out.push(Op::read(buffer, ITEM as u16 - 16, COPY));
        out.push(Op::write(self.items.at(item), ITEM as u16, COPY));
    }
}

/// Mean number of entries in a node of a B+-tree filled by insertions in random order: between the half that a split
/// leaves and the capacity, a node of i entries is found with a weight of `1 / (i (i + 1))` (Yao, "On random 2-3
/// trees", 1978, extended to this node size).
pub fn mean_entries() -> f64 {
    let sizes = || (CAPACITY as u32 / 2 + 1..=CAPACITY as u32).map(f64::from);
    let nodes: f64 = sizes().map(|i| 1.0 / (i * (i + 1.0))).sum();
    let entries: f64 = sizes().map(|i| 1.0 / (i + 1.0)).sum();
    entries / nodes
}
