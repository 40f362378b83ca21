//! The shim's own memory comes straight from the C library, never through the interposed `malloc`.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

struct Libc;

/// Alignment that `malloc` of the GNU C library gives on 64-bit machines.
const NATURAL: usize = 16;

// SAFETY: forwards to the C library's allocator, whose blocks satisfy the layout.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
        if layout.align() <= NATURAL {
            // SAFETY: as above; large blocks come as untouched zero pages.
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
        if layout.align() <= NATURAL {
            // SAFETY: `old` came from `alloc` above.
            return unsafe { __libc_realloc(old.cast(), size) }.cast();
        }
        // SAFETY: the new layout is valid by the caller's contract; both blocks hold the copied bytes.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(old, size.min(layout.size()));
                self.dealloc(old, layout);
            }
            new
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: `block` came from this allocator.
        unsafe { __libc_free(block.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: Libc = Libc;
