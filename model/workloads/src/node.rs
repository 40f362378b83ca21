//! A node of a B+-tree in memory, and the accesses of each step on it.
//!
//! A node is 256 bytes, four lines: a header of 16 (version and lock, count, sibling), 15 keys of 8, 15 pointers of 8. A
//! leaf points at records, an inner node at children. As Masstree does, a search prefetches the whole node and then
//! reads the pointer, so each level costs about one memory latency.

use varve_access::{Kind, Op};

/// Keys in a leaf, children of an inner node.
pub const CAPACITY: usize = 15;

/// Bytes of a node.
pub const NODE: u64 = 256;

const KEYS: u64 = 16;
const POINTERS: u64 = KEYS + 8 * CAPACITY as u64;

/// Instructions of searching a node: four prefetches, the version check before and after (load, mask, compare,
/// branch: 10), and a linear search over five keys on average (load, compare, branch: 15).
const SEARCH: u32 = 29;

/// Instructions of following a pointer: address, load, null and leaf check.
const FOLLOW: u32 = 4;

/// Instructions of locking: compare and swap with its retry loop.
pub const LOCK: u32 = 8;

/// Instructions of unlocking: version increment, store.
pub const UNLOCK: u32 = 4;

/// Instructions per 8 bytes moved when a node makes room or splits.
const PER_WORD: u32 = 2;

/// Searches the node at `base`, an address that came from the load before, and reads its pointer number `slot`.
#[inline(always)]
pub fn search(base: u64, slot: usize, out: &mut Vec<Op>) {
    out.push(Op::read(base, NODE as u16, SEARCH).after_load());
    out.push(Op::read(base + POINTERS + 8 * slot as u64, 8, FOLLOW).after_load());
}

/// Puts a key and pointer at `slot` of the node at `base`, which held `count` of them, moving the later ones,
/// under its lock. Taking one out is the same the other way round.
pub fn place(base: u64, slot: usize, count: usize, out: &mut Vec<Op>) {
    let (at, moved) = (8 * slot as u64, (count - slot) as u64);
    out.push(Op::new(Kind::Update, base, 8, LOCK));
    for column in [KEYS, POINTERS] {
        if moved > 0 {
            let bytes = 8 * moved as u16;
            out.push(Op::read(base + column + at, bytes, PER_WORD * moved as u32));
        }
        let room = (CAPACITY as u64 - slot as u64).min(moved + 1);
        let bytes = 8 * room as u16;
        out.push(Op::write(base + column + at, bytes, PER_WORD * room as u32));
    }
    out.push(Op::write(base, 8, UNLOCK));
}

/// Moves the upper half of the full node at `from` into the fresh one at `to`.
pub fn split(from: u64, to: u64, out: &mut Vec<Op>) {
    let half = CAPACITY as u64 / 2 + 1;
    let moved = CAPACITY as u64 - half;
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

/// Makes the fresh node at `base` a root over two nodes.
pub fn grow(base: u64, out: &mut Vec<Op>) {
    out.push(Op::write(base, KEYS as u16 + 8, LOCK));
    out.push(Op::write(base + POINTERS, 16, UNLOCK));
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
