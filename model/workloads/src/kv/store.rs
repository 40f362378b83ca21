//! The store's memory: a pool of nodes, a pool of items, and the accesses to items.

use varve_access::{Kind, Op};

use crate::layout::Array;
use crate::node::{LOCK, UNLOCK};

/// Bytes of an item (Johnny Cache, section 5.4): version and lock 8, key 8, value 112.
pub const ITEM: u64 = 128;

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
