//! Large and sparse mappings: placed where the program touches them, when it does.
//!
//! Such a mapping is registered with a userfaultfd, and a thread of ours fills the hole that was touched, and
//! some of what follows, with placed pages. Programs that map far more than they use stay as small as they are.
//! Whenever that thread cannot help at once, it hands the place back to the kernel, so that no thread waits
//! for something that does not come.

use crate::holes::{in_memory, place_holes};
use crate::place::bins::{HUGE, PAGE};
use crate::place::engine::Fill;
use crate::place::mover::{self, FaultEvent};
use crate::place::reserve::Unit;
use crate::place::sys;
use crate::state::{FAULTS, Lazy, State, note_range, with_state, with_state_within};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Filled at a time: the least, and the most for a program that goes through its memory in order, bytes.
const LEAST: usize = HUGE;
const MOST: usize = 32 << 20;
/// How long a fault waits for the shim's lock, which a thread may hold that itself waits for this fault.
const PATIENCE: Duration = Duration::from_millis(20);

/// Without a fault for this long, milliseconds, candidates are unmapped.
const IDLE: i32 = 200;

/// Is the thread to be started?
static DUE: AtomicBool = AtomicBool::new(false);

/// Looks after a new mapping: at first touch when it is large or sparse and the kernel can do that; else
/// now, unless it is sparse.
///
/// # Safety
/// As for `place_range` with a fresh range.
pub unsafe fn settle(state: &mut State, start: usize, bytes: usize, sparse: bool) {
    let wait = sparse || bytes >= state.config.lazy;
    if wait && begin(state, start, bytes) {
        return;
    }
    if !sparse {
        // SAFETY: passed on.
        unsafe { state.place(start, bytes, state.config.unit, Fill::Fresh) };
    }
}

/// Has `start..start + bytes` placed at first touch. `false` when the kernel cannot do that; the range
/// then is as it was.
pub fn begin(state: &mut State, start: usize, bytes: usize) -> bool {
    let fd = FAULTS.load(Ordering::Relaxed);
    if fd < 0 {
        return false;
    }
    if mover::register(fd, start, bytes).is_err() {
        return false;
    }
    // With base pages the kernel's own huge pages would come with other frames. With huge pages a fault must not
    // leave a table of base pages behind, or a huge page would be split on its way in. A kernel without huge
    // pages refuses, which is as good.
    let advice = match state.config.unit {
        Unit::Base => sys::MADV_NOHUGEPAGE,
        Unit::Huge => sys::MADV_HUGEPAGE,
    };
    // SAFETY: this advice changes no content.
    let _ = unsafe { sys::madvise(start, bytes, advice) };
    end(state, start, start + bytes);
    state.lazy.insert(
        start,
        Lazy {
            end: start + bytes,
            next: 0,
            step: LEAST,
        },
    );
    note_range(start, start + bytes);
    true
}

/// `start..end` is no longer to be filled, because it is unmapped or mapped anew.
pub fn end(state: &mut State, start: usize, end: usize) {
    while let Some((&at, lazy)) = state.lazy.range(..end).next_back() {
        if lazy.end <= start {
            return;
        }
        let old_end = lazy.end;
        state.lazy.remove(&at);
        if at < start {
            state.lazy.insert(
                at,
                Lazy {
                    end: start,
                    next: 0,
                    step: LEAST,
                },
            );
        }
        if old_end > end {
            state.lazy.insert(
                end,
                Lazy {
                    end: old_end,
                    next: 0,
                    step: LEAST,
                },
            );
        }
    }
}

/// Before `start..end` is moved or resized: makes it one mapping again, as the program knows it, because the
/// kernel moves no more than one and a registration cuts. `true` when it was to be filled at first touch, and
/// [`begin`] is due afterwards.
pub fn suspend(state: &State, start: usize, end: usize) -> bool {
    let overlaps = state
        .lazy
        .range(..end)
        .next_back()
        .is_some_and(|(_, lazy)| lazy.end > start);
    if overlaps {
        // A refusal shows in the call that follows.
        let _ = mover::unregister(FAULTS.load(Ordering::Relaxed), start, end - start);
    }
    overlaps
}

/// In a forked child, whose memory is not registered and which has no such thread. It gets one of its own soon,
/// see [`start_if_due`]; until then large mappings are placed at once.
pub fn after_fork(state: &mut State) {
    state.lazy.clear();
    mover::close(FAULTS.swap(-1, Ordering::Relaxed));
    DUE.store(true, Ordering::Relaxed);
}

/// Starts the thread after a fork. Called where no allocator is at work: starting a thread allocates, and a
/// mapping may be asked for by an allocator that holds its own locks.
#[inline]
pub fn start_if_due() {
    if DUE.load(Ordering::Relaxed) && DUE.swap(false, Ordering::Relaxed) {
        start();
    }
}

/// Starts the thread; where the kernel has no page moves there is none.
pub fn start() {
    if let Ok(fd) = mover::open_for_faults()
        && start_thread(fd)
    {
        FAULTS.store(fd, Ordering::Relaxed);
    }
}

/// Starts the thread with all signals blocked: they are the program's.
///
/// It is a plain C thread: one of the standard library's registers destructors through the program's own
/// allocator, whose memory this thread has to fill.
fn start_thread(fd: i32) -> bool {
    unsafe extern "C" {
        fn sigfillset(set: *mut [u64; 16]) -> i32;
        fn pthread_sigmask(how: i32, set: *const [u64; 16], old: *mut [u64; 16]) -> i32;
        fn pthread_create(
            thread: *mut usize,
            attributes: *const c_void,
            start: extern "C" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> i32;
        fn pthread_detach(thread: usize) -> i32;
        fn pthread_setname_np(thread: usize, name: *const std::ffi::c_char) -> i32;
    }
    const SIG_SETMASK: i32 = 2;
    let (mut all, mut old) = ([0u64; 16], [0u64; 16]);
    let mut thread = 0usize;
    // SAFETY: both sets are 128 bytes, as the C library's are; the thread takes a number, no pointer; its handle
    // is used while it runs or, once detached, not at all.
    let started = unsafe {
        sigfillset(&mut all);
        pthread_sigmask(SIG_SETMASK, &all, &mut old);
        let started = pthread_create(
            &mut thread,
            std::ptr::null(),
            serve,
            fd as usize as *mut c_void,
        ) == 0;
        pthread_sigmask(SIG_SETMASK, &old, std::ptr::null_mut());
        if started {
            pthread_setname_np(thread, c"varve-faults".as_ptr());
            pthread_detach(thread);
        }
        started
    };
    if !started {
        mover::close(fd);
    }
    started
}

extern "C" fn serve(fd: *mut c_void) -> *mut c_void {
    let fd = fd as usize as i32;
    // An error means that the program has closed the descriptor: the kernel then fills holes by itself.
    while let Ok(event) = mover::next_fault(fd, IDLE) {
        match event {
            FaultEvent::At(address) => answer(fd, address / PAGE * PAGE),
            FaultEvent::Nothing => {
                with_state_within(PATIENCE, |s| s.trim_pools(0));
            }
        }
    }
    FAULTS.store(-1, Ordering::Relaxed);
    with_state(|s| s.trim_pools(0));
    std::ptr::null_mut()
}

fn answer(fd: i32, page: usize) {
    let filled = with_state_within(PATIENCE, |s| fill(s, fd, page)).unwrap_or(false);
    if filled {
        mover::wake(fd, page, PAGE);
        return;
    }
    // Only this page's neighbourhood, so that the next ones are tried again.
    let from = page / LEAST * LEAST;
    if mover::unregister(fd, from, LEAST).is_err() {
        // The neighbourhood reaches beyond the mapping.
        let _ = mover::unregister(fd, page, PAGE);
    }
}

/// Fills the hole around `page`. `false` when the page is still a hole.
fn fill(state: &mut State, fd: i32, page: usize) -> bool {
    let Some((&start, lazy)) = state.lazy.range_mut(..=page).next_back() else {
        return false;
    };
    if page >= lazy.end {
        return false;
    }
    let from = (page / LEAST * LEAST).max(start);
    lazy.step = if from == lazy.next {
        (lazy.step * 2).min(MOST)
    } else {
        LEAST
    };
    let to = (from / LEAST * LEAST + lazy.step).min(lazy.end);
    lazy.next = to;
    let unit = state.config.unit;
    place_holes(state, from, to, unit, Fill::Registered(fd));
    in_memory(page)
}
