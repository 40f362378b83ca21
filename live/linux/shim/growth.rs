//! Memory that no call asks for: the heap below `brk`, and the program's own zeroed data (`.bss`).
//!
//! The C library's allocator grows the heap by calls that cannot be intercepted. Its wrapper checks the end of
//! the heap after every call instead, and places what was added and not yet touched. To make that worth
//! while, the shim sets the allocator to grow in larger steps, up to an eighth of the heap.

use crate::holes::place_holes;
use crate::next;
use crate::place::bins::PAGE;
use crate::place::engine::Fill;
use crate::place::mover::uffd_move_works;
use crate::place::reserve::Unit;
use crate::place::sys::keeping_errno;
use crate::state::{State, with_state};
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    fn sbrk(increment: isize) -> *mut std::ffi::c_void;
    fn mallopt(parameter: i32, value: i32) -> i32;
}

// malloc.h of the GNU C library.
const M_TRIM_THRESHOLD: i32 = -1;
const M_TOP_PAD: i32 = -2;
const M_MMAP_THRESHOLD: i32 = -3;
const M_ARENA_MAX: i32 = -8;
/// The largest value that glibc takes for `M_MMAP_THRESHOLD` (half of HEAP_MAX_SIZE, 64 bits).
const LARGEST_MMAP_THRESHOLD: i32 = 32 << 20;
/// Largest step, bytes: what is placed ahead of its use.
const LARGEST_STEP: usize = 64 << 20;

/// End of the heap at the last check; `usize::MAX` while it is not followed.
static SEEN: AtomicUsize = AtomicUsize::new(usize::MAX);

fn heap_end() -> usize {
    // SAFETY: an increment of zero only asks.
    unsafe { sbrk(0) as usize }
}

/// Begins to follow the heap, if the allocator is the C library's and the kernel can fill holes while other
/// threads use the heap (Linux 6.8).
pub fn start(state: &mut State) {
    if !state.config.heap || !next::is_c_library() || uffd_move_works().is_err() {
        return;
    }
    // SAFETY: plain settings. One heap: the heaps of further threads would come from mappings that nobody
    // sees. Blocks between our threshold and 32 MiB come from the heap once the threshold has risen.
    unsafe {
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD);
        mallopt(M_TRIM_THRESHOLD, 4 * LARGEST_STEP as i32);
    }
    state.heap_step = state.config.threshold.min(LARGEST_STEP);
    state.heap_end = heap_end();
    SEEN.store(state.heap_end, Ordering::Relaxed);
}

/// Called after every call of the next allocator: a load and a comparison when the heap has not changed.
#[inline]
pub fn follow_heap() {
    crate::lazy::start_if_due();
    let seen = SEEN.load(Ordering::Relaxed);
    if seen != usize::MAX && heap_end() != seen {
        heap_changed();
    }
}

#[cold]
fn heap_changed() {
    keeping_errno(|| {
        let pad = with_state(|s| {
            let end = heap_end();
            SEEN.store(end, Ordering::Relaxed);
            if end < s.heap_end {
                s.forget(end.next_multiple_of(PAGE), s.heap_end);
                s.heap_end = end;
            }
            if end - s.heap_end < s.heap_step {
                return None;
            }
            let (from, to) = (s.heap_end.next_multiple_of(PAGE), end / PAGE * PAGE);
            place_holes(s, from, to, Unit::Base, Fill::Holes);
            s.heap_end = end;
            // The heap's whole size is not known when it began before us; what was placed stands for it.
            let wanted = ((s.stats.placed_pages as usize * PAGE) / 8)
                .clamp(s.config.threshold, LARGEST_STEP);
            let grows = wanted >= 2 * s.heap_step || s.stats.placed_ranges == 1;
            s.heap_step = if grows {
                wanted.min(LARGEST_STEP)
            } else {
                s.heap_step
            };
            grows.then_some(s.heap_step)
        });
        if let Some(Some(step)) = pad {
            // SAFETY: a plain setting, made outside our lock because it takes the allocator's.
            unsafe { mallopt(M_TOP_PAD, step as i32) };
        }
    });
}

/// Places the zeroed data of the program: the nameless mapping that directly follows its file's.
pub fn place_zeroed_data(state: &mut State) {
    if !state.config.heap || uffd_move_works().is_err() {
        return;
    }
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    let Ok(program) = std::fs::read_link("/proc/self/exe") else {
        return;
    };
    let mut end_of_file = 0;
    for line in maps.lines() {
        let Some((start, end, rights, path)) = parse(line) else {
            continue;
        };
        if rights == "rw-p"
            && path.is_empty()
            && start == end_of_file
            && end - start >= state.config.threshold
        {
            place_holes(state, start, end, Unit::Base, Fill::Holes);
        }
        end_of_file = if std::path::Path::new(path) == program {
            end
        } else {
            0
        };
    }
}

/// `(start, end, rights, path)` of a line of /proc/PID/maps.
fn parse(line: &str) -> Option<(usize, usize, &str, &str)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let path = fields.nth(3).unwrap_or("").trim_start();
    Some((
        usize::from_str_radix(start, 16).ok()?,
        usize::from_str_radix(end, 16).ok()?,
        rights,
        path,
    ))
}

/// In a forked child: what follows is placed for the child.
pub fn after_fork(state: &mut State) {
    if state.heap_step > 0 {
        state.heap_end = heap_end();
        SEEN.store(state.heap_end, Ordering::Relaxed);
    }
}
