//! The model of a machine: programs in, virtual time and counts out.
//!
//! Execution-driven: threads are streams of [`Op`](varve_access::Op)s, each with a clock of its own; the one that is furthest behind
//! runs next, at most [`Options::quantum_ns`] past the others, so that requests of different threads meet in the
//! queues in (almost) the order of their times. The same inputs give the same result, bit for bit.
//!
//! Not modelled, because the questions asked here do not turn on it: coherence traffic between cores, instruction
//! timing beyond an average rate, simultaneous multithreading, and speculation.

mod activity;
mod cache;
mod core;
mod counts;
mod divide;
mod dram;
mod events;
mod flight;
pub(crate) mod host;
mod journal;
mod link;
mod memory;
mod outcome;
mod owners;
mod pm;
mod prefetcher;
mod queue;
mod replicas;
mod ring;
mod sampled;
mod table;
mod tags;
mod tally;
mod thread;
mod time;
mod windows;

pub use activity::ChannelActivity;
pub use counts::{SocketCounts, ThreadCounts};
pub use dram::{DramCounts, ROW_TIMEOUT_NS, RankTimes};
pub use flight::Stalls;
pub use journal::{Journal, JournalSpan, MoveKind, Snapshot, join};
pub use memory::{Backing, NodeRange, nodes};
pub use outcome::{Latency, MoveCounts, Outcome, Phase};
pub use owners::{OwnerCounts, Owners};
pub use pm::PmCounts;
pub use sampled::Sampled;
pub use table::ADDRESS_BITS;
pub use tags::MAX_RATIO;

use crate::arch::Newer;
use crate::describe::Machine;
use cache::CacheArray;
use events::Events;
use host::{Common, InstructionLevel};
use memory::MemorySystem;
use outcome::Recorder;
use replicas::Replicas;
use std::hint::select_unpredictable;
use std::ops::Range;
use table::PageTable;
use thread::{Latencies, Shared, Thread, Turn};
use time::{Ps, ps};
use varve_access::Kind;
use varve_access::Program;
use varve_access::{OutOfFrames, Pager};
use windows::Windows;

/// Options of a run; the hardware is the [`Machine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How far a thread may run ahead of the others, ns. Smaller is more exact and slower.
    pub quantum_ns: f64,
    /// Ends the run at this virtual time, ns.
    pub until_ns: Option<u64>,
    /// Virtual time between two snapshots of the counters at first, ns; it doubles whenever there are 512. 0 takes
    /// none.
    pub snapshot_ns: u64,
    /// Cores that the program and the policy's daemons share; 0: daemons have cores of their own.
    pub cores: u32,
    /// Instances that the programs together stand for (symmetric replication): one is simulated, the others load the
    /// memory as it does, and each has its share of the last-level cache.
    pub replicas: u32,
    /// Whether replicas send every request, and not in windows of time only, which is many times faster where a run is long.
    pub every_request: bool,
    /// Whether replicas alternate between the sockets; otherwise all run on that of the simulated one.
    pub spread: bool,
    /// Whether the programs are instances of one, of a single thread each: at the end of its first cycle
    /// ([`Kind::Cycle`](varve_access::Kind)), each waits for another part of it, so that they do not run in step. No
    /// counter of time includes that wait.
    pub instances_apart: bool,
    /// The socket that a program's threads run on, one per program; missing ones run on socket 0.
    pub sockets: Vec<u32>,
    /// Physical addresses, each range in one node, whose lines another socket has read before the run and not written back
    /// since: the directory knows (`link.directory`).
    pub read_before: Vec<Range<u64>>,
    /// Threads that run on each core at once (simultaneous multithreading), all the time: each has its part of the core's
    /// first two caches and buffers, and of the instructions that the core does.
    pub per_core: u32,
    /// The bit that addresses of two parts of a page differ in, if pages have parts: each part is in a memory of its own, and the page
    /// has one entry in a TLB, and one fault.
    pub part_bit: Option<u32>,
    /// Lines that a page move, or a page that is zeroed, keeps in flight.
    pub move_lanes: u32,
    /// Whether events are recorded with their times ([`Outcome::journal`]).
    pub journal: bool,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            quantum_ns: 20.0,
            until_ns: None,
            snapshot_ns: 0,
            cores: 0,
            replicas: 1,
            every_request: false,
            spread: false,
            per_core: 1,
            instances_apart: false,
            sockets: Vec::new(),
            read_before: Vec::new(),
            part_bit: None,
            // The fill buffers of a copying core, or the requests that an I/OAT engine has in flight.
            move_lanes: 16,
            journal: false,
            seed: 1,
        }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Virtual time of the thread that is furthest behind, ns.
    pub now_ns: u64,
    /// Accesses so far.
    pub accesses: u64,
    /// Phase of the program.
    pub phase: u64,
    /// Requests so far.
    pub requests: u64,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum RunError {
    /// The footprint does not fit.
    #[error("{0}")]
    OutOfFrames(#[from] OutOfFrames),
    /// All threads wait and none can go on.
    #[error("the program hangs: {waiting} threads wait at a barrier that the others never reach")]
    Hang {
        /// Threads that wait.
        waiting: usize,
    },
    /// The program cannot be run like this.
    #[error("{0}")]
    Program(String),
    /// The page size does not suit the machine.
    #[error("pages of {page_bytes} B do not fit the machine: {why}")]
    PageSize {
        /// Bytes of a page.
        page_bytes: u64,
        /// The problem.
        why: &'static str,
    },
    /// The watcher asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Runs `programs` together on `machine` under `pager`.
///
/// `watch` is called now and then (every few ten thousand accesses); when it returns `false` the run ends with
/// [`RunError::Interrupted`].
pub fn run(
    machine: &Machine,
    pager: &mut dyn Pager,
    programs: &mut [&mut dyn Program],
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    Ready {
        newer: Newer::detect(),
        owners: None,
    }
    .run(machine, pager, programs, options, watch)
}

/// As [`run`]; besides, misses and waits are counted by owner, in [`Outcome::owners`], and waits by code, in
/// [`Outcome::code`].
///
/// # Errors
/// As [`run`].
pub fn run_by_owner(
    machine: &Machine,
    pager: &mut dyn Pager,
    programs: &mut [&mut dyn Program],
    options: &Options,
    owners: &mut dyn Owners,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    Ready {
        newer: Newer::detect(),
        owners: Some(owners),
    }
    .run(machine, pager, programs, options, watch)
}

/// Resources of a run, besides its machine, pages and programs.
struct Ready<'a> {
    /// The newer instructions of the host's processor, if it has them.
    newer: Option<Newer>,
    /// Maps addresses to owners, if the run counts by owner.
    owners: Option<&'a mut dyn Owners>,
}

impl<'a> Ready<'a> {
    fn run(
        self,
        machine: &Machine,
        pager: &'a mut dyn Pager,
        programs: &mut [&mut dyn Program],
        options: &Options,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Outcome, RunError> {
        let page_bytes = pager.page_bytes();
        if !page_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&page_bytes) {
            let why = "a page is a power of two between 4 KiB and 1 GiB";
            return Err(RunError::PageSize { page_bytes, why });
        }
        if nodes(machine)
            .iter()
            .any(|n| n.bytes % page_bytes != 0 || n.bytes == 0)
        {
            let why = "each memory must hold a whole number of them";
            return Err(RunError::PageSize { page_bytes, why });
        }
        // Windows are phases, and a run has its phases from one program.
        if programs.len() > 1
            && let Some(sampled) = programs.iter().find(|p| p.stretches().is_some())
        {
            let name = sampled.name();
            return Err(RunError::Program(format!(
                "{name}: only windows of it were recorded, so that it runs alone; record the whole of it, or one part (`varve trace --skip --for`)"
            )));
        }
        let mut model = Model::new(machine, pager, programs, options, page_bytes);
        model.newer = self.newer;
        if self.owners.is_some() {
            model.shared.owners = self.owners;
            for thread in &mut model.threads {
                thread.flight.ledger = Some(Box::default());
            }
        }
        model.run(programs, watch)
    }
}

struct Model<'a> {
    threads: Vec<Thread>,
    /// Clock of each thread, or `Ps::MAX` while it cannot run.
    keys: Vec<Ps>,
    shared: Shared<'a>,
    events: Events,
    recorder: Recorder,
    quantum: Ps,
    until: Ps,
    /// The instructions that turns are run with.
    newer: Option<Newer>,
    /// Programs that are instances of one, and still begin together.
    together: Vec<bool>,
    /// Threads of each program that have not ended.
    live: Vec<usize>,
    /// Threads of each program that wait at its barrier.
    waiting: Vec<Vec<usize>>,
    ended: Vec<bool>,
    /// Ops that programs gave since the watcher was called.
    fetched: usize,
}

/// Crossing a barrier once all have arrived: a cache line that goes round, ns (a few remote transfers; assumption).
const BARRIER_NS: f64 = 500.0;

/// Turns between two calls of the watcher, at most.
const WATCH_TURNS: u32 = 1 << 14;
/// Ops between two calls of the watcher, about and at most: some tenths of a second.
const WATCH_OPS: usize = 1 << 22;

impl<'a> Model<'a> {
    fn new(
        m: &Machine,
        pager: &'a mut dyn Pager,
        programs: &[&mut dyn Program],
        o: &Options,
        page_bytes: u64,
    ) -> Model<'a> {
        let daemons = pager.daemons();
        let m = &core::part(m, o.per_core);
        let mut threads = Vec::new();
        for (space, p) in programs.iter().enumerate() {
            let socket = o
                .sockets
                .get(space)
                .copied()
                .unwrap_or(0)
                .min(m.sockets - 1) as usize;
            for number in 0..p.threads().max(1) {
                let id = threads.len() as u32;
                let thread = Thread::new(
                    m,
                    id,
                    space,
                    number,
                    socket,
                    daemons.sample_period,
                    page_bytes.ilog2(),
                );
                threads.push(thread.with_parts(m, o.part_bit));
            }
        }
        let new_memory = |m: &Machine| {
            let mut memory = MemorySystem::new(m);
            memory.read_before(&o.read_before);
            memory
        };
        let mut memory = new_memory(m);
        let nodes = memory::channels(m);
        let mut windows = None;
        if o.replicas > 1 && !o.every_request && Windows::would_tell(m) {
            let alone = new_memory(&windows::quiet(m));
            let busy = std::mem::replace(&mut memory, alone);
            windows = Some(Windows::new(busy, o.seed));
        }
        let replicas = Replicas::new(
            o.replicas, o.spread, m.sockets, &m.core, nodes, &memory, windows,
        );
        let shared = Shared {
            llc: (0..m.sockets)
                .map(|_| {
                    let bytes = replicas::share(m.llc.bytes.0, o.replicas, o.spread, m.sockets);
                    CacheArray::new(bytes, m.llc.ways)
                })
                .collect(),
            memory,
            tables: programs
                .iter()
                .map(|_| PageTable::new(page_bytes))
                .collect(),
            pager,
            lat: Latencies::of(m, page_bytes),
            page_shift: page_bytes.ilog2(),
            sample_period: daemons.sample_period,
            moving: None,
            replicas,
            lanes: o.move_lanes as usize,
            zeroed_late: 0,
            owners: None,
            journal: o.journal.then(|| Box::new(Journal::new())),
            out_of_frames: None,
        };
        Model {
            keys: vec![0; threads.len()],
            ended: vec![false; threads.len()],
            fetched: 0,
            together: vec![o.instances_apart; programs.len()],
            live: programs.iter().map(|p| p.threads().max(1)).collect(),
            waiting: vec![Vec::new(); programs.len()],
            events: Events::new(m, o, &daemons, threads.len()),
            recorder: Recorder::new(
                o.snapshot_ns,
                programs.iter().flat_map(|p| p.classes()).collect(),
            ),
            newer: None,
            quantum: ps(o.quantum_ns).max(1),
            until: o.until_ns.map_or(Ps::MAX, |ns| ns * 1000),
            threads,
            shared,
        }
    }

    fn run(
        mut self,
        programs: &mut [&mut dyn Program],
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Outcome, RunError> {
        let mut turns = 0u32;
        loop {
            let (i, now, second) = self.earliest();
            if now == Ps::MAX {
                let waiting: usize = self.waiting.iter().map(Vec::len).sum();
                if waiting > 0 {
                    return Err(RunError::Hang { waiting });
                }
                break;
            }
            if now >= self.until {
                break;
            }
            let next_event = self.events.next().min(self.recorder.next());
            if now >= next_event {
                self.happen(now);
                continue;
            }
            if self.shared.journal.as_ref().is_some_and(|j| now >= j.next) {
                self.note(now);
            }
            turns += 1;
            if turns >= WATCH_TURNS || self.fetched >= WATCH_OPS {
                (turns, self.fetched) = (0, 0);
                if !watch(&self.recorder.progress(now, &self.threads)) {
                    return Err(RunError::Interrupted);
                }
            }
            let limit = second
                .saturating_add(self.quantum)
                .min(next_event)
                .min(self.until);
            self.turn(i, limit, programs)?;
        }
        let failure = programs.iter().find_map(|p| p.failure());
        let answers = programs.iter().flat_map(|p| p.answers()).collect();
        let mut outcome =
            self.recorder
                .finish(&self.threads, &self.shared, &self.events, answers, failure);
        outcome.journal = *self.shared.journal.take().unwrap_or_default();
        for program in programs.iter() {
            if let Some(stretches) = program.stretches()
                && !sampled::extend(&mut outcome, &stretches)
            {
                let name = program.name();
                return Err(RunError::Program(format!(
                    "{name}: no window of the sample is longer than its warm-up of caches; sample more of the run, or record it whole"
                )));
            }
        }
        Ok(outcome)
    }

    /// The thread that is furthest behind, its clock, and the next one's.
    #[inline]
    fn earliest(&self) -> (usize, Ps, Ps) {
        let (mut i, mut first, mut second) = (0, Ps::MAX, Ps::MAX);
        for (j, &key) in self.keys.iter().enumerate() {
            // The next thread changes all the time, so that branches would be mispredicted: these are to be conditional
            // moves.
            let earlier = key < first;
            second = second.min(first.max(key));
            i = select_unpredictable(earlier, j, i);
            first = first.min(key);
        }
        (i, first, second)
    }

    /// Lets thread `i` run until `limit`.
    #[inline]
    fn turn(
        &mut self,
        i: usize,
        limit: Ps,
        programs: &mut [&mut dyn Program],
    ) -> Result<(), RunError> {
        let t = &mut self.threads[i];
        if t.next >= t.ops.len() {
            if self.ended[i] {
                return self.end(i);
            }
            t.ops.clear();
            let program = &mut programs[t.space];
            let more = program.fill(t.number, t.clock / 1000, &mut t.ops);
            t.refilled();
            if let Some(ledger) = &mut t.flight.ledger {
                ledger.refill(|steps| program.code(t.number, steps));
            }
            self.fetched += t.ops.len();
            self.ended[i] = !more;
            if t.ops.is_empty() {
                if more {
                    // A program must give something; a thread that idles does so by the microsecond.
                    t.clock += 1_000_000;
                } else {
                    return self.end(i);
                }
            }
        }
        let turn = Turn {
            thread: t,
            limit,
            shared: &mut self.shared,
        };
        let op = match self.newer {
            Some(newer) => newer.run(turn),
            None => Common.run(turn),
        };
        self.keys[i] = t.clock;
        if let Some(e) = self.shared.out_of_frames {
            return Err(e.into());
        }
        let Some(op) = op else { return Ok(()) };
        match op.kind {
            Kind::End => {
                let request = self.recorder.end_request(&mut self.threads[i], op.addr);
                if let (Some(journal), Some(time)) = (&mut self.shared.journal, request) {
                    journal.request(i as u32, op.addr as u32, time);
                }
            }
            Kind::Phase => {
                self.recorder
                    .phase(op.addr, &self.threads, i, &self.shared, &self.events)
            }
            Kind::Sleep => {
                let thread = &mut self.threads[i];
                thread.clock += op.addr * 1000;
                thread.slept += op.addr * 1000;
                self.keys[i] = thread.clock;
            }
            Kind::Unmap => self.unmap(i, op.addr, op.size),
            Kind::Cycle => self.cycle(i),
            Kind::Barrier => {
                let space = self.threads[i].space;
                self.keys[i] = Ps::MAX;
                self.waiting[space].push(i);
                self.release(space);
            }
            _ => {}
        }
        Ok(())
    }

    /// A program's cycle ends. Instances that are not simulated spread over it; one that is waits for its part of the first one.
    fn cycle(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        if let Some(replicas) = &mut self.shared.replicas {
            replicas.cycle(thread.clock);
        }
        let together = std::mem::take(&mut self.together[thread.space]);
        if together {
            let part = thread.clock * thread.space as u64 / self.together.len() as u64;
            thread.clock += part;
            thread.apart = part;
            self.keys[i] = thread.clock;
        }
    }

    fn end(&mut self, i: usize) -> Result<(), RunError> {
        let space = self.threads[i].space;
        self.keys[i] = Ps::MAX;
        self.live[space] -= 1;
        self.release(space);
        Ok(())
    }

    /// Opens a program's barrier when all of its live threads have arrived.
    fn release(&mut self, space: usize) {
        let waiting = &mut self.waiting[space];
        if waiting.is_empty() || waiting.len() < self.live[space] {
            return;
        }
        let latest = waiting
            .iter()
            .map(|&i| self.threads[i].clock)
            .max()
            .unwrap_or(0);
        for i in waiting.drain(..) {
            let t = &mut self.threads[i];
            t.flight.stalls.barrier += latest - t.clock;
            t.clock = latest + ps(BARRIER_NS);
            self.keys[i] = t.clock;
        }
    }

    /// Unmaps pages: `size` times 4 KiB from `address` on.
    fn unmap(&mut self, i: usize, address: u64, size: u16) {
        let space = self.threads[i].space;
        let tag = (space as u64) << (table::ADDRESS_BITS - self.shared.page_shift);
        let first = address >> self.shared.page_shift;
        let last = (address + size as u64 * 4096) >> self.shared.page_shift;
        for vpn in first..last {
            if let Some(frame) = self.shared.tables[space].unmap(vpn) {
                self.shared.pager.unmap(vpn | tag, frame);
                self.events.forget(vpn | tag);
                for t in &mut self.threads {
                    t.shoot_down(vpn | tag);
                }
            }
        }
        self.events
            .zero_next(self.threads[i].clock, &mut self.shared);
    }

    /// Everything that is due at `now`: snapshots, daemons, time slices.
    /// Counters for the journal. Nothing of the run depends on when it is, so that a run is the same with a journal.
    fn note(&mut self, now: Ps) {
        let counters = Snapshot::of(now, &self.threads, &self.shared, &self.events);
        let (sockets, activity) = self.shared.memory_counts(now);
        if let Some(journal) = &mut self.shared.journal {
            journal.point(counters, &sockets, activity);
        }
    }

    fn happen(&mut self, now: Ps) {
        if now >= self.recorder.next() {
            self.recorder
                .snapshot(now, &self.threads, &self.shared, &self.events);
        }
        if now >= self.events.next() {
            self.events.happen(now, &mut self.threads, &mut self.shared);
            for (i, key) in self.keys.iter_mut().enumerate() {
                if *key != Ps::MAX {
                    *key = self.threads[i].clock;
                }
            }
        }
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
