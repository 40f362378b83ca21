//! Blocks with alignments that mimalloc's arenas do not reach, in mappings of their own. There are few, if any.

use crate::sys::{self, PAGE};
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignments from here on: half of what mimalloc's segments are aligned to.
pub const ALIGN: usize = 16 << 20;

const MOST: usize = 256;
/// First addresses; 0 for a free entry, 1 for one that is being filled.
static STARTS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static BYTES: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// Zeroed memory; null if there is none, or too many such blocks.
pub fn give(align: usize, bytes: usize) -> *mut c_void {
    let given = || {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let all = bytes.checked_add(align)?;
        let free = STARTS
            .iter()
            .position(|s| s.compare_exchange(0, 1, Ordering::Acquire, Relaxed).is_ok())?;
        let at = sys::zeroed(all);
        if at == 0 {
            STARTS[free].store(0, Relaxed);
            return None;
        }
        let start = at.next_multiple_of(align);
        // SAFETY: what is around the block, which nobody uses.
        unsafe {
            sys::unmap(at, start - at);
            sys::unmap(start + bytes, at + all - start - bytes);
        }
        BYTES[free].store(bytes, Relaxed);
        STARTS[free].store(start, Ordering::Release);
        Some(start)
    };
    given().unwrap_or(0) as *mut c_void
}

/// The size of a block of this kind.
pub fn usable(block: *mut c_void) -> Option<usize> {
    let entry = entry(block)?;
    Some(BYTES[entry].load(Relaxed))
}

/// Gives a block of this kind back; false if it is none.
pub fn free(block: *mut c_void) -> bool {
    let Some(entry) = entry(block) else {
        return false;
    };
    // SAFETY: the program is done with the block.
    unsafe { sys::unmap(block as usize, BYTES[entry].load(Relaxed)) };
    STARTS[entry].store(0, Ordering::Release);
    true
}

fn entry(block: *mut c_void) -> Option<usize> {
    let multiple = (block as usize).is_multiple_of(ALIGN);
    multiple.then(|| {
        STARTS
            .iter()
            .position(|s| s.load(Ordering::Acquire) == block as usize)
    })?
}
