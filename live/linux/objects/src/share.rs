//! This process's part of the file that the processes of a run share: its part of the budget, and what its groups have.

use crate::ledger::RunLedger;
use crate::map::Map;
use crate::{memory, sys};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the file is mapped; 0 for nowhere.
static START: AtomicUsize = AtomicUsize::new(0);
static GROUPS: AtomicUsize = AtomicUsize::new(0);
const NONE: usize = usize::MAX;
/// This process's slot.
static OWN: AtomicUsize = AtomicUsize::new(NONE);

/// Before anything is placed, of groups with ranges that are usable.
pub fn begin(map: &Map) {
    let file = sys::variable(c"VARVE_OBJECTS_SHARE").and_then(|file| sys::map_file(file, true));
    let Some((start, bytes)) = file else { return };
    if bytes >= RunLedger::bytes(map.groups()) {
        // Most of it is the rows of other processes.
        sys::read_no_more(start, bytes);
        GROUPS.store(map.groups(), Relaxed);
        START.store(start, Release);
        join();
    }
}

fn ledger() -> Option<RunLedger> {
    let start = START.load(Acquire);
    // SAFETY: a shared mapping with room for that many groups, never unmapped.
    (start != 0).then(|| unsafe { RunLedger::at(start, GROUPS.load(Relaxed)) })
}

fn join() {
    let Some(ledger) = ledger() else { return };
    // SAFETY: asks for a number.
    let process = unsafe { libc::getpid() } as u64;
    let slot = ledger.join(process);
    if let Some(slot) = slot {
        let base = &ledger.slot(slot).base;
        base.store(memory::base() as u64, Relaxed);
    }
    OWN.store(slot.unwrap_or(NONE), Relaxed);
}

/// In the child of a fork: what the parent has is the parent's.
pub fn after_fork() {
    join();
}

/// This process needs nothing any more.
pub fn end() {
    let slot = OWN.swap(NONE, Ordering::AcqRel);
    if let Some(ledger) = ledger()
        && slot != NONE
    {
        ledger.leave(slot);
    }
}

/// Tells how much this process takes of the budget, and returns what others take.
pub fn others(own_bytes: i64) -> i64 {
    let Some(ledger) = ledger() else { return 0 };
    let own = OWN.load(Relaxed);
    let mut others = 0;
    for (index, slot) in ledger.slots() {
        match slot.process.load(Relaxed) {
            _ if index == own => slot.fast_bytes.store(own_bytes, Relaxed),
            0 => {}
            _ => others += slot.fast_bytes.load(Relaxed).max(0),
        }
    }
    others
}

/// A group's memory in a tier changed by `bytes`; meanwhile it was `high` bytes more than before.
pub fn changed(group: usize, tier: usize, bytes: i64, high: i64) {
    let own = OWN.load(Relaxed);
    if let Some(ledger) = ledger()
        && own != NONE
        && (bytes, high) != (0, 0)
    {
        ledger.changed(own, group, tier, bytes, high);
    }
}

/// A group was given more objects and bytes by tier, and the number of these objects that were refused fast memory.
pub fn given(group: usize, objects: u64, bytes: [u64; 2], refused: u64) {
    let Some(ledger) = ledger() else { return };
    let line = ledger.line(group);
    let sums = [&line.objects, &line.given[0], &line.given[1], &line.refused];
    for (sum, more) in sums.into_iter().zip([objects, bytes[0], bytes[1], refused]) {
        if more != 0 {
            sum.fetch_add(more, Relaxed);
        }
    }
}

/// Looks whether there is more memory in use than ever. Returns how much more the caller may take until it is to look again.
pub fn top() -> i64 {
    /// Bytes: smaller tops are not worth looking for.
    const LEAST: i64 = 4 << 10;
    let own = OWN.load(Relaxed);
    match ledger() {
        Some(ledger) if own != NONE => {
            let process = ledger.slot(own).process.load(Relaxed);
            ledger.top(process).max(LEAST)
        }
        _ => i64::MAX,
    }
}
