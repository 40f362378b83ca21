//! The budget of fast memory.
//!
//! Groups are in order of worth. A group may take fast memory while what is left of the budget is more than what is still
//! promised to worthier ones. Threads report what they took in steps, so a budget can be exceeded by a step per thread.

use crate::format::{FAST, OWN_GROUPS};
use crate::map::Map;
use crate::{share, sys};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};

struct Group {
    /// Bytes in fast memory.
    live: AtomicI64,
    /// Bytes that it may take now; as little as there is for groups of slow memory.
    room: AtomicI64,
}

static GROUPS: AtomicPtr<Group> = AtomicPtr::new(std::ptr::null_mut());
static TOTAL: AtomicI64 = AtomicI64::new(0);
static STEP: AtomicU64 = AtomicU64::new(0);
static DECIDING: AtomicBool = AtomicBool::new(false);
/// Before anything is placed.
pub fn begin(map: &Map) -> Result<(), &'static str> {
    let bytes = (map.groups() * size_of::<Group>()).next_multiple_of(sys::PAGE);
    let at = sys::zeroed(bytes);
    if at == 0 {
        return Err("no memory for the budget");
    }
    GROUPS.store(at as *mut Group, Ordering::Release);
    for slow in (0..map.groups()).filter(|g| map.tier(*g) != FAST) {
        group(slow).room.store(i64::MIN, Relaxed);
    }
    STEP.store((map.budget() / 1024).clamp(4 << 10, 1 << 20), Relaxed);
    share::begin(map);
    decide();
    Ok(())
}

/// In the child of a fork: what the parent has counts as the parent's, and pages that the child writes are few at first.
pub fn after_fork() {
    DECIDING.store(false, Relaxed);
    share::after_fork();
}

fn group(group: usize) -> &'static Group {
    // SAFETY: one for each group of the map, made before anything was placed.
    unsafe { &*GROUPS.load(Ordering::Acquire).add(group) }
}

/// Bytes of fast memory that a thread may take before it tells.
#[inline]
pub fn step() -> u64 {
    STEP.load(Relaxed)
}

/// Bytes of fast memory that a group may take; `i64::MIN` if it is of slow memory.
#[inline]
pub fn room(of: usize) -> i64 {
    group(of).room.load(Relaxed)
}

/// Whether a group is to be in fast memory.
#[inline]
pub fn is_fast(of: usize) -> bool {
    room(of) != i64::MIN
}

/// Bytes in fast memory.
pub fn total() -> i64 {
    TOTAL.load(Relaxed)
}

/// A group allocated (or freed, negative) fast memory.
pub fn add(to: usize, bytes: i64) {
    group(to).live.fetch_add(bytes, Relaxed);
    TOTAL.fetch_add(bytes, Relaxed);
}

/// Decides anew. If another thread is at it, its answer will do.
pub fn decide() {
    let Some(map) = crate::map::map() else { return };
    if DECIDING.swap(true, Ordering::Acquire) {
        return;
    }
    let total = TOTAL.load(Relaxed);
    let others = share::others(total);
    let left = map.budget() as i64 - total - others;
    let (sites, own) = (map.groups() - OWN_GROUPS, map.groups() - OWN_GROUPS);
    let mut promised = 0;
    for index in (0..sites).filter(|g| map.tier(*g) == FAST) {
        let group = group(index);
        group.room.store(left - promised, Relaxed);
        promised += (map.promised(index) as i64 - group.live.load(Relaxed)).max(0);
    }
    // Memory without a site has the least benefit; memory that the program requested by name has the most.
    if map.tier(own) == FAST {
        group(own).room.store(left - promised, Relaxed);
    }
    group(own + 1).room.store(left, Relaxed);
    DECIDING.store(false, Ordering::Release);
}
