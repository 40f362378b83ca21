//! The role of each block of the address range in a collection: one byte, looked up for every object that is reached.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::layout::BLOCK_SIZE;
use crate::lines::zeroed_table;

/// A block's role. Everything that is not a mark-region block is `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// Nursery, large objects, or free.
    Other = 0,
    /// Holds objects, or may.
    Mature = 1,
    /// Its objects move away in this collection, if there is room.
    Evacuated = 2,
}

/// Roles and tiers of all blocks.
pub(crate) struct Blocks {
    bytes: Box<[AtomicU8]>,
}

const TIER_SHIFT: u32 = 2;

impl Blocks {
    /// The blocks of `extent` bytes, all [`Role::Other`].
    pub fn new(extent: u64) -> Blocks {
        Blocks {
            bytes: zeroed_table((extent / BLOCK_SIZE) as usize),
        }
    }

    /// Gives a block its role in the mark-region space of tier `tier`.
    pub fn set(&self, block: u32, role: Role, tier: u8) {
        self.bytes[block as usize].store(role as u8 | tier << TIER_SHIFT, Relaxed);
    }

    /// The bytes as tracing keeps them close: see [`is_evacuated`].
    #[inline]
    pub fn bytes(&self) -> &[AtomicU8] {
        &self.bytes
    }

    /// Whether `offset` is in a mark-region block.
    #[inline]
    pub fn is_mature(&self, offset: u64) -> bool {
        self.byte(offset) & 3 != Role::Other as u8
    }

    /// The tier of the mark-region block around `offset`.
    #[inline(always)]
    pub fn tier(&self, offset: u64) -> u8 {
        self.byte(offset) >> TIER_SHIFT
    }

    #[inline(always)]
    fn byte(&self, offset: u64) -> u8 {
        self.bytes[(offset / BLOCK_SIZE) as usize].load(Relaxed)
    }
}

/// Whether objects at `offset` move in this collection.
#[inline(always)]
pub(crate) fn is_evacuated(blocks: &[AtomicU8], offset: u64) -> bool {
    blocks[(offset / BLOCK_SIZE) as usize].load(Relaxed) & 3 == Role::Evacuated as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_tiers_are_kept_apart() {
        let blocks = Blocks::new(4 * BLOCK_SIZE);
        blocks.set(2, Role::Evacuated, 3);
        let inside = 2 * BLOCK_SIZE + 100;
        assert!(
            is_evacuated(&blocks.bytes, inside)
                && blocks.is_mature(inside)
                && blocks.tier(inside) == 3
        );
        blocks.set(2, Role::Mature, 1);
        assert!(
            !is_evacuated(&blocks.bytes, inside)
                && blocks.is_mature(inside)
                && blocks.tier(inside) == 1
        );
        assert!(!blocks.is_mature(3 * BLOCK_SIZE));
    }
}
