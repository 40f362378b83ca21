//! Blocks with alignments that mimalloc's arenas do not reach, in mappings of their own. There are few, if any.

use crate::divided::{self, Block, Blocks};
use crate::map::map;
use crate::sys::{self, PAGE};
use crate::thread::Thread;
use std::ffi::c_void;

/// Alignments from here on: half of what mimalloc's segments are aligned to.
pub const ALIGN: usize = 16 << 20;

const MOST: usize = 4096;
static BLOCKS: Blocks<MOST> = Blocks::new();

/// Zeroed memory, of a group in its tier; null if there is none, or too many such blocks.
pub fn give(align: usize, bytes: usize, owner: Option<(&Thread, usize)>) -> *mut c_void {
    let given = || {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let all = bytes.checked_add(align)?;
        let entry = BLOCKS.claim()?;
        let at = sys::zeroed(all);
        if at == 0 {
            BLOCKS.free(entry);
            return None;
        }
        let start = at.next_multiple_of(align);
        // SAFETY: what is around the block, which is unused.
        unsafe {
            sys::unmap(at, start - at);
            sys::unmap(start + bytes, at + all - start - bytes);
        }
        let block = match (owner, map()) {
            (Some((thread, group)), Some(map)) => divided::settle(map, thread, group, start, bytes),
            _ => Block {
                start,
                bytes,
                ..Block::default()
            },
        };
        BLOCKS.set(entry, &block);
        Some(start)
    };
    sys::keeping_errno(given).unwrap_or(0) as *mut c_void
}

/// A block of this kind.
pub fn of(block: *mut c_void) -> Option<Block> {
    entry(block).map(|entry| BLOCKS.get(entry))
}

/// Changes whose a block of this kind is.
pub fn set_group(block: *mut c_void, group: Option<usize>) {
    if let Some(entry) = entry(block) {
        let own = BLOCKS.get(entry);
        BLOCKS.set(entry, &Block { group, ..own });
    }
}

/// Gives a block of this kind back; false if it is none.
pub fn free(block: *mut c_void) -> bool {
    let Some(entry) = entry(block) else {
        return false;
    };
    let own = BLOCKS.get(entry);
    own.uncount();
    // SAFETY: the program is done with the block.
    unsafe { sys::unmap(own.start, own.bytes) };
    BLOCKS.free(entry);
    true
}

/// Calls `told` for each.
pub fn each(told: impl FnMut(Block)) {
    BLOCKS.each(told);
}

fn entry(block: *mut c_void) -> Option<usize> {
    let multiple = (block as usize).is_multiple_of(ALIGN);
    multiple.then(|| BLOCKS.find(block as usize))?
}
