//! One collection, from roots to swept spaces.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use crate::align::{Aligned, Usual};
use crate::heap::Heap;
use crate::layout::*;
use crate::lines::live_value;
use crate::mature::Bump;
use crate::mutator::Mutator;
use crate::observer::{Observer, Stage};
use crate::plan::Places;
use crate::pool::Pool;
use crate::reference::Ref;
use crate::roots::Roots;
use crate::stats::Kind;
use crate::trace::{Counts, Trace, Worker};
use crate::traced::Traced;

/// Defragments when unfilled holes make up more than one part in this many of the bytes in use.
const FRAGMENTED: u64 = 8;
/// Copies at most one part in this many of the bytes in use while defragmenting, or one chunk if that is more.
const HEADROOM: u64 = 16;

/// The parts of the heap that a collection traces.
#[derive(Clone, Copy)]
struct Asked {
    kind: Kind,
    /// Bytes that may be copied without need.
    budget: u64,
    /// See [`Trace::young`] and [`Trace::nursery`].
    young: (u32, u32),
    nursery: (u32, u32),
}

impl<P: Places, O: Observer> Heap<P, O> {
    /// Traces, sweeps and empties the nursery. `everything`: move all that can move.
    pub(crate) fn run(
        &mut self,
        mutator: &mut Mutator,
        kind: Kind,
        everything: bool,
        roots: &mut dyn Roots,
    ) -> Counts {
        self.observer.stage(kind, Stage::Roots);
        let mut budget = 0;
        if kind == Kind::Full {
            self.mark ^= MARK_MASK;
            self.bumps.iter_mut().flatten().for_each(Bump::retire);
            budget = self.choose_evacuated(everything);
            if P::SEVERAL {
                // Any object may move to another memory.
                budget = self.room_for_copies();
            }
        }
        let nursery = self.nursery.bounds();
        let mut young = nursery;
        let mut sorted = (0, 0);
        if P::SEVERAL && kind != Kind::Minor {
            young = self.observed.with_nursery(nursery);
            sorted = self.observed.flip();
        }
        let align = self.config.align;
        let (young, nursery) = (align.half_range(young), align.half_range(nursery));
        let asked = Asked {
            kind,
            budget,
            young,
            nursery,
        };
        let counts = match align == Usual.align() {
            true => self.trace_aligned(Usual, mutator, asked, roots),
            false => self.trace_aligned(align, mutator, asked, roots),
        };
        if kind == Kind::Full {
            self.bumps.iter_mut().flatten().for_each(Bump::retire);
            let (tables, poison) = (&self.tables, self.config.poison);
            self.mature
                .iter()
                .for_each(|space| space.sweep(tables, live_value(self.mark), poison));
            self.large
                .iter()
                .for_each(|space| space.sweep(tables, self.mark, poison));
        }
        if self.config.poison {
            self.nursery.poison(&self.tables.memory, mutator);
            if sorted.1 > 0 {
                self.tables.memory.poison(sorted.0, sorted.1);
            }
        }
        counts
    }

    /// Chooses blocks whose objects are to move. Gives the bytes that may be copied for it.
    fn choose_evacuated(&self, everything: bool) -> u64 {
        let room = self.room_for_copies();
        let used: u64 = self.mature.iter().map(|space| space.used()).sum();
        let holes: u64 = self
            .mature
            .iter()
            .map(|space| space.recyclable_bytes())
            .sum();
        let budget = match everything {
            true => room,
            false if holes > used / FRAGMENTED => room.min((used / HEADROOM).max(CHUNK_SIZE)),
            false => return 0,
        };
        for space in &self.mature {
            space.choose_evacuated(&self.tables, budget, everything);
        }
        budget
    }

    /// Bytes that may be copied without need.
    fn room_for_copies(&self) -> u64 {
        // Copies must not use up the address range; the reserve for the nursery's survivors does not count.
        self.tables.chunks.free_for_programs() * CHUNK_SIZE / 4 * 3
    }

    fn trace_aligned<A: Aligned>(
        &mut self,
        align: A,
        mutator: &mut Mutator,
        asked: Asked,
        roots: &mut dyn Roots,
    ) -> Counts {
        match (asked.kind, self.bumps.len() > 1) {
            (Kind::Full, false) => self.trace::<A, true, false>(align, mutator, asked, roots),
            (Kind::Full, true) => self.trace::<A, true, true>(align, mutator, asked, roots),
            (_, false) => self.trace::<A, false, false>(align, mutator, asked, roots),
            (_, true) => self.trace::<A, false, true>(align, mutator, asked, roots),
        }
    }

    fn trace<A: Aligned, const FULL: bool, const PAR: bool>(
        &mut self,
        align: A,
        mutator: &mut Mutator,
        asked: Asked,
        roots: &mut dyn Roots,
    ) -> Counts {
        let Asked {
            kind,
            budget,
            young,
            nursery,
        } = asked;
        let trace = Trace {
            tables: &self.tables,
            shapes: &self.shapes,
            mature: &self.mature,
            large: &self.large,
            plan: &self.plan,
            observer: &self.observer,
            young,
            nursery,
            observed: &self.observed,
            mark: self.mark,
            span: match self.config.durable {
                true => DURABLE_BIT / 2 - 1,
                false => u32::MAX >> 1,
            },
            durable: self.durable_marks.as_ref(),
            budget: AtomicI64::new(budget as i64),
            pool: Pool::new(),
        };
        let (bumps, others) = self
            .bumps
            .split_first_mut()
            .expect("there is always one thread");
        let mut worker = Worker::<P, O, A, FULL, PAR>::new(&trace, bumps, align);
        roots.visit(&mut |r| *r = worker.root(*r));
        let clock =
            |heap_clock: Option<Duration>| heap_clock.unwrap_or_else(|| self.made.elapsed());
        let begun = clock(self.observer.now());
        // After a collection nothing refers to the nursery, and every object outside of it is to be logged at its
        // next store.
        if !FULL {
            mutator
                .remembered()
                .for_each(|entry| worker.remembered(entry));
        }
        mutator.forget(&self.remembered);
        if P::SEVERAL && kind != Kind::Minor {
            let mut slots = std::mem::take(&mut self.old_to_observed);
            if !FULL {
                slots.sort_unstable();
                slots.dedup();
                slots.into_iter().for_each(|slot| worker.old_slot(slot));
            }
        }
        trace.observer.stage(kind, Stage::Trace);
        let whole = Whole;
        let (mut counts, mut slots) = std::thread::scope(|scope| {
            let mut waiting = Some(others);
            let mut helpers = Vec::new();
            worker.drain(|| {
                for bumps in waiting.take().into_iter().flatten() {
                    trace.pool.join();
                    let trace = &trace;
                    let help = move || {
                        let whole = Whole;
                        let mut worker = Worker::<P, O, A, FULL, PAR>::new(trace, bumps, align);
                        worker.drain(|| ());
                        std::mem::forget(whole);
                        worker.finish()
                    };
                    // Without the thread the work takes longer, and that is all.
                    match std::thread::Builder::new()
                        .name("collector".into())
                        .spawn_scoped(scope, help)
                    {
                        Ok(helper) => helpers.push(helper),
                        Err(_) => trace.pool.leave(),
                    }
                }
            });
            let (mut counts, mut slots) = worker.finish();
            for helper in helpers {
                // A helper that panics ends the process: see `Whole`.
                let (theirs, more) = helper.join().expect("a helper returns or aborts");
                counts.add(&theirs);
                slots.extend(more);
            }
            (counts, slots)
        });
        counts.tracing = clock(self.observer.now()).saturating_sub(begun);
        std::mem::forget(whole);
        trace.observer.stage(kind, Stage::Rest);
        self.old_to_observed.append(&mut slots);
        if O::WATCHES {
            let born = (
                self.nursery.start(),
                self.nursery.start() + self.nursery.used(mutator),
            );
            let resolve = |r| trace.resolve(r, FULL);
            trace.observer.traced(&Traced::new(
                kind,
                trace.tables,
                trace.shapes,
                born,
                &resolve,
            ));
        }
        let hosts = &mut self.hosts;
        let mut settle = |r: Ref| {
            let new = trace.resolve(r, FULL);
            if new.is_none() {
                roots.host_died(trace.tables.memory.host_handle(r));
            }
            new
        };
        if kind != Kind::Minor {
            hosts.old = hosts.old.drain(..).filter_map(&mut settle).collect();
        }
        hosts
            .old
            .extend(hosts.young.drain(..).filter_map(&mut settle));
        roots.visit_weak(&mut |r| trace.resolve(r, FULL));
        counts
    }
}

/// Dropped only while a panic leaves tracing: the heap is half moved then, and other threads wait for work that
/// never comes.
struct Whole;

impl Drop for Whole {
    fn drop(&mut self) {
        eprintln!(
            "the collector failed during a collection: the heap is inconsistent, the process ends"
        );
        std::process::abort();
    }
}
