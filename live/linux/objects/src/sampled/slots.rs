//! The file of samples. One thread at a time changes it; a reader sees by serial numbers whether a slot stayed the
//! same.

use super::{chance, index, watch};
use crate::entry::Caller;
use crate::layout::{
    ADDRESS, BORN, BYTES, CHANGING, COPIED, DIED, DROPPED, FILE_BYTES, FRAME, FREED, HEADER_WORDS,
    INTERVAL, LIFE, LIVE, MAGIC, MAPPED, PAGES, RANGE, RETURN, SERIAL, SLOT_WORDS, SLOTS, STACK,
    STACK_BYTES, STACKS, STATE, WATCHED, WEIGHT,
};
use crate::memory;
use crate::sys::{self, PAGE};
use std::arch::asm;
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Bytes between points in the beginning, and at least.
const LEAST: usize = 64 << 10;
/// Samples in [`PACE_NS`] from which they come too fast, and under which they may come faster.
const FAST: u64 = 512;
const SLOW: u64 = 64;
const PACE_NS: u64 = 250_000_000;

/// Where the file is; 0 for nowhere.
static FILE: AtomicUsize = AtomicUsize::new(0);
/// The thread that is at the slots, by its pointer; 0 for none.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
static LAST_SERIAL: AtomicU64 = AtomicU64::new(0);
/// Bytes that all samples so far stand for.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static LIVING: AtomicUsize = AtomicUsize::new(0);
static MAPPINGS: AtomicUsize = AtomicUsize::new(0);
/// Where the search for a slot goes on, so that what was freed stays to be read for a while.
static CURSOR: AtomicUsize = AtomicUsize::new(0);
/// Bytes between points at which there was room for all samples.
static FLOOR: AtomicUsize = AtomicUsize::new(LEAST);
/// Time of the last check of the pace, and samples since.
static PACE_BEGAN: AtomicU64 = AtomicU64::new(0);
static PACE: AtomicU64 = AtomicU64::new(0);

/// An object that is a sample.
pub struct Object {
    pub at: usize,
    pub bytes: usize,
    /// Bytes that it stands for.
    pub weight: f64,
    pub mapped: bool,
    pub caller: Caller,
    /// End of the stack; 0 if it is not known.
    pub stack_end: usize,
}

pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: filled in by the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn word(number: usize) -> &'static AtomicU64 {
    // SAFETY: within the file, which is mapped as long as samples are taken; a word of it is one at any time.
    unsafe { &*(FILE.load(Relaxed) as *const AtomicU64).add(number) }
}

fn of(slot: usize, field: usize) -> &'static AtomicU64 {
    word(HEADER_WORDS + slot * SLOT_WORDS + field)
}

fn get(slot: usize, field: usize) -> usize {
    of(slot, field).load(Relaxed) as usize
}

/// Makes the file, named as the path with the process's number; false if that cannot be.
pub fn open(path: &CStr) -> bool {
    let mut name = [0u8; 4096];
    let path = path.to_bytes();
    if path.len() + 16 > name.len() {
        return false;
    }
    name[..path.len()].copy_from_slice(path);
    // SAFETY: asks for a number.
    let process = unsafe { libc::getpid() } as usize;
    decimal(process, &mut name[path.len()..]);
    let at = sys::shared_file(&name, FILE_BYTES);
    if at == 0 {
        return false;
    }
    FILE.store(at, Relaxed);
    word(LIFE).store(nanoseconds(), Relaxed);
    word(INTERVAL).store(LEAST as u64, Relaxed);
    let (start, end) = memory::range();
    word(RANGE).store(start as u64, Relaxed);
    word(RANGE + 1).store(end as u64, Relaxed);
    watch::begin();
    word(0).store(MAGIC, Release);
    true
}

/// Writes `.` and a number.
fn decimal(number: usize, to: &mut [u8]) {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut left = number;
    to[0] = b'.';
    for place in to[1..=digits].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

/// In the child of a fork: the file is the parent's.
pub fn leave() {
    let at = FILE.swap(0, Relaxed);
    // SAFETY: the mapping of `open`; this is the only thread, and it is done with it.
    unsafe { sys::unmap(at, FILE_BYTES) };
    HOLDER.store(0, Relaxed);
    for count in [&LIVING, &MAPPINGS, &CURSOR] {
        count.store(0, Relaxed);
    }
    FLOOR.store(LEAST, Relaxed);
    index::clear();
    watch::forget_all();
}

/// Bytes between points.
pub fn interval() -> usize {
    word(INTERVAL).load(Relaxed) as usize
}

/// The right to change slots.
struct Held;

/// Waits for it; `None` for a handler of signals that interrupted who has it.
fn hold() -> Option<Held> {
    let own: usize;
    // SAFETY: the first word of a thread's block is its own address, by the processor's ABI.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) own, options(nostack, readonly, preserves_flags))
    };
    while let Err(holder) = HOLDER.compare_exchange_weak(0, own, Acquire, Relaxed) {
        if holder == own {
            return None;
        }
        // SAFETY: lets others run.
        unsafe { libc::sched_yield() };
    }
    Some(Held)
}

impl Drop for Held {
    fn drop(&mut self) {
        HOLDER.store(0, Release);
    }
}

/// Follows an object. `random` gives numbers between 0 and 1.
pub fn add(object: &Object, mut random: impl FnMut() -> f64) {
    let Some(_held) = hold() else { return };
    for stale in find(object.at) {
        end(stale, DROPPED);
    }
    ALLOCATED.fetch_add(object.weight as u64, Relaxed);
    pace();
    if LIVING.load(Relaxed) >= SLOTS - SLOTS / 8 {
        thin(&mut random);
    }
    let slots = (0..SLOTS).map(|i| (CURSOR.load(Relaxed) + i) % SLOTS);
    let Some(slot) = { slots }.find(|slot| of(*slot, STATE).load(Relaxed) != LIVE) else {
        return;
    };
    CURSOR.store(slot + 1, Relaxed);
    of(slot, SERIAL).store(0, Release);
    let watched = watch_pages(slot, object, random);
    for (field, value) in [
        (STATE, LIVE),
        (ADDRESS, object.at as u64),
        (BYTES, object.bytes as u64),
        (WEIGHT, object.weight as u64),
        (MAPPED, u64::from(object.mapped)),
        (RETURN, object.caller.address as u64),
        (STACK, object.caller.stack as u64),
        (FRAME, object.caller.frame as u64),
        (COPIED, copy_stack(slot, object) as u64),
        (BORN, ALLOCATED.load(Relaxed)),
        (DIED, 0),
        (PAGES, watched as u64),
    ] {
        of(slot, field).store(value, Relaxed);
    }
    let serial = LAST_SERIAL.fetch_add(1, Relaxed) + 1;
    of(slot, SERIAL).store(serial, Release);
    LIVING.fetch_add(1, Relaxed);
    MAPPINGS.fetch_add(usize::from(object.mapped), Relaxed);
    index::add(object.at, slot);
}

/// Pages spread over an object, each at random in its part. A mapping of the program's own is left whole, since it may be
/// resized by calls that want it so.
fn watch_pages(slot: usize, object: &Object, mut random: impl FnMut() -> f64) -> usize {
    if object.mapped {
        return 0;
    }
    let parts = (object.bytes / interval()).clamp(1, WATCHED);
    let each = object.bytes as f64 / parts as f64;
    let mut watched = 0;
    for part in 0..parts {
        let at = object.at + ((part as f64 + random()) * each) as usize;
        let page = at / PAGE * PAGE;
        if watch::watch(page) {
            of(slot, PAGES + 1 + watched).store(page as u64, Relaxed);
            watched += 1;
        }
    }
    watched
}

/// Keeps the stack above a call; how many bytes of it.
fn copy_stack(slot: usize, object: &Object) -> usize {
    let from = object.caller.stack;
    let bytes = object.stack_end.saturating_sub(from).min(STACK_BYTES) / 8 * 8;
    if bytes > 0 {
        let to = FILE.load(Relaxed) + STACKS + slot * STACK_BYTES;
        // SAFETY: between the caller's stack pointer and the end of this thread's stack, which is mapped; and within the
        // slot's part of the file.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
    }
    bytes
}

/// The slots that follow an object at this address: at most one, but for what a handler of signals missed.
fn find(address: usize) -> impl Iterator<Item = usize> {
    // Ending one changes the chain that is walked, in a way that does not lose those behind it.
    index::chain(address).filter(move |slot| get(*slot, ADDRESS) == address)
}

/// An object is not followed any more.
fn end(slot: usize, state: u64) {
    for page in 0..get(slot, PAGES) {
        watch::leave(get(slot, PAGES + 1 + page));
    }
    index::remove(get(slot, ADDRESS), slot);
    of(slot, DIED).store(ALLOCATED.load(Relaxed), Relaxed);
    of(slot, STATE).store(state, Release);
    LIVING.fetch_sub(1, Relaxed);
    MAPPINGS.fetch_sub(get(slot, MAPPED), Relaxed);
}

/// The object at an address is about to be freed.
pub fn forget(address: usize) {
    let Some(_held) = hold() else { return };
    find(address).for_each(|slot| end(slot, FREED));
}

/// Mappings that begin in a range are about to be freed.
pub fn forget_mappings(start: usize, behind: usize) {
    if MAPPINGS.load(Relaxed) == 0 {
        return;
    }
    let Some(_held) = hold() else { return };
    for slot in 0..SLOTS {
        let begins = (start..behind).contains(&get(slot, ADDRESS));
        if begins && of(slot, STATE).load(Relaxed) == LIVE && get(slot, MAPPED) == 1 {
            end(slot, FREED);
        }
    }
}

/// A mapping is elsewhere now, or has another size. It stands for as much more as it has grown.
pub fn move_mapping(from: usize, to: usize, bytes: usize) {
    if MAPPINGS.load(Relaxed) == 0 {
        return;
    }
    let Some(_held) = hold() else { return };
    for slot in find(from).filter(|slot| get(*slot, MAPPED) == 1) {
        let weight = get(slot, WEIGHT) as f64 * bytes as f64 / get(slot, BYTES) as f64;
        index::remove(from, slot);
        for (field, value) in [(ADDRESS, to), (BYTES, bytes), (WEIGHT, weight as usize)] {
            of(slot, field).store(value as u64, Relaxed);
        }
        index::add(to, slot);
    }
}

/// Halves the chance of samples that come too fast, and doubles that of few.
fn pace() {
    let count = PACE.fetch_add(1, Relaxed) + 1;
    let now = nanoseconds();
    let over = now.saturating_sub(PACE_BEGAN.load(Relaxed)) >= PACE_NS;
    if !over && count < FAST {
        return;
    }
    let interval = word(INTERVAL);
    if !over {
        interval.store(interval.load(Relaxed) * 2, Relaxed);
    } else if count < SLOW {
        let floor = FLOOR.load(Relaxed) as u64;
        interval.store((interval.load(Relaxed) / 2).max(floor), Relaxed);
    }
    PACE_BEGAN.store(now, Relaxed);
    PACE.store(0, Relaxed);
}

/// Lets samples go until a quarter of the slots is free: as if their chances had been smaller from the beginning.
fn thin(random: &mut impl FnMut() -> f64) {
    word(CHANGING).fetch_add(1, Release);
    while LIVING.load(Relaxed) > SLOTS / 4 * 3 {
        let interval = interval() * 2;
        word(INTERVAL).store(interval as u64, Relaxed);
        FLOOR.store(interval, Relaxed);
        for slot in (0..SLOTS).filter(|slot| of(*slot, STATE).load(Relaxed) == LIVE) {
            let bytes = get(slot, BYTES);
            let before = bytes as f64 / get(slot, WEIGHT) as f64;
            let now = chance(bytes, interval);
            if now >= before {
            } else if random() * before < now {
                of(slot, WEIGHT).store((bytes as f64 / now) as u64, Relaxed);
            } else {
                end(slot, DROPPED);
            }
        }
    }
    word(CHANGING).fetch_add(1, Release);
}
