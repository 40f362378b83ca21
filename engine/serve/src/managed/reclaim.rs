//! Reclaiming room when the region is full: collect its garbage if that may help, and keep enough for removals, which need a little room too.

use super::Managed;
use crate::cache::OVERHEAD;
use crate::store::{Cursor, Meta, Result, StoreError};
use std::time::{Duration, Instant};
use varve_runtime::{Error as EngineError, TrapKind};

/// Bytes that are set aside for removals.
const ASIDE: u64 = 256 << 10;
/// Collecting all of a region's garbage takes at most one part in this many of the time, unless it takes no longer than other requests may, or there
/// is much garbage for sure: more than one part in [`MUCH`] of the bytes in use.
const SHARE: u32 = 20;
const SHORT: Duration = Duration::from_millis(10);
const MUCH: u64 = 16;

/// Statistics of a region's room.
#[derive(Default)]
pub(crate) struct Reclaim {
    /// Bytes of values that were removed or replaced since all garbage was collected, and of those that were added.
    removed: u64,
    added: u64,
    /// Bytes that had become durable when all garbage was collected.
    moved: u64,
    /// When all garbage was collected last, and how long that took.
    last: Option<(Instant, Duration)>,
    /// The reserve that was set aside is in use.
    in_use: bool,
}

impl Reclaim {
    /// Whether collecting all garbage may make room and is worth its time.
    fn is_worth_it(&self, used: u64, moved: u64) -> bool {
        // Bytes that became durable and belong to no value were replaced on the way to one, or belong to a failed attempt.
        let garbage = (moved - self.moved + self.removed).saturating_sub(self.added);
        let rested =
            |(at, took): (Instant, Duration)| took <= SHORT || at.elapsed() >= SHARE * took;
        garbage > used / MUCH || (garbage > 0 && self.last.is_none_or(rested))
    }
}

/// Whether the program's own heap has no room.
pub(crate) fn is_heap_full(e: &EngineError) -> bool {
    matches!(e, EngineError::Trap(trap) if trap.kind == TrapKind::OutOfMemory)
}

/// Whether there is no room in the region, or in its medium.
pub(crate) fn is_region_full(e: &EngineError) -> bool {
    matches!(e, EngineError::Durable(e) if e.is_full())
}

impl Managed {
    /// Keeps a value; if there is no room, garbage is collected first.
    pub(crate) fn put_with_room(
        &mut self,
        key: &[u8],
        meta: Meta,
        value: &[u8],
    ) -> Result<Option<usize>, EngineError> {
        if self.reclaim.in_use {
            self.set_aside()?;
        }
        let outcome = match self.try_put(key, meta, value) {
            Err(e) if is_region_full(&e) && self.collect_if_worth_it() => {
                self.try_put(key, meta, value)
            }
            outcome => outcome,
        };
        if let Ok(before) = &outcome {
            self.reclaim.added += value.len() as u64 + OVERHEAD;
            self.reclaim.removed += before.map_or(0, |bytes| bytes as u64 + OVERHEAD);
        }
        outcome
    }

    /// Sets room aside for removals.
    pub(crate) fn set_aside(&mut self) -> Result<(), EngineError> {
        self.reclaim.in_use = true;
        let outcome = match self.store.set_durable_aside(ASIDE) {
            Err(e) if is_region_full(&e) && self.collect_if_worth_it() => {
                self.store.set_durable_aside(ASIDE)
            }
            outcome => outcome,
        };
        outcome?;
        self.reclaim.in_use = false;
        Ok(())
    }

    /// Runs an operation that makes `bytes` bytes of values garbage: it may use the reserve.
    pub(crate) fn freeing<T>(
        &mut self,
        bytes: impl FnOnce(&T) -> u64,
        mut work: impl FnMut(&mut Managed) -> Result<T, EngineError>,
    ) -> Result<T> {
        let mut outcome = work(self);
        if matches!(&outcome, Err(e) if is_region_full(e)) {
            self.store.use_durable_aside();
            self.reclaim.in_use = true;
            outcome = work(self);
        }
        if matches!(&outcome, Err(e) if is_region_full(e)) {
            self.collect();
            outcome = work(self);
        }
        let outcome = outcome?;
        self.reclaim.removed += bytes(&outcome);
        Ok(outcome)
    }

    fn collect_if_worth_it(&mut self) -> bool {
        let used = self.store.durable_used();
        let worth_it = self.reclaim.is_worth_it(used, self.moved_bytes());
        if worth_it {
            self.collect();
        }
        worth_it
    }

    fn collect(&mut self) {
        let begun = Instant::now();
        // A cursor over a map that never changes holds the map as it was. If the program fails in this, the next request reports it.
        let _ = self.call(self.forget, Cursor::Sweep as i32);
        self.store.collect_durable();
        self.reclaim = Reclaim {
            last: Some((begun, begun.elapsed())),
            moved: self.moved_bytes(),
            in_use: self.reclaim.in_use,
            ..Reclaim::default()
        };
    }

    fn moved_bytes(&self) -> u64 {
        let stats = self.store.durable_stats();
        stats.map_or(0, |(durable, _)| durable.moved_bytes)
    }
}

impl From<EngineError> for StoreError {
    fn from(e: EngineError) -> Self {
        match is_heap_full(&e) || is_region_full(&e) {
            true => StoreError::Full,
            false => StoreError::Failed(e),
        }
    }
}
