//! Samples of objects, for profiles of programs that cannot be traced: where an object is, how large, and the stack above
//! the call that asked for it. They lie in a file that others read while the program runs (`layout`).
//!
//! Each byte that is asked for has the same small chance, so large objects are nearly always among the samples, and the sum
//! of what samples stand for is what the program asked for. Where samples are too many or come too fast, the chance is
//! halved.
//!
//! ```text
//! mod.rs    which objects
//! slots.rs  the file
//! index.rs  from an address to its slot
//! watch.rs  pages of objects, so that the kernel counts their use apart
//! ```

mod index;
mod slots;
mod watch;

use crate::entry::Caller;
use crate::sys;
use crate::thread::{self, Thread};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Whether there is a file for samples.
static ON: AtomicBool = AtomicBool::new(false);

/// A thread's countdown to its next sample. Starts with all zeros.
#[derive(Default)]
pub struct Countdown {
    /// Bytes until the next sample.
    left: Cell<i64>,
    /// State of the random numbers; 0 before the first.
    random: Cell<u64>,
}

/// Begins to take samples if the environment names a file (VARVE_OBJECTS_SAMPLES; the process's number is added to it).
pub fn begin() {
    if let Some(path) = sys::variable(c"VARVE_OBJECTS_SAMPLES") {
        ON.store(slots::open(path), Relaxed);
    }
}

/// Takes no more samples, and says whether it did. Each one takes system calls.
pub fn pause() -> bool {
    ON.swap(false, Relaxed)
}

/// Goes on if it did before.
pub fn resume(was_on: bool) {
    ON.store(was_on, Relaxed);
}

/// In the child of a fork: the objects of before are the parent's samples, and the child begins its own.
pub fn after_fork() {
    if ON.swap(false, Relaxed) {
        slots::leave();
        begin();
    }
}

/// An object was given to a caller.
#[inline(always)]
pub fn given(object: *mut c_void, bytes: usize, caller: Caller) {
    if ON.load(Relaxed) && !object.is_null() {
        count(object as usize, bytes, caller, false);
    }
}

/// A mapping of the program's own was given to it.
pub fn mapped(at: usize, bytes: usize, caller: Caller) {
    if ON.load(Relaxed) {
        count(at, bytes, caller, true);
    }
}

/// An object is about to be freed.
#[inline(always)]
pub fn taken(object: *mut c_void) {
    if ON.load(Relaxed) && index::may_have(object as usize) {
        sys::keeping_errno(|| slots::forget(object as usize));
    }
}

/// A range of addresses is about to be freed.
pub fn unmapped(at: usize, bytes: usize) {
    if ON.load(Relaxed) {
        sys::keeping_errno(|| slots::forget_mappings(at, at.saturating_add(bytes)));
    }
}

/// A mapping has moved, or has another size.
pub fn moved(from: usize, to: usize, bytes: usize) {
    if ON.load(Relaxed) {
        slots::move_mapping(from, to, bytes);
    }
}

#[inline]
fn count(at: usize, bytes: usize, caller: Caller, mapped: bool) {
    let Some(thread) = thread::known() else {
        return;
    };
    let left = thread.samples.left.get() - bytes as i64;
    thread.samples.left.set(left);
    if left < 0 {
        sys::keeping_errno(|| sample(thread, at, bytes, caller, mapped));
    }
}

#[cold]
fn sample(thread: &Thread, at: usize, bytes: usize, caller: Caller, mapped: bool) {
    let countdown = &thread.samples;
    let interval = slots::interval();
    if countdown.random.get() == 0 {
        countdown.random.set(seed(thread));
        let left = countdown.distance(interval) - bytes as i64;
        countdown.left.set(left);
        if left >= 0 {
            return;
        }
    }
    countdown.left.set(countdown.distance(interval));
    let bytes = bytes.max(1);
    slots::add(
        &slots::Object {
            at,
            bytes,
            weight: bytes as f64 / chance(bytes, interval),
            mapped,
            caller,
            stack_end: thread.stack_end(caller.stack),
        },
        || countdown.next(),
    );
}

/// The chance with which an object is a sample, if a point falls on every `interval` bytes.
fn chance(bytes: usize, interval: usize) -> f64 {
    -(-(bytes as f64) / interval as f64).exp_m1()
}

/// Another one for each thread and start.
fn seed(thread: &Thread) -> u64 {
    slots::nanoseconds() ^ (std::ptr::from_ref(thread) as u64).rotate_left(32) | 1
}

impl Countdown {
    /// A random number from 0 to 1, without both.
    fn next(&self) -> f64 {
        // Marsaglia's xorshift: never 0.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        ((x >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Bytes to the next point.
    fn distance(&self, interval: usize) -> i64 {
        (-self.next().ln() * interval as f64) as i64 + 1
    }
}
