//! What is no object of the allocator: mappings that the program makes, and its static variables.

use crate::budget;
use crate::entry::Caller;
use crate::find;
use crate::format::{FAST, SLOW};
use crate::map::{Map, map};
use crate::sampled;
use crate::sys::{self, MPOL_MF_MOVE, PAGE};
use crate::thread;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Smaller mappings are left alone.
const LEAST: usize = 64 << 10;

/// Mappings that are counted in fast memory until they are taken back. Those beyond stay counted.
const KEPT: usize = 1024;
static STARTS: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];
static ENDS: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];
static GROUPS: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];
/// How many of them were ever in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of static variables that are bound: fast, slow; and those that are on no page of their own.
pub static VARIABLES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

pub unsafe extern "C" fn plain_mmap(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's call. The C library's function would be our own.
    unsafe {
        let file = c_long::from(file);
        libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, file, offset) as *mut c_void
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "those of mmap, and where it was called"
)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's call.
    let mapping = unsafe { plain_mmap(at, bytes, protection, flags, file, offset) };
    let private = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_SHARED == 0;
    if private && bytes >= LEAST && mapping != libc::MAP_FAILED {
        let caller = Caller {
            address,
            stack,
            frame,
        };
        sys::keeping_errno(|| place(mapping as usize, bytes, caller));
        sampled::mapped(mapping as usize, bytes, caller);
    }
    mapping
}

fn place(at: usize, bytes: usize, caller: Caller) -> Option<()> {
    let map = map()?;
    let thread = thread::current(map)?;
    let group = find::group(caller, thread)?;
    let bytes = bytes.next_multiple_of(PAGE);
    thread.flush();
    let tier = if budget::room(group) < bytes as i64 {
        SLOW
    } else {
        FAST
    };
    if sys::bind(at, bytes, map.nodes_of(tier), 0) {
        thread.mapped(group, tier, bytes);
        keep(at, at + bytes, group, tier);
    }
    Some(())
}

/// An entry's group and tier in a word, with a bit that says that it is in use.
fn packed(group: usize, tier: u64) -> usize {
    1 | (tier as usize) << 1 | group << 2
}

fn keep(start: usize, end: usize, group: usize, tier: u64) {
    for slot in 0..KEPT {
        if STARTS[slot]
            .compare_exchange(0, start, Ordering::AcqRel, Relaxed)
            .is_ok()
        {
            GROUPS[slot].store(packed(group, tier), Relaxed);
            ENDS[slot].store(end, Ordering::Release);
            USED.fetch_max(slot + 1, Relaxed);
            return;
        }
    }
}

pub unsafe fn munmap(at: *mut c_void, bytes: usize) -> c_int {
    let start = at as usize;
    sampled::unmapped(start, bytes);
    for slot in 0..USED.load(Relaxed) {
        let kept = STARTS[slot].load(Ordering::Acquire);
        // The most frequent case: all of a mapping at once. What is taken back in parts stays counted.
        let whole =
            kept == start && ENDS[slot].load(Ordering::Acquire) <= start.saturating_add(bytes);
        if kept != 0 && whole && ENDS[slot].swap(0, Ordering::AcqRel) > kept {
            let (end, word) = (
                start + bytes.next_multiple_of(PAGE),
                GROUPS[slot].load(Relaxed),
            );
            STARTS[slot].store(0, Ordering::Release);
            if let Some(thread) = map().and_then(thread::current) {
                thread.taken(word >> 2, word as u64 >> 1 & 1, end - start);
            }
        }
    }
    // SAFETY: the caller's call.
    unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int }
}

/// Binds and moves the static variables of a module. Pages that they share with others stay where they are.
pub fn place_variables(map: &Map, module: usize, base: usize) {
    for index in 0..map.statics() {
        let variable = map.variable(index);
        if variable.module != module {
            continue;
        }
        let first = base.wrapping_add(variable.address as usize);
        let (start, end) = (
            first.next_multiple_of(PAGE),
            (first + variable.bytes as usize) / PAGE * PAGE,
        );
        let whole = end.saturating_sub(start);
        let nodes = map.nodes_of(variable.tier);
        let bound = whole > 0 && sys::bind(start, whole, nodes, MPOL_MF_MOVE);
        let bound = if bound { whole as u64 } else { 0 };
        VARIABLES[variable.tier as usize & 1].fetch_add(bound, Relaxed);
        VARIABLES[2].fetch_add(variable.bytes - bound, Relaxed);
    }
}
