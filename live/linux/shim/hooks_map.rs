//! `mmap` and its relatives.

use crate::lazy;
use crate::place::bins::{HUGE, PAGE};
use crate::place::engine::Fill;
use crate::place::reserve::Unit;
use crate::place::sys::{self, keeping_errno};
use crate::state::{may_hold, with_state};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smallest mapping that is placed, bytes; larger than any mapping while the shim is idle.
pub static MAP_THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);

const FAILED: *mut c_void = usize::MAX as *mut c_void;

/// Only plain private memory that is readable and writable is placed. Memory without access (reservations,
/// guard pages), stacks and explicit huge pages are not placed.
fn is_plain_memory(prot: i32, flags: i32) -> bool {
    let wanted = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    let unwanted = sys::MAP_SHARED | sys::MAP_STACK | sys::MAP_GROWSDOWN | sys::MAP_HUGETLB;
    prot == sys::PROT_READ | sys::PROT_WRITE && flags & wanted == wanted && flags & unwanted == 0
}

fn pointer(result: std::io::Result<usize>) -> *mut c_void {
    result.map_or(FAILED, |a| a as *mut c_void)
}

fn status(result: std::io::Result<()>) -> i32 {
    if result.is_ok() { 0 } else { -1 }
}

fn whole_pages(bytes: usize) -> usize {
    bytes
        .checked_next_multiple_of(PAGE)
        .unwrap_or(usize::MAX / PAGE * PAGE)
}

/// `mmap(2)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    off: i64,
) -> *mut c_void {
    let place = len >= MAP_THRESHOLD.load(Ordering::Relaxed) && is_plain_memory(prot, flags);
    // A program that reserves more than it will use says so; such memory is only placed where it is touched.
    let sparse = flags & sys::MAP_NORESERVE != 0;
    let fixed = flags & (sys::MAP_FIXED | sys::MAP_FIXED_NOREPLACE) != 0;
    if place && !sparse && !fixed && addr.is_null() {
        let mapped = keeping_errno(|| {
            with_state(|s| {
                // SAFETY: a new mapping at an address that the kernel chooses.
                let start = unsafe { map_aligned(len, s.config.unit) }.ok()?;
                // SAFETY: mapped just now, and no other thread knows it yet.
                unsafe { lazy::settle(s, start, whole_pages(len), false) };
                Some(start as *mut c_void)
            })
        });
        if let Some(Some(start)) = mapped {
            return start;
        }
    }
    // SAFETY: the caller's own call.
    let result = unsafe { sys::mmap(addr as usize, len, prot, flags, fd, off) };
    if let Ok(start) = result {
        let end = start.saturating_add(whole_pages(len));
        let replaced = flags & sys::MAP_FIXED != 0 && may_hold(start, end);
        if replaced || place {
            keeping_errno(|| {
                with_state(|s| {
                    if replaced {
                        s.forget(start, end);
                        lazy::end(s, start, end);
                    }
                    if place {
                        // SAFETY: mapped just now; the caller cannot know that the call has succeeded.
                        unsafe { lazy::settle(s, start, end - start, sparse) };
                    }
                })
            });
        }
    }
    pointer(result)
}

/// `mmap64(2)`: the same on 64-bit machines.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    addr: *mut c_void,
    len: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    off: i64,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { mmap(addr, len, prot, flags, fd, off) }
}

/// Maps plain memory, aligned so that huge pages fit when those are wanted.
///
/// # Safety
/// None beyond that of any new mapping.
pub unsafe fn map_aligned(len: usize, unit: Unit) -> std::io::Result<usize> {
    let align = if unit == Unit::Huge && len >= HUGE {
        HUGE
    } else {
        PAGE
    };
    // SAFETY: passed on.
    unsafe { map_aligned_to(len, align) }
}

/// Maps plain memory at a multiple of `align`.
///
/// # Safety
/// None beyond that of any new mapping.
pub unsafe fn map_aligned_to(len: usize, align: usize) -> std::io::Result<usize> {
    let too_much = || std::io::Error::from_raw_os_error(12); // ENOMEM
    let len = len.checked_next_multiple_of(PAGE).ok_or_else(too_much)?;
    let slack = align.max(PAGE) - PAGE;
    let all = len.checked_add(slack).ok_or_else(too_much)?;
    let prot = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: no MAP_FIXED.
    let got = unsafe { sys::mmap(0, all, prot, sys::MAP_PRIVATE | sys::MAP_ANONYMOUS, -1, 0) }?;
    let start = got.next_multiple_of(align.max(PAGE));
    // SAFETY: the unaligned ends of a mapping that no other thread knows yet.
    unsafe {
        if start > got {
            let _ = sys::munmap(got, start - got);
        }
        if got + all > start + len {
            let _ = sys::munmap(start + len, got + all - (start + len));
        }
    }
    Ok(start)
}

/// `munmap(2)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(addr: *mut c_void, len: usize) -> i32 {
    let (start, end) = (
        addr as usize,
        (addr as usize).saturating_add(whole_pages(len)),
    );
    if !may_hold(start, end) {
        // SAFETY: the caller's own call.
        return status(unsafe { sys::munmap(start, len) });
    }
    // The lock is held over the call, so that the addresses cannot be placed anew in between.
    let inside = with_state(|s| {
        // SAFETY: the caller's own call.
        let result = unsafe { sys::munmap(start, len) };
        if result.is_ok() {
            keeping_errno(|| {
                s.forget(start, end);
                lazy::end(s, start, end);
            });
        }
        status(result)
    });
    // SAFETY: the caller's own call.
    inside.unwrap_or_else(|| status(unsafe { sys::munmap(start, len) }))
}

/// `mremap(2)`. The fifth argument is read always; the kernel uses it only with `MREMAP_FIXED`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: i32,
    new: *mut c_void,
) -> *mut c_void {
    let start = old as usize;
    let fixed_target = (flags & sys::MREMAP_FIXED != 0).then_some(new as usize);
    let touches = |a: usize, n: usize| may_hold(a, a.saturating_add(whole_pages(n)));
    // SAFETY: the caller's own call.
    let call = || unsafe { sys::mremap(start, old_len, new_len, flags, new as usize) };
    if !touches(start, old_len) && !fixed_target.is_some_and(|t| touches(t, new_len)) {
        return pointer(call());
    }
    let inside = with_state(|s| {
        let was_lazy = lazy::suspend(s, start, start + whole_pages(old_len));
        let placed = old_len > 0 && s.holds(start + whole_pages(old_len) - PAGE);
        let result = call();
        if let Ok(to) = result {
            keeping_errno(|| {
                let (old_end, new_end) = (start + whole_pages(old_len), to + whole_pages(new_len));
                if fixed_target.is_some() {
                    s.forget(to, new_end);
                    lazy::end(s, to, new_end);
                }
                // An old length of zero makes a second mapping of shared memory: nothing moves.
                if old_len > 0 {
                    let kept = (old_end - start).min(new_end - to);
                    if to != start {
                        s.moved(start, start + kept, to);
                    }
                    let cut_from = start + kept;
                    if cut_from < old_end {
                        s.forget(cut_from, old_end);
                    }
                    lazy::end(s, start, old_end);
                    if was_lazy {
                        // A mapping that moves loses its registration.
                        lazy::begin(s, to, new_end - to);
                        return;
                    }
                    let threshold = MAP_THRESHOLD.load(Ordering::Relaxed);
                    if placed && new_end - (to + kept) >= threshold {
                        // SAFETY: private anonymous like the placed range that it extends; the caller cannot know
                        // the address of what was added.
                        unsafe {
                            s.place(to + kept, new_end - (to + kept), Unit::Base, Fill::Fresh)
                        };
                    }
                }
            });
        }
        if result.is_err() && was_lazy {
            keeping_errno(|| lazy::begin(s, start, whole_pages(old_len)));
        }
        pointer(result)
    });
    inside.unwrap_or_else(|| pointer(call()))
}

/// `madvise(2)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(addr: *mut c_void, len: usize, advice: i32) -> i32 {
    let (start, end) = (
        addr as usize,
        (addr as usize).saturating_add(whole_pages(len)),
    );
    // Only this advice gives frames back at once.
    let drops =
        matches!(advice, sys::MADV_DONTNEED | sys::MADV_DONTNEED_LOCKED) && may_hold(start, end);
    if drops {
        let inside = with_state(|s| {
            // SAFETY: the caller's own call.
            let result = unsafe { sys::madvise(start, len, advice) };
            if result.is_ok() {
                keeping_errno(|| s.stats.dropped_pages += s.forget(start, end));
            }
            status(result)
        });
        if let Some(result) = inside {
            return result;
        }
    }
    // SAFETY: the caller's own call.
    status(unsafe { sys::madvise(start, len, advice) })
}
