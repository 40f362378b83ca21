//! One simulated thread on its own core, and the path of an access from its address to its time.

use super::activity::ChannelActivity;
use super::cache::{CacheArray, CacheSlot, Found};
use super::counts::{SocketCounts, ThreadCounts};
use super::flight::Flight;
use super::host::InstructionLevel;
use super::journal::Journal;
use super::link::Store;
use super::memory::{MemorySystem, Reply};
use super::owners::Owners;
use super::prefetcher::Prefetcher;
use super::queue::Entries;
use super::replicas::{By, Replicas};
use super::table::{PageTable, TlbHierarchy};
use super::time::{Ps, ps};
use crate::describe::Machine;
use recent::Recent;
use std::hint::select_unpredictable;
use varve_access::{Fault, OutOfFrames, Pager, Sample, Source};
use varve_access::{Kind, Op};
use work::{FetchAhead, Instructions, Look, Missed, WriteThrough};

mod recent;
mod work;

pub use work::Turn;

/// Latencies of a core, ps.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Time of one instruction, 1/1024 ps (so that a product with a count stays exact enough).
    pub instruction: u64,
    l1: Ps,
    l2: Ps,
    llc: Ps,
    /// A non-temporal store goes there and back twice: time of one of these beyond that of a write-back, and of one.
    stream_first: Ps,
    stream_second: Ps,
    write_back: Ps,
    stlb: Ps,
    walk: Ps,
    fault: Ps,
    sample: Ps,
}

impl Latencies {
    /// Latencies of `m` with pages of `page_bytes`.
    pub fn of(m: &Machine, page_bytes: u64) -> Latencies {
        // Pages of at least 16 KiB stand for 2 MiB pages (on a machine that is scaled down they shrink).
        let walk = if page_bytes > 8192 {
            m.tlb.walk_2m_ns
        } else {
            m.tlb.walk_4k_ns
        };
        Latencies {
            instruction: (1024.0 * 1000.0 / (m.core.ghz * m.core.ipc)).round() as u64,
            l1: ps(m.l1.ns),
            l2: ps(m.l2.ns),
            llc: ps(m.llc.ns),
            stream_first: ps(
                (m.core.stream_ns / 2.0 - m.llc.ns - m.controller.overhead_ns).max(0.0),
            ),
            stream_second: ps(m.core.stream_ns / 2.0),
            write_back: ps(m.core.write_back_ns),
            stlb: ps(m.tlb.l2_ns),
            walk: ps(walk),
            fault: ps(m.os.fault_ns),
            sample: ps(m.os.sample_ns),
        }
    }
}

/// State that all threads of a run share.
pub struct Shared<'a> {
    /// Last-level cache of each socket.
    pub llc: Vec<CacheArray>,
    /// Memory.
    pub memory: MemorySystem,
    /// Page tables, one per program.
    pub tables: Vec<PageTable>,
    /// Places pages.
    pub pager: &'a mut dyn Pager,
    /// Latencies.
    pub lat: Latencies,
    /// log2 of the page size.
    pub page_shift: u32,
    /// Sampling period in events; 0 is off.
    pub sample_period: u64,
    /// A page that is being moved: its writers wait until it is done.
    pub moving: Option<(u64, Ps)>,
    /// The instances that are not simulated, if there are any (symmetric replication).
    pub replicas: Option<Box<Replicas>>,
    /// Lines that a page move, or a page that is zeroed, keeps in flight.
    pub lanes: usize,
    /// Bytes that threads zeroed themselves.
    pub zeroed_late: u64,
    /// Maps addresses to owners, if the run counts by owner.
    pub owners: Option<&'a mut dyn Owners>,
    /// Events with their times, if the run keeps a journal.
    pub journal: Option<Box<Journal>>,
    /// Set when the pager had no frame left.
    pub out_of_frames: Option<OutOfFrames>,
}

impl Shared<'_> {
    /// Zeroes bytes of a page from `now` on, by stores that bypass the caches; returns when that is done. `by`: a
    /// thread that waits for it, and its instructions.
    pub fn zero(&mut self, now: Ps, first: u64, bytes: u64, by: Option<(u32, u64)>) -> Ps {
        let by = By {
            socket: self.memory.socket_of(first),
            thread: by.map(|(thread, _)| thread as usize),
            instructions: by.map_or(0, |(_, instructions)| instructions),
        };
        let mut flight = vec![now; self.lanes.max(1)];
        let mut end = now;
        for i in 0..bytes as usize / 64 {
            let lane = &mut flight[i % self.lanes.max(1)];
            let line = first + 64 * i as u64;
            let taken = self.write(by, (*lane, *lane), line, Store::Streamed);
            *lane = taken.max(*lane);
            end = end.max(*lane);
        }
        end
    }

    /// A line is read at `at`. Instances that are not simulated read theirs.
    #[inline(always)]
    fn read(&mut self, by: By, at: Ps, physical: u64) -> Reply {
        match &mut self.replicas {
            None => self.memory.read(at, physical, by.socket),
            Some(replicas) => replicas.read(by, at, physical, &mut self.memory),
        }
    }

    /// A line is written at `at`, which the core comes to `now`; returns when the write queue took it.
    #[inline(always)]
    fn write(&mut self, by: By, (now, at): (Ps, Ps), physical: u64, how: Store) -> Ps {
        match &mut self.replicas {
            None => self.memory.write(at, physical, by.socket, how),
            Some(replicas) => replicas.write(by, (now, at), physical, how, &mut self.memory),
        }
    }

    /// Copies a page from `now` on; returns when that is done.
    pub fn copy(&mut self, now: Ps, from: u64, to: u64, bytes: u64) -> Ps {
        match &mut self.replicas {
            None => self.memory.copy(now, from, to, bytes, self.lanes),
            Some(replicas) => replicas.copy(now, (from, to), bytes, self.lanes, &mut self.memory),
        }
    }

    /// Counts of each socket so far, and activity of each channel's memory until `now`, per socket and channel.
    pub fn memory_counts(&self, now: Ps) -> (Vec<SocketCounts>, Vec<Vec<ChannelActivity>>) {
        let of_all = self.replicas.as_ref().and_then(|r| r.counts(now));
        of_all.unwrap_or_else(|| (self.memory.counts(), self.memory.activity(now)))
    }
}

/// One thread.
pub struct Thread {
    /// Virtual time, ps.
    pub clock: Ps,
    /// Counts.
    pub counts: ThreadCounts,
    /// In flight.
    pub flight: Flight,
    /// Ops that were fetched from the program and not yet run.
    pub ops: Vec<Op>,
    /// Next of them.
    pub next: usize,
    /// The instructions before that one have run, and the data that its address depends on is there.
    ready: bool,
    /// Start of the request that runs, ps.
    pub request: Option<Ps>,
    /// How long it waited so as not to go in step with other instances, ps.
    pub apart: Ps,
    /// Time that it slept, ps.
    pub slept: Ps,
    /// Program (address space) it belongs to.
    pub space: usize,
    /// Number within the program.
    pub number: usize,
    /// Socket it runs on.
    pub socket: usize,
    /// Number within the run.
    pub id: u32,
    tlb: TlbHierarchy,
    l1: CacheArray,
    /// Of instructions, by their virtual lines.
    l1_instructions: CacheArray,
    l2: CacheArray,
    prefetcher: Prefetcher,
    /// Remainder of instruction time below 1 ps, 1/1024.
    fraction: u64,
    until_sample: u64,
    /// The same of the program while the kernel runs, whose accesses are not sampled (PEBS with `exclude_kernel`).
    until_program_sample: Option<u64>,
    page_shift: u32,
    /// Page numbers of different programs differ in the bits above an address.
    tag: u64,
    /// The op at which to look ahead again.
    look_at: usize,
    /// How far the look-ahead has come in `ops`.
    looked: usize,
    /// Physical lines of the ops that it has read ahead, `NONE` for one without a line, and their places in the last
    /// level.
    ahead: [(u64, CacheSlot); 2 * CHUNK],
    /// Virtual line of the last access.
    last_line: u64,
    /// The lines that hits ask for first.
    recent: Recent,
    /// Address of the access that runs, for samples.
    address: u64,
    /// Lines that went out of the last level for this core's, and that memory has yet to take.
    leaving: Entries,
    /// Lines in flight beyond the second level.
    queue: Entries,
    /// Prefetches are in flight. Without them the fill buffers are the tighter bound, and `queue` is not used.
    prefetching: bool,
}

/// Ops between two looks ahead. Each of them prefetches into the host's caches the model's own tables: those for the
/// lines of the chunk after the next one, and those for the lines that the next chunk will push out.
const CHUNK: usize = 8;
/// Bytes and ways of a core's first-level instruction cache: those of all Intel cores since Nehalem (Intel 64 and IA-32
/// Architectures Optimization Reference Manual, sections on the front end of each).
pub(super) const INSTRUCTIONS: (u64, u32) = (32 << 10, 8);
/// No line.
const NONE: u64 = u64::MAX;

impl Thread {
    /// A thread at time 0.
    pub fn new(
        m: &Machine,
        id: u32,
        space: usize,
        number: usize,
        socket: usize,
        sample_period: u64,
        page_shift: u32,
    ) -> Thread {
        Thread {
            clock: 0,
            counts: ThreadCounts::default(),
            flight: Flight::new(&m.core),
            ops: Vec::with_capacity(512),
            next: 0,
            ready: false,
            request: None,
            apart: 0,
            slept: 0,
            space,
            number,
            socket,
            id,
            tlb: TlbHierarchy::new(&m.tlb, 0),
            l1: CacheArray::new(m.l1.bytes.0, m.l1.ways),
            l1_instructions: CacheArray::new(INSTRUCTIONS.0, INSTRUCTIONS.1),
            l2: CacheArray::new(m.l2.bytes.0, m.l2.ways),
            prefetcher: Prefetcher::new(m.prefetch.streams, m.prefetch.distance),
            fraction: 0,
            // Threads do not sample in step.
            until_sample: 1 + (sample_period * (id as u64 * 7 + 3) / 16) % sample_period.max(1),
            until_program_sample: None,
            page_shift,
            tag: (space as u64) << (super::table::ADDRESS_BITS - page_shift),
            look_at: 0,
            looked: 0,
            ahead: [(NONE, CacheSlot::default()); 2 * CHUNK],
            last_line: NONE,
            recent: Recent::new(m.l1.bytes.0 / 64 / u64::from(m.l1.ways.max(1))),
            address: 0,
            queue: Entries::new(m.core.super_queue),
            leaving: Entries::new(m.core.evictions),
            prefetching: false,
        }
    }

    /// Pages of the thread have parts, whose addresses differ in a bit: see [`Options::part_bit`](super::Options).
    pub fn with_parts(mut self, m: &Machine, bit: Option<u32>) -> Thread {
        let part = bit.map_or(0, |bit| 1 << bit >> self.page_shift);
        self.tlb = TlbHierarchy::new(&m.tlb, part);
        self
    }

    /// This thread as the requester of a memory access.
    #[inline(always)]
    fn by(&self) -> By {
        By {
            socket: self.socket,
            thread: Some(self.id as usize),
            instructions: self.flight.instructions,
        }
    }

    /// Forgets the translation of a page.
    pub fn shoot_down(&mut self, vpn: u64) {
        self.tlb.forget(vpn);
        self.recent.forget_all();
        self.last_line = NONE;
    }

    /// New ops are in `ops`.
    pub fn refilled(&mut self) {
        self.next = 0;
        self.look_at = 0;
        self.looked = 0;
    }

    /// Time passes for `n` instructions.
    #[inline(always)]
    fn work(&mut self, n: u32, lat: &Latencies) {
        let t = n as u64 * lat.instruction + self.fraction;
        self.clock += t >> 10;
        self.fraction = t & 1023;
        self.clock = self.flight.advance(self.clock, n);
    }

    /// The thread loses time to the operating system.
    pub fn lose(&mut self, time: Ps) {
        self.clock += time;
        self.flight.stalls.system += time;
    }

    /// Runs ops from the buffer until the next one would begin after `limit`, the buffer ends, or an op needs the driver.
    /// Returns that op.
    #[inline(always)]
    fn run<L: InstructionLevel>(&mut self, level: L, limit: Ps, s: &mut Shared) -> Option<Op> {
        loop {
            let &op = self.ops.get(self.next)?;
            if !self.ready {
                self.work(op.instructions, &s.lat);
                if op.dependent != 0 && op.kind.is_cached() {
                    self.clock = self.flight.depend(self.clock);
                }
                if self.clock > limit {
                    // Its next request comes after those of the other threads until then.
                    self.ready = true;
                    return None;
                }
            }
            self.ready = false;
            self.next += 1;
            if op.kind.is_cached() {
                self.access(level, op, s);
                continue;
            }
            match op.kind {
                Kind::Fetch => level.run(Instructions(self, s, op)),
                Kind::NtWrite | Kind::Flush => level.run(WriteThrough(self, s, op)),
                Kind::Fence if op.addr == Op::LOADS => {
                    self.clock = self.flight.load_fence(self.clock);
                }
                Kind::Fence => self.clock = self.flight.fence(self.clock),
                Kind::Kernel => self.enter_kernel(op.addr != 0),
                Kind::Begin => self.request = Some(self.clock),
                Kind::Touch => self.touch(op, s),
                _ => return Some(op),
            }
        }
    }

    /// Touches the host memory that ops a little ahead will need: page-table entry, cache sets, DRAM-cache tag.
    #[inline(always)]
    fn look_ahead(&mut self, s: &mut Shared) {
        self.look_at = self.next + CHUNK - 1;
        let llc = &s.llc[self.socket];
        let table = &s.tables[self.space];
        let cached = s.memory.has_cache();
        // The sets of these lines were asked for one chunk ago.
        if cached && self.flight.has_stored() {
            for i in self.next..self.looked {
                let (line, place) = self.ahead[i % (2 * CHUNK)];
                if line != NONE
                    && let Some(out) = llc.victim_of(place)
                {
                    s.memory.prefetch(out << 6);
                }
            }
        }
        // There are none left when memory is full and the run about to end.
        let from = self.looked.max(self.next).min(self.ops.len());
        let to = (self.next + 2 * CHUNK).min(self.ops.len()).max(from);
        for (i, op) in (from..).zip(&self.ops[from..to]) {
            let mut ahead = (NONE, CacheSlot::default());
            if op.kind.is_access()
                && let Some(frame) = table.frame(op.addr >> self.page_shift)
            {
                let physical = self.physical(frame, op.addr);
                let line = physical >> 6;
                self.l2.prefetch(self.l2.place(line));
                let place = llc.place(line);
                llc.prefetch(place);
                if cached {
                    s.memory.prefetch(physical);
                }
                ahead = (line, place);
            }
            self.ahead[i % (2 * CHUNK)] = ahead;
        }
        self.looked = to;
    }

    /// Where a line of the op that runs goes in the last level.
    #[inline(always)]
    fn last_place(&self, line: u64, llc: &CacheArray) -> CacheSlot {
        let (known, place) = self.ahead[self.next.wrapping_sub(1) % (2 * CHUNK)];
        if known == line {
            return place;
        }
        llc.place(line)
    }

    /// The physical address of an address whose page is in a frame.
    #[inline(always)]
    fn physical(&self, frame: u32, address: u64) -> u64 {
        (frame as u64) << self.page_shift | address & ((1 << self.page_shift) - 1)
    }

    /// Virtual to physical; the extra latency of TLB misses comes back with it.
    #[inline(always)]
    fn translate(&mut self, address: u64, store: bool, s: &mut Shared) -> (u64, Ps) {
        let vpn = (address >> self.page_shift) | self.tag;
        let (frame, cost) = match self.tlb.first(vpn) {
            Some(frame) => (frame, 0),
            None => self.translate_slowly(vpn, store, s),
        };
        (self.physical(frame, address), cost)
    }

    #[inline(always)]
    fn translate_slowly(&mut self, vpn: u64, store: bool, s: &mut Shared) -> (u32, Ps) {
        let frame = s.tables[self.space].frame(vpn);
        if let (Some(frame), Some(_)) = (frame, self.tlb.other_part(vpn))
            && self.tlb.take_part(vpn, frame)
        {
            return (frame, 0);
        }
        self.counts.tlb_misses += 1;
        if let Some(frame) = frame
            && s.moving.is_none_or(|(page, _)| page != vpn)
        {
            self.tlb.remember(vpn, frame);
            if self.tlb.second(vpn) {
                return (frame, s.lat.stlb);
            }
            self.counts.walks += 1;
            return (frame, s.lat.stlb + s.lat.walk);
        }
        self.translate_rarely(vpn, store, s)
    }

    /// A page that has no frame yet, or is being moved.
    #[cold]
    fn translate_rarely(&mut self, vpn: u64, store: bool, s: &mut Shared) -> (u32, Ps) {
        self.counts.walks += 1;
        if let Some((page, until)) = s.moving {
            // The page is write-protected while it is copied: its writers fault and wait.
            if page == vpn && self.clock < until {
                if store {
                    self.lose(until - self.clock);
                } else if let Some(frame) = s.tables[self.space].frame(vpn) {
                    return (frame, s.lat.stlb + s.lat.walk);
                }
            }
        }
        let frame = match s.tables[self.space].frame(vpn) {
            Some(frame) => frame,
            None => {
                let fault = Fault {
                    vpn,
                    thread: self.id,
                    socket: self.socket as u32,
                    write: store,
                    now: self.clock / 1000,
                };
                match s.pager.fault(&fault) {
                    Ok(frame) => {
                        s.tables[self.space].map(vpn, frame);
                        let other = self.tlb.other_part(vpn);
                        if let Some(other) = other
                            && s.tables[self.space].frame(other).is_some()
                        {
                            // The page had its fault.
                            return self.translate_slowly(vpn, store, s);
                        }
                        self.counts.faults += 1;
                        self.lose(s.lat.fault);
                        if s.pager.is_dirty(frame) {
                            let bytes = 1 << s.page_shift;
                            s.zeroed_late += bytes;
                            let by = Some((self.id, self.flight.instructions));
                            let end = s.zero(self.clock, self.physical(frame, 0), bytes, by);
                            self.lose(end - self.clock);
                        }
                        frame
                    }
                    Err(e) => {
                        s.out_of_frames = Some(e);
                        // The run ends here.
                        self.ops.clear();
                        0
                    }
                }
            }
        };
        self.tlb.second(vpn);
        self.tlb.remember(vpn, frame);
        (frame, s.lat.stlb + s.lat.walk)
    }

    /// A cached access: every line that it touches.
    #[inline(always)]
    fn access<L: InstructionLevel>(&mut self, level: L, op: Op, s: &mut Shared) {
        self.counts.accesses += 1;
        let store = matches!(op.kind, Kind::Write | Kind::Update);
        self.counts.updates += (op.kind == Kind::Update) as u64;
        self.clock = self.flight.store(self.clock, store);
        let line = op.addr >> 6;
        // One jump for all of it: stores and hits are hard to predict.
        let hit = self.recent.has(line, store)
            & self.tlb.is_newest((op.addr >> self.page_shift) | self.tag)
            & op.is_inside_a_line()
            & (!store | (s.sample_period == 0));
        if hit {
            if op.kind != Kind::Write {
                // The line of the last access may still be on its way.
                let still = select_unpredictable(
                    (line == self.last_line) & !store,
                    self.flight.last_load,
                    0,
                );
                self.flight.last_load = still.max(self.clock + s.lat.l1);
            }
            self.last_line = line;
            return;
        }
        self.address = op.addr;
        let physical = self.access_line(level, op, op.addr, store, s);
        if s.sample_period != 0 && store {
            self.count_sample(physical, Source::Store, s);
        }
        if !op.is_inside_a_line() {
            self.access_rest(level, op, store, s);
        }
    }

    /// Everything but the first level is as after an access; no time passes.
    #[inline(never)]
    fn touch(&mut self, op: Op, s: &mut Shared) {
        let store = op.size != 0;
        let (clock, stalls) = (self.clock, self.flight.stalls);
        let counts = self.counts;
        let (physical, _) = self.translate(op.addr, store, s);
        self.counts = ThreadCounts {
            faults: self.counts.faults,
            ..counts
        };
        (self.clock, self.flight.stalls) = (clock, stalls);
        if s.out_of_frames.is_some() {
            return;
        }
        let line = physical >> 6;
        let Found::Miss(out) = self.l2.access::<16>(line, store) else {
            return;
        };
        let llc = &mut s.llc[self.socket];
        for (line, store) in [(Some(line), false), (out, true)] {
            let Some(line) = line else { continue };
            let Found::Miss(out) = llc.access::<16>(line, store) else {
                continue;
            };
            if !store {
                s.memory.touch(line << 6, false);
            }
            if let Some(out) = out {
                s.memory.touch(out << 6, true);
            }
        }
    }

    /// The line of an access that lies at an address; returns where that is.
    #[inline(always)]
    fn access_line<L: InstructionLevel>(
        &mut self,
        level: L,
        op: Op,
        address: u64,
        store: bool,
        s: &mut Shared,
    ) -> u64 {
        let (physical, walk) = self.translate(address, store, s);
        let again = address >> 6 == self.last_line && walk == 0 && !store;
        self.line(level, physical >> 6, op.kind, walk, again, s);
        self.last_line = address >> 6;
        self.recent.note(address >> 6, store);
        physical
    }

    /// The other lines of an access.
    #[inline(never)]
    fn access_rest<L: InstructionLevel>(&mut self, level: L, op: Op, store: bool, s: &mut Shared) {
        let last = (op.addr + op.size as u64 - 1) >> 6;
        for line in (op.addr >> 6) + 1..=last {
            self.access_line(level, op, line << 6, store, s);
        }
    }

    /// One line through the caches. `again`: it is the line of the last access.
    #[inline(always)]
    fn line<L: InstructionLevel>(
        &mut self,
        level: L,
        line: u64,
        kind: Kind,
        walk: Ps,
        again: bool,
        s: &mut Shared,
    ) {
        let (load, store) = (kind != Kind::Write, kind != Kind::Read);
        let found = if self.l1.is_small() {
            self.l1.access::<8>(line, store)
        } else {
            self.l1.access::<16>(line, store)
        };
        let Found::Miss(out) = found else {
            if load {
                // The line of the last access may still be on its way.
                let last = select_unpredictable(again, self.flight.last_load, 0);
                self.flight.last_load = last.max(self.clock + s.lat.l1 + walk);
            }
            if walk > s.lat.stlb {
                self.find_owner(s);
                // A walk for a line that is cached all the same holds up the loads behind it like a miss.
                self.miss(self.clock + walk + s.lat.l1, load);
            }
            return;
        };
        level.run(Missed {
            thread: self,
            shared: s,
            line,
            out,
            load,
            walk,
        });
    }

    /// Records the owner of the memory that the current access asks for, if the run counts by owner.
    #[inline(always)]
    fn find_owner(&mut self, s: &mut Shared) {
        if let (Some(ledger), Some(owners)) = (&mut self.flight.ledger, &mut s.owners) {
            ledger.current.owner = owners.owner(self.address);
            ledger.come_to(self.next.saturating_sub(1) as u32);
        }
    }

    /// Records that the access that runs had to go to memory, if it had.
    #[inline(always)]
    fn note_miss(&mut self, misses_before: u64, load: bool) {
        if let Some(ledger) = &mut self.flight.ledger
            && self.counts.llc_misses > misses_before
        {
            ledger.missed(load);
        }
    }

    #[inline(always)]
    fn miss(&mut self, done: Ps, load: bool) {
        self.clock = self.flight.room(self.clock, !load);
        if load {
            self.flight.load_miss(done)
        } else {
            self.flight.store_miss(done)
        }
    }

    /// A line that the first level did not have; `out` is the dirty one that had to go for it.
    #[inline(always)]
    fn first_level_miss<L: InstructionLevel>(
        &mut self,
        level: L,
        line: u64,
        out: Option<u64>,
        load: bool,
        walk: Ps,
        s: &mut Shared,
    ) {
        let misses_before = self.counts.llc_misses;
        self.find_owner(s);
        self.counts.l1_misses += 1;
        self.clock = self.flight.room(self.clock, !load);
        let start = self.clock + walk;
        let ahead = if self.prefetcher.on() {
            self.prefetcher.observe(line)
        } else {
            None
        };
        let mut done = match self.l2.access::<16>(line, false) {
            // A line that was prefetched may still be on its way.
            Found::Hit => (start + s.lat.l2).max(if self.prefetcher.on() {
                self.prefetcher.arrival(line)
            } else {
                0
            }),
            Found::Miss(out) => {
                self.counts.l2_misses += 1;
                if self.next > self.look_at {
                    level.run(Look(self, s));
                }
                self.beyond(line, out, start, true, s)
            }
        };
        if let Some(out) = out
            && let Found::Miss(Some(out)) = self.l2.access::<16>(out, true)
        {
            done = done.max(self.put_last(out, start, s));
        }
        self.note_miss(misses_before, load);
        if load {
            self.flight.load_miss(done)
        } else {
            self.flight.store_miss(done)
        }
        if let Some((_, first, last)) = ahead {
            level.run(FetchAhead {
                thread: self,
                shared: s,
                lines: (first, last),
                now: start,
            });
        }
    }

    /// Fetches a line from the last level or memory into the second level. The dirty line `out` had to leave that for
    /// it and moves to the last level, and a line that this pushes out goes to memory. Returns when there was room for
    /// all of it.
    #[inline(always)]
    fn beyond(
        &mut self,
        line: u64,
        out: Option<u64>,
        start: Ps,
        demand: bool,
        s: &mut Shared,
    ) -> Ps {
        let llc = &mut s.llc[self.socket];
        let place = if demand {
            self.last_place(line, llc)
        } else {
            llc.place(line)
        };
        let done = match llc.access_at::<16>(place, false) {
            Found::Hit => start + s.lat.llc,
            Found::Miss(out) => self.fetch(line, out, start, demand, s),
        };
        match out {
            Some(out) => done.max(self.put_last(out, start, s)),
            None => done,
        }
    }

    /// Fetches a line from memory into the last level, where the dirty line `out` had to go for it.
    #[inline(always)]
    fn fetch(
        &mut self,
        line: u64,
        out: Option<u64>,
        start: Ps,
        demand: bool,
        s: &mut Shared,
    ) -> Ps {
        let at = if self.prefetching {
            self.queue.admit(start)
        } else {
            start
        } + s.lat.llc;
        let reply = s.read(self.by(), at, line << 6);
        if let Some(ledger) = &mut self.flight.ledger {
            ledger.brought();
        }
        let mut done = reply.done;
        if let Some(out) = out {
            // The fill waits when the write queue is full: that is how writers feel slow memory.
            done = done.max(self.write_back(out, at, s));
        }
        if demand {
            self.counts.llc_misses += 1;
            self.counts.slow += (reply.source == Source::Slow) as u64;
            if s.sample_period != 0 {
                self.count_sample(line << 6, reply.source, s);
            }
        }
        if self.prefetching {
            self.prefetching = !self.queue.is_empty();
            self.queue.hold(done);
        }
        done
    }

    /// The last level pushes a line out to memory; returns when there was an entry for it, in which it waits until
    /// memory takes it.
    #[inline(always)]
    fn write_back(&mut self, line: u64, now: Ps, s: &mut Shared) -> Ps {
        let at = self.leaving.admit(now);
        let taken = s.write(self.by(), (now, at), line << 6, Store::Evicted);
        self.leaving.hold(taken.max(at));
        at
    }

    /// Puts a dirty line into the last level; returns when there was room for it.
    #[inline(never)]
    fn put_last(&mut self, line: u64, now: Ps, s: &mut Shared) -> Ps {
        match s.llc[self.socket].access::<16>(line, true) {
            Found::Miss(Some(out)) => self.write_back(out, now, s),
            _ => now,
        }
    }

    #[inline(always)]
    fn fetch_ahead(&mut self, line: u64, now: Ps, s: &mut Shared) {
        let Found::Miss(out) = self.l2.access::<16>(line, false) else {
            return;
        };
        self.counts.prefetches += 1;
        self.prefetching = true;
        let done = self.beyond(line, out, now, false, s);
        self.prefetcher.arrives(line, done);
    }

    /// Instructions: those of their lines that the first level does not have are asked for together, since branch
    /// prediction runs ahead, and nothing runs until they are there.
    #[inline(always)]
    fn instructions(&mut self, op: Op, s: &mut Shared) {
        self.counts.accesses += 1;
        let last = (op.addr + op.size.max(1) as u64 - 1) >> 6;
        let mut latest = 0;
        for at in op.addr >> 6..=last {
            if self.l1_instructions.access::<8>(at, false) == Found::Hit {
                continue;
            }
            self.address = at << 6;
            let (physical, cost) = self.translate(at << 6, false, s);
            if s.out_of_frames.is_some() {
                return;
            }
            let misses_before = self.counts.llc_misses;
            self.find_owner(s);
            self.counts.l1_misses += 1;
            let start = self.clock + cost;
            let line = physical >> 6;
            let done = match self.l2.access::<16>(line, false) {
                Found::Hit => start + s.lat.l2,
                Found::Miss(out) => {
                    self.counts.l2_misses += 1;
                    self.beyond(line, out, start, true, s)
                }
            };
            self.note_miss(misses_before, true);
            latest = latest.max(done);
        }
        if latest > self.clock {
            self.flight.stalls.fetch += latest - self.clock;
            if let Some(ledger) = &mut self.flight.ledger {
                ledger.waited(ledger.current, latest - self.clock);
            }
            self.clock = latest;
        }
    }

    /// Non-temporal stores, or write-backs that keep the line: every line that the op touches.
    #[inline(always)]
    fn write_through(&mut self, op: Op, s: &mut Shared) {
        self.counts.accesses += 1;
        self.last_line = NONE;
        let last = (op.addr + op.size.max(1) as u64 - 1) >> 6;
        for at in op.addr >> 6..last + 1 {
            self.address = at << 6;
            self.recent.forget(at);
            let (physical, cost) = self.translate(at << 6, true, s);
            if s.out_of_frames.is_some() {
                return;
            }
            let dirty = op.kind == Kind::NtWrite || self.clean(physical >> 6, s);
            if !dirty {
                continue;
            }
            self.find_owner(s);
            self.clock = self.flight.room(self.clock, false);
            if op.kind == Kind::Flush {
                self.clock = self.flight.write_back(self.clock, s.lat.write_back);
            }
            let start = self.clock + cost + s.lat.llc;
            let how = match op.kind {
                Kind::Flush => Store::Cleaned,
                _ => Store::Streamed,
            };
            // The answer of another socket has to come back.
            let way_back = s.memory.way_back(physical, self.socket);
            let mut taken = s.write(self.by(), (start, start), physical, how) + way_back;
            let freed;
            if op.kind == Kind::Flush {
                // A write-back needs its line: the store before it may still wait for it.
                taken = taken.max(self.flight.stores_done() + (taken - start));
                freed = taken;
            } else {
                // Once memory knows of the store a fence goes on; then the data is fetched from the fill buffer.
                taken += s.lat.stream_first;
                freed = taken + s.lat.stream_second + 2 * way_back;
            }
            self.flight.flush(taken, freed);
            if s.sample_period != 0 {
                self.count_sample(physical, Source::Store, s);
            }
        }
    }

    /// Cleans a line in every cache; was it dirty in one?
    #[inline(never)]
    fn clean(&mut self, line: u64, s: &mut Shared) -> bool {
        let first = self.l1.clean(line);
        let second = self.l2.clean(line);
        let third = s.llc[self.socket].clean(line);
        first || second || third
    }

    #[inline(always)]
    fn count_sample(&mut self, physical: u64, source: Source, s: &mut Shared) {
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.take_sample(physical, source, s);
        }
    }

    /// The kernel goes on in the thread's place, or the program does again. So that no access has to ask which of them
    /// it comes from, the kernel has a count of its own, which never comes to an end.
    fn enter_kernel(&mut self, enters: bool) {
        if enters == self.until_program_sample.is_some() {
            return;
        }
        match self.until_program_sample.take() {
            Some(left) => self.until_sample = left,
            None => {
                self.until_program_sample =
                    Some(std::mem::replace(&mut self.until_sample, u64::MAX));
            }
        }
    }

    #[inline(never)]
    fn take_sample(&mut self, physical: u64, source: Source, s: &mut Shared) {
        self.until_sample = s.sample_period;
        self.counts.samples += 1;
        let vpn = (self.address >> s.page_shift) | self.tag;
        let frame = (physical >> s.page_shift) as u32;
        s.pager.sample(&Sample {
            vpn,
            frame,
            source,
            thread: self.id,
            now: self.clock / 1000,
        });
        self.lose(s.lat.sample);
    }
}
