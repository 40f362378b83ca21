//! Where a copy goes: the plan's answer, and room there.

use std::sync::atomic::Ordering;

use super::{ALLOWANCE, Counts, Worker};
use crate::align::Aligned;
use crate::header::Header;
use crate::layout::*;
use crate::observer::Observer;
use crate::plan::{Origin, Places, Space};
use crate::reference::Ref;
use varve_pima::Tier;

impl<P: Places, O: Observer, A: Aligned, const FULL: bool, const PAR: bool>
    Worker<'_, '_, P, O, A, FULL, PAR>
{
    /// Room for a copy, and the collector bits it will have. `None`: it may stay where it is, and must.
    #[inline(always)]
    pub(super) fn room(&mut self, header: Header, bytes: u64, from: Origin) -> Option<(Ref, u8)> {
        let trace = self.trace;
        let bits = UNLOGGED | self.mark;
        let large = bytes >= LARGE_THRESHOLD;
        let mut space = trace.plan.place(header, large, from);
        if P::SEVERAL && space == Space::Observer {
            if let Some(to) = self.room_to_wait(bytes) {
                self.counts.observed += bytes;
                return Some((to, bits));
            }
            space = trace
                .plan
                .place(header.unwritten(), large, Origin::Observer);
        }
        let Space::Old(tier) = space else {
            unreachable!("only survivors of the nursery wait");
        };
        let to = usize::from(tier.0);
        if let Origin::Old(now) = from {
            return self.room_to_move(header, bytes, now, tier);
        }
        if P::SEVERAL && header.temperature() & HOT != 0 {
            self.count_hot(tier, bytes);
        }
        match from {
            Origin::Observer if P::SEVERAL => self.counts.sorted[to] += bytes,
            _ => self.counts.promoted[to] += bytes,
        }
        // The address range that is kept for collections holds a whole nursery: see `Chunks` and
        // `Config::emergency_chunks`.
        if large {
            let to = trace.large[to]
                .alloc(trace.tables, bytes, true)
                .expect("collections keep room for a nursery");
            return Some((self.memory.reference(to.at), bits | LARGE));
        }
        let to = self.bumps[to].alloc(&trace.mature[to], trace.tables, bytes);
        let to = to.expect("collections keep room for a nursery");
        Some((self.memory.reference(to), bits))
    }

    /// Room in a tier for an old object that is in another one, or in a block that is to be emptied.
    #[inline(always)]
    fn room_to_move(
        &mut self,
        header: Header,
        bytes: u64,
        now: Tier,
        tier: Tier,
    ) -> Option<(Ref, u8)> {
        let (trace, index) = (self.trace, usize::from(tier.0));
        if self.allowance < bytes as i64 {
            let more = ALLOWANCE.max(bytes as i64);
            if trace.budget.fetch_sub(more, Ordering::Relaxed) < more {
                // A smaller one may still find room.
                trace.budget.fetch_add(more, Ordering::Relaxed);
                return None;
            }
            self.allowance += more;
        }
        let bits = UNLOGGED | self.mark;
        let (at, bits) = match P::SEVERAL && header.has(LARGE) {
            true => (
                trace.large[index].alloc(trace.tables, bytes, false)?.at,
                bits | LARGE,
            ),
            false => (
                self.bumps[index].alloc(&trace.mature[index], trace.tables, bytes)?,
                bits,
            ),
        };
        self.allowance -= bytes as i64;
        if P::SEVERAL && header.temperature() & HOT != 0 {
            self.count_hot(tier, bytes);
        }
        match P::SEVERAL && now != tier {
            true => self.counts.moved[index] += bytes,
            false => self.counts.evacuated += bytes,
        }
        Some((self.memory.reference(at), bits))
    }

    /// Room in the observer space.
    fn room_to_wait(&mut self, bytes: u64) -> Option<Ref> {
        let (cursor, limit) = self.share;
        if cursor + bytes > limit {
            self.trace.observed.give_back(cursor, limit);
            self.share = (0, 0);
            self.share = self.trace.observed.take(bytes)?;
        }
        let to = self.memory.reference(self.share.0);
        self.share.0 += bytes;
        Some(to)
    }

    /// Ends this thread's part: its counters, and the slots it found.
    pub fn finish(self) -> (Counts, Vec<u32>) {
        self.trace.observed.give_back(self.share.0, self.share.1);
        if let Some(marks) = self.trace.durable {
            marks.add(self.durable);
        }
        (self.counts, self.old_to_observed)
    }
}
