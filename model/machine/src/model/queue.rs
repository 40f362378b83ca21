//! Queues in virtual time.
//!
//! Requests reach a shared resource almost, not exactly, in the order of their times: the driver lets a thread run
//! ahead of the others by a few tens of ns. So a resource keeps a *backlog*, work that is waiting at the latest time
//! it has seen, rather than a time at which it will be free: a request from slightly earlier then waits for real
//! work only, never for the gap between the two times.

use super::ring::Ring;

/// A resource that serves reads before writes (a data bus, the media of a DIMM). Times and work in ps.
///
/// The backlog is kept as two times: when the reads that wait would be done, and when all would be, if nothing else
/// came. Time passing is then the larger of two numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Server {
    last: u64,
    reads_until: u64,
    until: u64,
}

/// When writes are served although reads wait.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Write backlog that starts a drain, ps of work.
    pub high: u64,
    /// Write backlog that ends it, ps of work.
    pub low: u64,
    /// Cost of one drain in turns of direction, ps.
    pub turnaround: u64,
}

impl Server {
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.last = self.last.max(now);
        self.reads_until = self.reads_until.max(self.last);
        self.until = self.until.max(self.last);
    }

    /// Adds a read of `work`; returns how long it waits before it is served.
    #[inline(always)]
    pub fn read(&mut self, now: u64, work: u64) -> u64 {
        self.advance(now);
        let wait = self.reads_until - self.last;
        self.reads_until += work;
        self.until += work;
        wait
    }

    /// Adds a write of `work`; when too many wait, a part of them goes before any later read. Returns the work that then
    /// waits, this included.
    #[inline(always)]
    pub fn write(&mut self, now: u64, work: u64, drain: &Drain) -> u64 {
        self.advance(now);
        self.until += work;
        let writes = self.until - self.reads_until;
        if writes > drain.high {
            self.reads_until += writes - drain.low + drain.turnaround;
            self.until = self.reads_until + drain.low;
        }
        self.until - self.last
    }

    /// Adds a read of `work` to a server that takes turns once writes of more than `high` wait: then one of `write` goes
    /// before. Returns how long the read waits.
    #[inline(always)]
    pub fn read_in_turn(&mut self, now: u64, work: u64, high: u64, write: u64) -> u64 {
        self.advance(now);
        if self.until - self.reads_until > high {
            self.reads_until += write;
        }
        let wait = self.reads_until - self.last;
        self.reads_until += work;
        self.until += work;
        wait
    }

    /// Adds a write of `work` behind all others; returns the work that then waits, this included.
    #[inline(always)]
    pub fn write_behind(&mut self, now: u64, work: u64) -> u64 {
        self.advance(now);
        self.until += work;
        self.until - self.last
    }

    /// Work that waits at `now`, ps.
    #[inline(always)]
    pub fn backlog(&mut self, now: u64) -> u64 {
        self.advance(now);
        self.until - self.last
    }
}

/// A [`Server`] that has no writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    last: u64,
    until: u64,
}

impl Line {
    /// Adds `work`; returns how long it waits before it is served.
    #[inline(always)]
    pub fn read(&mut self, now: u64, work: u64) -> u64 {
        self.last = self.last.max(now);
        let begin = self.until.max(self.last);
        self.until = begin + work;
        begin - self.last
    }
}

/// The entries of a bounded queue, held until a time. A request that finds it full waits for the first to leave.
///
/// Whether an entry is free matters only when all are taken, so that nothing is put in order before that.
#[derive(Clone, Debug)]
pub struct Entries {
    /// Times at which entries are released, from `head` to `tail`: those before `ordered` ascending, the rest as they came.
    until: Ring<u64>,
    head: usize,
    /// May lie before `head` when none is in order.
    ordered: usize,
    tail: usize,
    capacity: usize,
    /// Latest admission since the entries that are held came. Those that end by then are free.
    latest: u64,
    /// Latest time until which an entry was held.
    last: u64,
}

/// Number of preceding times that a time is always compared with, even if it has found its place.
const NEAR: usize = 4;

impl Entries {
    /// A queue of `capacity` entries, at least 1.
    pub fn new(capacity: u32) -> Entries {
        let capacity = capacity.max(1) as usize;
        Entries {
            until: Ring::new(capacity),
            head: 0,
            ordered: 0,
            tail: 0,
            capacity,
            latest: 0,
            last: 0,
        }
    }

    /// Entries that are held, or not yet found to be free.
    #[inline(always)]
    fn taken(&self) -> usize {
        self.tail - self.head
    }

    /// The time at which a request that comes at `now` finds room. [`Entries::hold`] must follow.
    #[inline(always)]
    pub fn admit(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        if self.taken() < self.capacity {
            return now;
        }
        self.admit_to_full(now)
    }

    #[inline(always)]
    fn admit_to_full(&mut self, now: u64) -> u64 {
        // Entries mostly end in the order in which they came.
        if self.until.get(self.head) <= self.latest {
            self.head += 1;
            return now;
        }
        self.admit_in_order(now)
    }

    #[inline(never)]
    fn admit_in_order(&mut self, now: u64) -> u64 {
        self.settle();
        if self.taken() < self.capacity {
            return now;
        }
        let at = self.until.get(self.head);
        self.head += 1;
        if self.taken() == 0 {
            self.last = 0;
        }
        at
    }

    /// Drops the entries that are free and sorts the others.
    #[inline(always)]
    fn settle(&mut self) {
        let begin = self.ordered.max(self.head);
        let mut ordered = begin;
        for i in begin..self.tail {
            let until = self.until.get(i);
            if until <= self.latest {
                continue;
            }
            self.insert(ordered, until);
            ordered += 1;
        }
        (self.ordered, self.tail) = (ordered, ordered);
        while self.taken() > 0 && self.until.get(self.head) <= self.latest {
            self.head += 1;
        }
    }

    /// Puts a time among those before `place`, which are in order.
    #[inline(always)]
    fn insert(&mut self, mut place: usize, mut until: u64) {
        if place - self.head >= NEAR {
            // Most have a place among the last few, and which it is is chance: that is to be no jump.
            for _ in 0..NEAR {
                let before = self.until.get(place - 1);
                self.until.set(place, before.max(until));
                until = before.min(until);
                place -= 1;
            }
        }
        while place > self.head && self.until.get(place - 1) > until {
            self.until.set(place, self.until.get(place - 1));
            place -= 1;
        }
        self.until.set(place, until);
    }

    /// Was every entry free at the last admission?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.last <= self.latest
    }

    /// Holds an entry until a time.
    #[inline(always)]
    pub fn hold(&mut self, until: u64) {
        if until <= self.latest {
            self.look_back(until);
        }
        self.until.set(self.tail, until);
        self.tail += 1;
        self.last = self.last.max(until);
    }

    /// An entry that ends before an admission that was earlier in the run and later in time: it is not free yet.
    #[cold]
    #[inline(never)]
    fn look_back(&mut self, until: u64) {
        self.settle();
        if self.taken() == 0 {
            self.last = 0;
        }
        self.latest = until.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_wait_for_reads_and_writes_fill_the_gaps() {
        let drain = Drain {
            high: 100,
            low: 40,
            turnaround: 7,
        };
        let mut bus = Server::default();
        assert_eq!(bus.read(0, 10), 0);
        assert_eq!(bus.read(0, 10), 10);
        bus.write(0, 30, &drain);
        assert_eq!(bus.read(0, 10), 20, "a waiting write does not delay a read");
        assert_eq!(
            bus.backlog(35),
            25,
            "30 of reads, then 5 of the write are done"
        );
        for _ in 0..3 {
            bus.write(35, 30, &drain);
        }
        // 25 + 90 = 115 > 100: 75 go first, and the turn of the bus.
        assert_eq!(bus.read(35, 10), 82);
    }

    #[test]
    fn an_early_request_waits_for_work_not_for_time() {
        let mut bus = Server::default();
        bus.read(1_000, 3);
        assert_eq!(bus.read(900, 3), 3);
    }

    #[test]
    fn slow_entries_hold_up_fast_ones() {
        let mut queue = Entries::new(2);
        assert_eq!(queue.admit(0), 0);
        queue.hold(500);
        assert_eq!(queue.admit(0), 0);
        queue.hold(10);
        assert_eq!(queue.admit(0), 10, "the fast entry leaves first");
        queue.hold(600);
        assert_eq!(queue.admit(11), 500, "now both entries are slow");
    }

    proptest! {
        /// At every time work is conserved: added work is either still there or was done while time passed.
        #[test]
        fn no_work_is_lost(ops in prop::collection::vec((0u64..50, 1u64..30, any::<bool>()), 1..200)) {
            let drain = Drain { high: 120, low: 60, turnaround: 0 };
            let mut bus = Server::default();
            let (mut now, mut left) = (0u64, 0u64);
            for (gap, work, write) in ops {
                now += gap;
                left = left.saturating_sub(gap) + work;
                if write { bus.write(now, work, &drain); } else { bus.read(now, work); }
                prop_assert_eq!(bus.backlog(now), left);
            }
        }

        /// Against backlogs that shrink as time passes, reads first; requests come slightly out of order.
        #[test]
        fn a_server_is_two_backlogs(
            ops in prop::collection::vec((0u64..60, 0u64..40, 1u64..30, 0u8..6), 1..300),
        ) {
            let drain = Drain { high: 120, low: 60, turnaround: 7 };
            let (mut bus, mut line) = (Server::default(), Line::default());
            let (mut clock, mut last, mut reads, mut writes, mut line_reads) = (100u64, 0u64, 0u64, 0u64, 0u64);
            for (gap, early, work, what) in ops {
                clock += gap;
                let now = clock - early;
                for _ in last..now.max(last) {
                    // One ps of work at a time.
                    if reads > 0 { reads -= 1 } else { writes = writes.saturating_sub(1) }
                    line_reads = line_reads.saturating_sub(1);
                }
                last = last.max(now);
                match what {
                    0 => prop_assert_eq!(bus.backlog(now), reads + writes),
                    1 => {
                        let waits = bus.write(now, work, &drain);
                        writes += work;
                        if writes > drain.high {
                            reads += writes - drain.low + drain.turnaround;
                            writes = drain.low;
                        }
                        prop_assert_eq!(waits, reads + writes);
                    }
                    2 => {
                        writes += work;
                        prop_assert_eq!(bus.write_behind(now, work), reads + writes);
                    }
                    3 => {
                        let first = if writes > 60 { work / 2 } else { 0 };
                        prop_assert_eq!(bus.read_in_turn(now, work, 60, work / 2), reads + first);
                        (reads, writes) = (reads + first + work, writes - first);
                    }
                    _ => {
                        prop_assert_eq!(bus.read(now, work), reads);
                        reads += work;
                    }
                }
                prop_assert_eq!(line.read(now, work), line_reads);
                line_reads += work;
            }
        }

        /// Against a plain list of release times; requests come slightly out of order.
        #[test]
        fn entries_are_a_list_of_times(
            cap in 1u32..40,
            ops in prop::collection::vec((0u64..20, 0u64..60, 1u64..400), 1..300),
        ) {
            let mut queue = Entries::new(cap);
            let mut list: Vec<u64> = Vec::new();
            let mut clock = 100;
            for (gap, early, work) in ops {
                clock += gap;
                let now = clock - early;
                list.retain(|until| *until > now);
                list.sort();
                let expected = if list.len() < cap as usize { now } else { list.remove(0) };
                prop_assert_eq!(queue.admit(now), expected);
                prop_assert_eq!(queue.is_empty(), list.is_empty());
                queue.hold(expected + work);
                list.push(expected + work);
            }
        }
    }
}
