//! Durable garbage: found a little at a time while the program goes on.
//!
//! ```text
//! used     threshold                      no collection below
//!    begin: what roots and the program refer to; no line that was taken before gets new objects
//!    some:  in step with allocation, so that marking is done before as much again is in use
//!    end:   lines are free that nothing was found in and that were not taken since
//! ```
//!
//! Nothing moves and nothing is written: which lines are free is not in the file, except in the marks of sealed pages.

use super::{LEAST_GARBAGE, Space};
use crate::mark::{Marker, View};
use crate::walk::{Walk, Walker};
use varve_heap::Ref;

/// A collection begins when one part in this many of the live bytes was allocated since the last, and ends by the time that half as much more was. So
/// a file has a quarter more than the live bytes, and each byte that becomes durable has four to six followed.
const GARBAGE: u64 = 6;
/// Fewest bytes that are marked at a time, so that it is worth beginning.
const LEAST_STEP: u64 = 32 << 10;
/// Most references that are followed at a time: some tenths of a millisecond.
const MOST_REFERENCES: u64 = 2048;

/// A durable collection in progress.
pub(crate) struct Cycle {
    marker: Marker,
    /// Bytes that had become durable when it began.
    moved: u64,
    /// Bytes to be marked for each that becomes durable.
    pace: f64,
}

impl Space {
    /// Whether enough was allocated for a collection to be worth it.
    pub fn wants_collection(&self) -> bool {
        self.depth == 0 && self.cycle.is_none() && self.alloc.used() > self.threshold
    }

    /// Whether a durable collection is in progress.
    pub fn is_collecting(&self) -> bool {
        self.cycle.is_some()
    }

    /// Begins marking from the roots and from the program's references, which are given. Objects that they do not reach now are garbage. Does nothing
    /// in a failure-atomic region, or if that has begun already.
    pub fn begin_collection(&mut self, held: &[Ref]) {
        if self.depth > 0 || self.cycle.is_some() {
            return;
        }
        // Between regions the log has nothing.
        for (at, bytes) in self.log.give_up() {
            self.alloc.free(at, bytes);
        }
        self.alloc.begin_cycle();
        let used = self.alloc.used();
        let room = self.image.capacity().saturating_sub(used);
        let until = self.new_until(used).min(room / 2).max(1);
        let mut cycle = Cycle {
            marker: Marker::new(self.image.len(), self.addresses.0.bytes()),
            moved: self.stats.moved_bytes,
            pace: used as f64 / until as f64,
        };
        let roots = self.roots();
        let roots = roots.iter().map(|root| &root.object);
        let named = self.records.named.iter().map(|n| &n.object);
        for &r in roots.chain(named).chain(held) {
            // References of the program may be outside the region.
            if r.is_durable() {
                cycle.marker.follow(r);
            }
        }
        self.cycle = Some(cycle);
    }

    /// The bytes that may become durable until marking is done, if `used` bytes are in use when it begins.
    pub(super) fn new_until(&self, used: u64) -> u64 {
        (used / (2 * GARBAGE)).max(LEAST_GARBAGE / 2)
    }

    /// Bytes that should be marked by now, given those that became durable since marking began; none if a step is not worth it yet.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        let cycle = self.cycle.as_ref()?;
        let made = self.stats.moved_bytes - cycle.moved;
        let due = (made as f64 * cycle.pace) as u64;
        let bytes = due.checked_sub(cycle.marker.bytes)?;
        (bytes >= LEAST_STEP).then_some(bytes)
    }

    /// Marks the bytes that are due, but for at most some tenths of a millisecond.
    pub fn collect_some(&mut self) {
        if let Some(bytes) = self.due() {
            self.step(bytes, MOST_REFERENCES);
        }
    }

    /// Marks up to `bytes` bytes of reachable objects, or about `references` references.
    pub fn step(&mut self, bytes: u64, references: u64) {
        let Some(mut cycle) = self.cycle.take() else {
            return;
        };
        let done = cycle.marker.step(self.view(), bytes, references);
        match done {
            true => self.end_collection(cycle.marker),
            false => self.cycle = Some(cycle),
        }
    }

    /// Completes the durable collection now; returns whether there was one.
    pub fn finish_collection(&mut self) -> bool {
        let begun = self.cycle.is_some();
        self.step(u64::MAX, u64::MAX);
        begun
    }

    /// Frees objects that neither the roots nor the program's references, which are given, can reach.
    pub fn collect(&mut self, held: &[Ref]) {
        self.finish_collection();
        self.begin_collection(held);
        self.finish_collection();
    }

    fn end_collection(&mut self, marker: Marker) {
        match &marker.damage {
            None => {
                self.alloc.end_cycle(self.first, Some(marker.granules()));
                self.take_marks();
                for &(from, to) in &self.aside {
                    self.alloc.take_object(from, to - from);
                }
                self.commit.alive = marker.bytes;
                self.threshold = self.threshold_for(self.alloc.used());
                self.stats.collections += 1;
                self.holes.due = true;
            }
            // The file stays unchanged, so that the next open reports the damage. Allocations must not scan it again.
            Some(what) => {
                self.alloc.end_cycle(self.first, None);
                eprintln!(
                    "{}: garbage cannot be collected, as the file is damaged: {what}",
                    self.path
                );
                self.threshold = 2 * self.alloc.used();
            }
        }
    }

    /// Before bytes of an object are overwritten: during marking, the objects that they refer to are kept.
    #[inline]
    pub(crate) fn stored_over(&mut self, object: u64, at: u64, bytes: u64) {
        if self.cycle.is_some() {
            self.keep_stored_over(object, at, bytes);
        }
    }

    #[cold]
    fn keep_stored_over(&mut self, object: u64, at: u64, bytes: u64) {
        if let Some(mut cycle) = self.cycle.take() {
            cycle.marker.stored_over(self.view(), object, at, bytes);
            self.cycle = Some(cycle);
        }
    }

    fn view(&self) -> View<'_> {
        View {
            image: &self.image,
            infos: &self.infos,
            addresses: self.addresses,
            first: self.first,
            alloc: &self.alloc,
        }
    }

    /// Takes over the results of a walk: all other room is free.
    pub(super) fn adopt(&mut self, walk: &Walk) {
        self.alloc.clear_from(self.first);
        // Between regions the log has nothing; its continuations are free as all else that is not live.
        self.log.give_up();
        self.take_marks();
        for &at in &walk.objects {
            let ty = varve_heap::Header(self.image.u64(at)).type_index();
            let info = &self.infos[ty as usize];
            let bytes = crate::walk::size_of_object(&self.image, at, info);
            self.alloc.take_object(at, bytes);
        }
        self.commit.alive = walk.bytes;
        self.threshold = self.threshold_for(self.alloc.used());
    }

    /// The bytes that may be in use before the next durable collection, if `alive` bytes are alive. Less if the room for as much again is missing.
    pub(super) fn threshold_for(&self, alive: u64) -> u64 {
        let room = self.image.capacity().saturating_sub(alive);
        alive + (alive / GARBAGE).max(LEAST_GARBAGE).min(room / 2)
    }

    /// Follows all references from the roots and those that the program holds.
    pub(crate) fn walk(&self, held: &[Ref]) -> Walk {
        let walker = Walker::new(
            &self.image,
            &self.tables,
            &self.infos,
            &self.records.late,
            self.first,
            self.addresses.0,
        );
        let named = self.records.named.iter().map(|n| &n.object);
        let held: Vec<Ref> = held.iter().chain(named).copied().collect();
        walker.run(&self.roots(), &held)
    }

    /// Follows all references from the roots, and reports damage.
    pub fn check(&self) -> Walk {
        self.walk(&[])
    }
}
