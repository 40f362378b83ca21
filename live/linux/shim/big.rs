//! Large blocks of the allocator: each a mapping of its own, placed when it is made.
//!
//! They start at page boundaries, which tells a pointer that cannot be one of them apart without the lock.

use crate::hooks_map::{MAP_THRESHOLD, map_aligned_to};
use crate::lazy;
use crate::place::bins::{HUGE, PAGE};
use crate::place::engine::Fill;
use crate::place::reserve::Unit;
use crate::place::sys::{self, keeping_errno};
use crate::state::with_state;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smallest block that gets a mapping of its own, bytes; larger than any while the shim is idle.
pub static BLOCK_THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Number of such blocks now.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// A program that frees and asks again for blocks of this size and less finds them on the heap the second
/// time, as with the C library's own dynamic threshold (DEFAULT_MMAP_THRESHOLD_MAX of glibc on 64 bits).
const HEAP_AT_MOST: usize = 32 << 20;

/// Is a block of this size ours to make?
#[inline]
pub fn is_big(size: usize) -> bool {
    size >= BLOCK_THRESHOLD.load(Ordering::Relaxed)
}

/// A new zeroed block at a multiple of `align`; `None` when it must come from the next allocator.
pub fn new(size: usize, align: usize) -> Option<*mut c_void> {
    keeping_errno(|| {
        with_state(|s| {
            let len = size.checked_next_multiple_of(PAGE)?;
            let huge = s.config.unit == Unit::Huge && len >= HUGE;
            let align = align.max(if huge { HUGE } else { PAGE });
            // SAFETY: a new mapping.
            let start = unsafe { map_aligned_to(len, align) }.ok()?;
            // SAFETY: mapped just now, and no other thread knows it yet.
            unsafe { lazy::settle(s, start, len, false) };
            s.blocks.insert(start, len);
            BLOCKS.fetch_add(1, Ordering::Relaxed);
            Some(start as *mut c_void)
        })
    })
    .flatten()
}

#[inline]
fn may_be_ours(block: *mut c_void) -> bool {
    (block as usize).is_multiple_of(PAGE) && !block.is_null() && BLOCKS.load(Ordering::Relaxed) > 0
}

/// Bytes of the block when it is ours.
pub fn size(block: *mut c_void) -> Option<usize> {
    if !may_be_ours(block) {
        return None;
    }
    with_state(|s| s.blocks.get(&(block as usize)).copied()).flatten()
}

/// Gives the block back when it is ours; `false` when it is the next allocator's.
pub fn free(block: *mut c_void) -> bool {
    if !may_be_ours(block) {
        return false;
    }
    keeping_errno(|| {
        with_state(|s| {
            let start = block as usize;
            let Some(len) = s.blocks.remove(&start) else {
                return false;
            };
            BLOCKS.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: the block is ours and the program has given it up.
            let _ = unsafe { sys::munmap(start, len) };
            s.forget(start, start + len);
            lazy::end(s, start, start + len);
            // Only where the heap is placed too, lest such blocks end in pages that are not placed.
            if s.heap_step > 0 && len <= HEAP_AT_MOST {
                BLOCK_THRESHOLD.fetch_max(len + 1, Ordering::Relaxed);
            }
            true
        })
    })
    .unwrap_or(false)
}

/// Changes the size of a block that is ours. `None` when it is not; null when there is no memory.
pub fn resize(block: *mut c_void, size: usize) -> Option<*mut c_void> {
    if !may_be_ours(block) {
        return None;
    }
    let errno = sys::errno();
    let result = with_state(|s| {
        let start = block as usize;
        let len = *s.blocks.get(&start)?;
        let Some(need) = size.checked_next_multiple_of(PAGE) else {
            return Some(std::ptr::null_mut());
        };
        if need == len {
            return Some(block);
        }
        // Some room beyond, so that a block that grows step by step is not placed page by page.
        let new_len = if need > len {
            need.max(len + len / 16 / PAGE * PAGE)
        } else {
            need
        };
        let was_lazy = lazy::suspend(s, start, start + len);
        // SAFETY: the block is ours; the caller gives its old address up by the contract of `realloc`.
        let Ok(to) = (unsafe { sys::mremap(start, len, new_len, sys::MREMAP_MAYMOVE, 0) }) else {
            if was_lazy {
                lazy::begin(s, start, len);
            }
            return Some(std::ptr::null_mut());
        };
        s.blocks.remove(&start);
        s.blocks.insert(to, new_len);
        if to != start {
            s.moved(start, start + len.min(new_len), to);
        }
        lazy::end(s, start, start + len);
        if new_len < len {
            s.forget(start + new_len, start + len);
        }
        if was_lazy {
            lazy::begin(s, to, new_len);
        } else if new_len > len {
            // SAFETY: the new end of our block, which no other thread knows yet.
            unsafe { s.place(to + len, new_len - len, Unit::Base, Fill::Fresh) };
        }
        Some(to as *mut c_void)
    })
    .flatten();
    sys::set_errno(if result.is_some_and(|p| p.is_null()) {
        12
    } else {
        errno
    });
    result
}

/// Starts making large blocks and placing large mappings.
pub fn start(threshold: usize) {
    MAP_THRESHOLD.store(threshold, Ordering::Relaxed);
    BLOCK_THRESHOLD.store(threshold, Ordering::Relaxed);
}
