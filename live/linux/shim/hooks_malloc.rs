//! The allocator's functions: large blocks are made here, the rest passes to the next allocator.

use crate::big;
use crate::growth::follow_heap;
use crate::next;
use crate::place::sys;
use std::ffi::c_void;

const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
const PAGE: usize = crate::place::bins::PAGE;
const NULL: *mut c_void = std::ptr::null_mut();

/// `malloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if big::is_big(size)
        && let Some(block) = big::new(size, 1)
    {
        return block;
    }
    // SAFETY: passed on.
    let block = unsafe { next::malloc(size) };
    follow_heap();
    block
}

/// `calloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(bytes) = count.checked_mul(size)
        && big::is_big(bytes)
        && let Some(block) = big::new(bytes, 1)
    {
        return block;
    }
    // SAFETY: passed on; an overflow is the next allocator's to refuse.
    let block = unsafe { next::calloc(count, size) };
    follow_heap();
    block
}

/// `realloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        // SAFETY: passed on.
        return unsafe { malloc(size) };
    }
    if next::is_first(old) {
        // SAFETY: a block of the symbol lookup, smaller than what is left of it; the copy ends within both.
        unsafe {
            let new = malloc(size);
            if !new.is_null() {
                new.cast::<u8>()
                    .copy_from_nonoverlapping(old.cast(), size.min(next::first_bytes_from(old)));
            }
            return new;
        }
    }
    if let Some(len) = big::size(old) {
        if size == 0 {
            // As the C library does.
            big::free(old);
            return NULL;
        }
        if !big::is_big(size) && size < len / 2 {
            // SAFETY: the new block holds `size` bytes, the old one more.
            unsafe {
                let new = malloc(size);
                if !new.is_null() {
                    new.cast::<u8>().copy_from_nonoverlapping(old.cast(), size);
                    big::free(old);
                }
                return new;
            }
        }
        if let Some(new) = big::resize(old, size) {
            return new;
        }
    }
    if big::is_big(size)
        && let Some(new) = big::new(size, 1)
    {
        // SAFETY: `old` is the next allocator's; the copy ends within both.
        unsafe {
            let bytes = next::malloc_usable_size(old).min(size);
            new.cast::<u8>().copy_from_nonoverlapping(old.cast(), bytes);
            next::free(old);
        }
        return new;
    }
    // SAFETY: passed on.
    let new = unsafe { next::realloc(old, size) };
    follow_heap();
    new
}

/// `reallocarray(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: passed on.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => {
            sys::set_errno(ENOMEM);
            NULL
        }
    }
}

/// `free(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() || next::is_first(block) || big::free(block) {
        return;
    }
    // SAFETY: passed on.
    unsafe { next::free(block) }
}

/// `memalign(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    if big::is_big(size)
        && align.is_power_of_two()
        && let Some(block) = big::new(size, align)
    {
        return block;
    }
    // SAFETY: passed on.
    let block = unsafe { next::memalign(align, size) };
    follow_heap();
    block
}

/// `aligned_alloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { memalign(align, size) }
}

/// `posix_memalign(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> i32 {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return EINVAL;
    }
    let errno = sys::errno();
    // SAFETY: passed on.
    let block = unsafe { memalign(align, size) };
    // This function reports by its result and leaves errno alone.
    sys::set_errno(errno);
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller gives a valid place for the result.
    unsafe { out.write(block) };
    0
}

/// `valloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { memalign(PAGE, size) }
}

/// `pvalloc(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        // SAFETY: passed on.
        Some(size) => unsafe { memalign(PAGE, size) },
        None => {
            sys::set_errno(ENOMEM);
            NULL
        }
    }
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if next::is_first(block) {
        return 0;
    }
    // SAFETY: passed on.
    big::size(block).unwrap_or_else(|| unsafe { next::malloc_usable_size(block) })
}
