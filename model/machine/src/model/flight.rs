//! Accesses that a core has in flight: the interval model of an out-of-order core.
//!
//! A core runs ahead of a missing load until its reorder buffer or its fill buffers are full, and ahead of missing
//! stores until its store buffer is. Only the time that it then has to wait is a stall.

use super::owners::{Ledger, Who};
use super::ring::Ring;
use super::tally::tally;
use super::time::Ps;

/// A miss in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Miss {
    done: Ps,
    /// Number of the instruction (of a load) or store (of a store) that fills the window when the miss is still there.
    limit: u64,
}

/// Stands for the absence of a miss; no instruction waits for it.
const NONE: Miss = Miss {
    done: Ps::MAX,
    limit: u64::MAX,
};

/// Misses in program order. Completed ones stay until their place is needed: no code asks before.
#[derive(Clone, Debug)]
struct InOrder {
    /// Behind the last miss stands `NONE`.
    misses: Ring<Miss>,
    /// The requester of each, if misses are counted by owner.
    owners: Ring<Who>,
    head: usize,
    tail: usize,
    /// The first miss.
    first: Miss,
}

impl InOrder {
    fn new(capacity: usize) -> InOrder {
        InOrder {
            misses: Ring::new(capacity + 1),
            owners: Ring::new(capacity + 1),
            head: 0,
            tail: 0,
            first: NONE,
        }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.head += 1;
        self.first = self.misses.get(self.head);
    }

    #[inline(always)]
    fn push(&mut self, m: Miss) {
        if self.tail == self.head {
            self.first = m;
        }
        self.misses.set(self.tail, m);
        self.tail += 1;
        self.misses.set(self.tail, NONE);
    }

    /// Waits for the misses that fill the window at number `at`; returns the clock after that.
    #[cold]
    #[inline(never)]
    fn wait(&mut self, at: u64, mut clock: Ps, ledger: &mut Option<Box<Ledger>>) -> Ps {
        while self.first.limit <= at {
            clock = self.wait_for_first(clock, ledger);
        }
        clock
    }

    /// Waits for the first miss; returns the clock after that.
    #[inline(always)]
    fn wait_for_first(&mut self, clock: Ps, ledger: &mut Option<Box<Ledger>>) -> Ps {
        let until = clock.max(self.first.done);
        if let Some(ledger) = ledger {
            ledger.waited(self.owners.get(self.head), until - clock);
        }
        self.pop();
        until
    }

    /// The miss that was pushed last is asked for by the access that runs.
    #[inline(always)]
    fn own(&mut self, ledger: &Option<Box<Ledger>>) {
        if let Some(ledger) = ledger {
            self.owners.set(self.tail - 1, ledger.current);
        }
    }
}

tally! {
    /// Time that a thread lost, ps, by reason.
    pub struct Stalls {
        /// Waiting for loads.
        pub load: Ps,
        /// Waiting for room in the store buffer.
        pub store: Ps,
        /// Waiting for instructions.
        pub fetch: Ps,
        /// Waiting for write-backs and non-temporal stores at fences.
        pub fence: Ps,
        /// Waiting at barriers.
        pub barrier: Ps,
        /// Faults, sampling interrupts, shoot-downs, pages being moved, daemons on the thread's core.
        pub system: Ps,
    }
}

impl Stalls {
    /// Everything, ps.
    pub fn total(&self) -> Ps {
        self.load + self.store + self.fetch + self.fence + self.barrier + self.system
    }
}

/// The window of one core.
#[derive(Clone, Debug)]
pub struct Flight {
    loads: InOrder,
    stores: InOrder,
    fill_buffers: usize,
    /// When the lines of the last stores that missed arrive, with their requesters. It holds the stores whose misses
    /// may overlap.
    fetched: Box<[(Ps, Who)]>,
    /// The oldest of them.
    oldest: usize,
    reorder: u64,
    store_buffer: u64,
    /// Instructions so far.
    pub instructions: u64,
    stores_seen: u64,
    last_store_done: Ps,
    /// When the last load's data is there.
    pub last_load: Ps,
    /// Latest acceptance of a non-temporal store or flush.
    pub last_flush: Ps,
    /// When the next write-back may begin.
    next_write_back: Ps,
    /// Time lost.
    pub stalls: Stalls,
    /// Owners that the time was lost to, if the run counts by owner.
    pub ledger: Option<Box<Ledger>>,
}

impl Flight {
    /// An empty window.
    pub fn new(core: &crate::describe::Core) -> Flight {
        let fill = core.fill_buffers.max(1) as usize;
        Flight {
            loads: InOrder::new(fill + 1),
            stores: InOrder::new(fill + 1),
            fill_buffers: fill,
            fetched: vec![(0, Who::default()); core.store_misses.max(1) as usize].into(),
            oldest: 0,
            reorder: core.reorder_buffer as u64,
            store_buffer: core.store_buffer as u64,
            instructions: 0,
            stores_seen: 0,
            last_store_done: 0,
            last_load: 0,
            last_flush: 0,
            next_write_back: 0,
            stalls: Stalls::default(),
            ledger: None,
        }
    }

    /// Retires `instructions` more; returns the clock after the waits that the reorder buffer forces.
    #[inline(always)]
    pub fn advance(&mut self, clock: Ps, instructions: u32) -> Ps {
        self.instructions += instructions as u64;
        if self.instructions < self.loads.first.limit {
            return clock;
        }
        let until = self.loads.wait(self.instructions, clock, &mut self.ledger);
        self.stalls.load += until - clock;
        until
    }

    /// Has the core stored anything yet?
    pub fn has_stored(&self) -> bool {
        self.stores_seen != 0
    }

    /// Waits for the previous load (a dependent address).
    #[inline(always)]
    pub fn depend(&mut self, clock: Ps) -> Ps {
        if self.last_load > clock {
            self.stalls.load += self.last_load - clock;
            if let Some(ledger) = &mut self.ledger {
                ledger.waited(ledger.last_load, self.last_load - clock);
            }
            return self.last_load;
        }
        clock
    }

    /// An access that is a store is retired into the store buffer; waits for room there.
    #[inline(always)]
    pub fn store(&mut self, clock: Ps, store: bool) -> Ps {
        // Whether an access is a store is hard to predict; a full store buffer is rare.
        self.stores_seen += store as u64;
        if !store | (self.stores_seen < self.stores.first.limit) {
            return clock;
        }
        let until = self.stores.wait(self.stores_seen, clock, &mut self.ledger);
        self.stalls.store += until - clock;
        until
    }

    /// Waits until a fill buffer is free for another miss, and for one of a store until few stores wait for lines.
    #[inline(always)]
    pub fn room(&mut self, mut clock: Ps, store: bool) -> Ps {
        if store {
            let (done, who) = self.fetched[self.oldest];
            if done > clock {
                self.stalls.store += done - clock;
                if let Some(ledger) = &mut self.ledger {
                    ledger.waited(who, done - clock);
                }
                clock = done;
            }
        }
        while self.loads.len() + self.stores.len() >= self.fill_buffers {
            let load = self.loads.first.done;
            let store = self.stores.first.done;
            if load <= store {
                let until = self.loads.wait_for_first(clock, &mut self.ledger);
                self.stalls.load += until - clock;
                clock = until;
            } else {
                let until = self.stores.wait_for_first(clock, &mut self.ledger);
                self.stalls.store += until - clock;
                clock = until;
            }
        }
        clock
    }

    /// A load miss is in flight until `done`.
    #[inline(always)]
    pub fn load_miss(&mut self, done: Ps) {
        self.last_load = done;
        self.loads.push(Miss {
            done,
            limit: self.instructions + self.reorder,
        });
        self.loads.own(&self.ledger);
        if let Some(ledger) = &mut self.ledger {
            ledger.last_load = ledger.current;
        }
    }

    /// A store miss is in flight until `done`; stores become visible in order.
    #[inline(always)]
    pub fn store_miss(&mut self, done: Ps) {
        self.last_store_done = self.last_store_done.max(done);
        let who = self.ledger.as_ref().map_or(Who::default(), |l| l.current);
        self.fetched[self.oldest] = (self.last_store_done, who);
        self.oldest += 1;
        if self.oldest == self.fetched.len() {
            self.oldest = 0;
        }
        self.stores.push(Miss {
            done: self.last_store_done,
            limit: self.stores_seen + self.store_buffer,
        });
        self.stores.own(&self.ledger);
    }

    /// A non-temporal store or flush: fences wait until the controller accepts it at `taken`, and it holds a fill buffer
    /// until `freed`.
    #[inline(always)]
    pub fn flush(&mut self, taken: Ps, freed: Ps) {
        self.last_flush = self.last_flush.max(taken);
        self.stores.push(Miss {
            done: freed,
            limit: self.stores_seen + self.store_buffer,
        });
        self.stores.own(&self.ledger);
    }

    /// A write-back begins at least `apart` after the one before; returns the clock then.
    #[inline(always)]
    pub fn write_back(&mut self, clock: Ps, apart: Ps) -> Ps {
        let begin = clock.max(self.next_write_back);
        self.next_write_back = begin + apart;
        self.stalls.store += begin - clock;
        begin
    }

    /// When every store so far is in the first-level cache.
    #[inline(always)]
    pub fn stores_done(&self) -> Ps {
        self.last_store_done
    }

    /// Waits until every load has its data. Stores may wait for their lines on.
    #[inline(never)]
    pub fn load_fence(&mut self, mut clock: Ps) -> Ps {
        while self.loads.len() > 0 {
            let until = self.loads.wait_for_first(clock, &mut self.ledger);
            self.stalls.load += until - clock;
            clock = until;
        }
        // The first level's hits are in no list.
        self.depend(clock)
    }

    /// A store fence.
    #[inline(always)]
    pub fn fence(&mut self, clock: Ps) -> Ps {
        let until = self.last_flush.max(self.last_store_done);
        if until > clock {
            self.stalls.fence += until - clock;
            if let Some(ledger) = &mut self.ledger {
                ledger.waited(ledger.current, until - clock);
            }
            return until;
        }
        clock
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::Machine;
    use crate::describe::Core;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// The obvious window: lists of misses, each (done, number), that retire as soon as they can.
    #[derive(Default)]
    pub struct Slow {
        pub loads: VecDeque<(Ps, u64)>,
        pub stores: VecDeque<(Ps, u64)>,
        /// When the lines of stores are there.
        pub fetched: VecDeque<Ps>,
        pub instructions: u64,
        pub stores_seen: u64,
        pub clock: Ps,
        pub stalls: Stalls,
        pub last_load: Ps,
        pub last_store: Ps,
        pub last_flush: Ps,
    }

    impl Slow {
        /// Retires misses that are done, and waits for those that are `window` numbers back.
        pub fn retire(list: &mut VecDeque<(Ps, u64)>, at: u64, window: u64, clock: &mut Ps) -> Ps {
            let begin = *clock;
            while let Some(&(done, number)) = list.front() {
                if done > *clock && at - number < window {
                    break;
                }
                *clock = done.max(*clock);
                list.pop_front();
            }
            *clock - begin
        }

        /// Waits until fewer than `most` stores miss.
        pub fn store_room(&mut self, most: usize) {
            while self.fetched.len() >= most {
                let done = self.fetched.pop_front().expect("at least one");
                self.stalls.store += done.saturating_sub(self.clock);
                self.clock = self.clock.max(done);
            }
        }

        pub fn room(&mut self, buffers: usize) {
            while self.loads.len() + self.stores.len() >= buffers {
                let load = self.loads.front().map_or(Ps::MAX, |m| m.0);
                let store = self.stores.front().map_or(Ps::MAX, |m| m.0);
                let until = load.min(store).max(self.clock);
                if load <= store {
                    self.stalls.load += until - self.clock;
                    self.loads.pop_front();
                } else {
                    self.stalls.store += until - self.clock;
                    self.stores.pop_front();
                }
                self.clock = until;
            }
        }

        /// Every load there is, whatever its place.
        pub fn load_fence(&mut self) {
            let latest = self.loads.drain(..).map(|(done, _)| done).max();
            let until = latest.unwrap_or(0).max(self.last_load).max(self.clock);
            self.stalls.load += until - self.clock;
            self.clock = until;
        }
    }

    fn core(fill: u32, misses: u32, reorder: u32, stores: u32) -> Core {
        let mut core = Machine::load("optane-6230").unwrap().core;
        (core.fill_buffers, core.reorder_buffer, core.store_buffer) = (fill, reorder, stores);
        core.store_misses = misses;
        core
    }

    proptest! {
        #[test]
        fn agrees_with_lists_of_misses(
            fill in 1u32..13,
            misses in 1u32..13,
            reorder in 1u32..60,
            stores in 1u32..20,
            ops in prop::collection::vec((0u8..7, 0u32..20, 1u64..2000), 1..400),
        ) {
            let mut fast = Flight::new(&core(fill, misses, reorder, stores));
            let mut slow = Slow::default();
            let mut clock = 0;
            for (what, instructions, latency) in ops {
                clock += instructions as u64 * 100;
                clock = fast.advance(clock, instructions);
                slow.clock += instructions as u64 * 100;
                slow.instructions += instructions as u64;
                let at = slow.instructions;
                slow.stalls.load += Slow::retire(&mut slow.loads, at, reorder as u64, &mut slow.clock);
                match what {
                    0 | 1 => {
                        clock = fast.room(clock, false);
                        fast.load_miss(clock + latency);
                        slow.room(fill as usize);
                        slow.loads.push_back((slow.clock + latency, at));
                        slow.last_load = slow.clock + latency;
                    }
                    2 => {
                        clock = fast.store(clock, true);
                        clock = fast.room(clock, true);
                        fast.store_miss(clock + latency);
                        slow.stores_seen += 1;
                        let at = slow.stores_seen;
                        slow.stalls.store += Slow::retire(&mut slow.stores, at, stores as u64, &mut slow.clock);
                        slow.store_room(misses as usize);
                        slow.room(fill as usize);
                        // Stores become visible in the order of the program.
                        slow.last_store = slow.last_store.max(slow.clock + latency);
                        slow.stores.push_back((slow.last_store, at));
                        slow.fetched.push_back(slow.last_store);
                    }
                    3 => {
                        clock = fast.room(clock, false);
                        fast.flush(clock + latency, clock + 2 * latency);
                        slow.room(fill as usize);
                        slow.last_flush = slow.last_flush.max(slow.clock + latency);
                        slow.stores.push_back((slow.clock + 2 * latency, slow.stores_seen));
                    }
                    4 => {
                        clock = fast.fence(clock);
                        let until = slow.last_flush.max(slow.last_store).max(slow.clock);
                        slow.stalls.fence += until - slow.clock;
                        slow.clock = until;
                    }
                    5 => {
                        clock = fast.load_fence(clock);
                        slow.load_fence();
                    }
                    _ => {
                        clock = fast.depend(clock);
                        let until = slow.last_load.max(slow.clock);
                        slow.stalls.load += until - slow.clock;
                        slow.clock = until;
                    }
                }
                prop_assert_eq!(clock, slow.clock);
                prop_assert_eq!(fast.stalls, slow.stalls);
            }
        }
    }
}
