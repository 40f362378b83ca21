//! The shim's own memory comes straight from the C library, never through the interposed `malloc`; large
//! blocks come from the kernel and go back to it, so that they leave no trace in the program's heap.

use crate::place::bins::PAGE;
use crate::place::sys;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

struct Own;

/// From this size on, bytes, a block is a mapping of its own.
const LARGE: usize = 128 << 10;

/// A block of its own mapping: page-aligned and zeroed; null without memory.
fn map(layout: Layout) -> *mut u8 {
    let prot = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: no MAP_FIXED.
    let got = unsafe {
        sys::mmap(
            0,
            layout.size(),
            prot,
            sys::MAP_PRIVATE | sys::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    got.map_or(std::ptr::null_mut(), |a| a as *mut u8)
}

/// No block of ours wants more than page alignment; one that does comes from the C library.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

/// Alignment that `malloc` of the GNU C library gives on 64-bit machines.
const NATURAL: usize = 16;

// SAFETY: forwards to the C library's allocator, whose blocks satisfy the layout.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout);
        }
        // SAFETY: plain C allocation; alignment is a power of two by `Layout`.
        unsafe {
            if layout.align() <= NATURAL {
                __libc_malloc(layout.size()).cast()
            } else {
                __libc_memalign(layout.align(), layout.size()).cast()
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout);
        }
        if layout.align() <= NATURAL {
            // SAFETY: as above.
            return unsafe { __libc_calloc(1, layout.size()) }.cast();
        }
        // SAFETY: as above; the block holds `size` bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the size is one that the caller may ask for, the alignment as before.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if is_large(layout) && is_large(new_layout) {
            // SAFETY: a block of its own mapping, whose old address the caller gives up.
            let moved =
                unsafe { sys::mremap(old as usize, layout.size(), size, sys::MREMAP_MAYMOVE, 0) };
            return moved.map_or(std::ptr::null_mut(), |a| a as *mut u8);
        }
        if layout.align() <= NATURAL && !is_large(layout) && !is_large(new_layout) {
            // SAFETY: `old` came from `alloc` above.
            return unsafe { __libc_realloc(old.cast(), size) }.cast();
        }
        // SAFETY: the new layout is valid by the caller's contract; both blocks hold the copied bytes.
        unsafe {
            let new = self.alloc(new_layout);
            if !new.is_null() {
                new.copy_from_nonoverlapping(old, size.min(layout.size()));
                self.dealloc(old, layout);
            }
            new
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: a block of its own mapping, which the caller gives up.
            let _ = unsafe { sys::munmap(block as usize, layout.size()) };
            return;
        }
        // SAFETY: `block` came from this allocator.
        unsafe { __libc_free(block.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: Own = Own;
