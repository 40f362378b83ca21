//! The path of an access, written the obvious way: maps, lists and plain rules. The fast path is held to it, from the
//! op to the last count; memory itself is the same in both and has tests of its own.

use super::cache::Sets;
use super::counts::ThreadCounts;
use super::flight::tests::Slow as Window;
use super::link::Store;
use super::memory::MemorySystem;
use super::prefetcher::Prefetcher;
use super::tests::{Fixed, InOrder};
use super::thread::INSTRUCTIONS;
use super::time::{Ps, ps};
use crate::arch::Newer;
use crate::describe::Machine;
use crate::model::{self, Options};
use proptest::prelude::*;
use std::collections::HashMap;
use varve_access::Source;
use varve_access::{Kind, Op};

/// A cache as lists, most recent first: line and dirty.
struct Lru {
    places: Sets,
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
}

impl Lru {
    fn new(sets: u64, ways: u32) -> Lru {
        Lru {
            places: Sets::new(sets),
            sets: vec![Vec::new(); sets as usize],
            ways: ways as usize,
        }
    }

    fn set(&mut self, line: u64) -> &mut Vec<(u64, bool)> {
        &mut self.sets[self.places.divide(line).1 as usize]
    }

    fn hit(&mut self, line: u64, store: bool) -> bool {
        let set = self.set(line);
        let Some(i) = set.iter().position(|e| e.0 == line) else {
            return false;
        };
        let (_, dirty) = set.remove(i);
        set.insert(0, (line, dirty | store));
        true
    }

    /// Returns the dirty line that had to go.
    fn insert(&mut self, line: u64, dirty: bool) -> Option<u64> {
        let ways = self.ways;
        let set = self.set(line);
        set.insert(0, (line, dirty));
        let gone = (set.len() > ways).then(|| set.pop().unwrap())?;
        gone.1.then_some(gone.0)
    }

    fn clean(&mut self, line: u64) -> bool {
        let entry = self.set(line).iter_mut().find(|e| e.0 == line);
        entry.is_some_and(|e| std::mem::take(&mut e.1))
    }
}

struct Path {
    m: Machine,
    page_bytes: u64,
    window: Window,
    counts: ThreadCounts,
    pages: HashMap<u64, u64>,
    first_tlb: Lru,
    second_tlb: Lru,
    l1: Lru,
    instructions: Lru,
    l2: Lru,
    llc: Lru,
    memory: MemorySystem,
    prefetcher: Prefetcher,
    prefetching: bool,
    super_queue: Vec<Ps>,
    last_line: Option<u64>,
    next_write_back: Ps,
    /// Until when lines that left the last level wait.
    leaving: Vec<Ps>,
    /// Instruction time, 1/1024 ps.
    time: u64,
}

impl Path {
    fn new(m: &Machine, page_bytes: u64) -> Path {
        let cache = |c: &crate::describe::Cache| Lru::new(c.bytes.0 / 64 / c.ways as u64, c.ways);
        Path {
            page_bytes,
            window: Window::default(),
            counts: ThreadCounts::default(),
            pages: HashMap::new(),
            first_tlb: Lru::new((m.tlb.l1_entries / m.tlb.l1_ways) as u64, m.tlb.l1_ways),
            second_tlb: Lru::new((m.tlb.l2_entries / m.tlb.l2_ways) as u64, m.tlb.l2_ways),
            l1: cache(&m.l1),
            instructions: Lru::new(INSTRUCTIONS.0 / 64 / INSTRUCTIONS.1 as u64, INSTRUCTIONS.1),
            l2: cache(&m.l2),
            llc: cache(&m.llc),
            memory: MemorySystem::new(m),
            prefetcher: Prefetcher::new(m.prefetch.streams, m.prefetch.distance),
            prefetching: false,
            super_queue: Vec::new(),
            last_line: None,
            next_write_back: 0,
            leaving: Vec::new(),
            time: 0,
            m: m.clone(),
        }
    }

    fn room(&mut self, store: bool) {
        if store {
            self.window.store_room(self.m.core.store_misses as usize);
        }
        self.window.room(self.m.core.fill_buffers as usize);
    }

    /// A line leaves the last level: it waits for an entry, and there until memory takes it.
    fn evict(&mut self, now: Ps, line: u64) -> Ps {
        self.leaving.retain(|until| *until > now);
        self.leaving.sort();
        let full = self.leaving.len() == self.m.core.evictions as usize;
        let at = if full { self.leaving.remove(0) } else { now };
        let taken = self.memory.write(at, line << 6, 0, Store::Evicted);
        self.leaving.push(taken.max(at));
        at
    }

    fn op(&mut self, op: &Op) {
        let per = (1024.0 * 1000.0 / (self.m.core.ghz * self.m.core.ipc)).round() as u64;
        let before = self.time >> 10;
        self.time += op.instructions as u64 * per;
        let w = &mut self.window;
        w.clock += (self.time >> 10) - before;
        w.instructions += op.instructions as u64;
        let (at, reorder) = (w.instructions, self.m.core.reorder_buffer as u64);
        w.stalls.load += Window::retire(&mut w.loads, at, reorder, &mut w.clock);
        match op.kind {
            Kind::Fence if op.addr == Op::LOADS => w.load_fence(),
            Kind::Fence => {
                let until = w.last_flush.max(w.last_store).max(w.clock);
                w.stalls.fence += until - w.clock;
                w.clock = until;
            }
            Kind::NtWrite | Kind::Flush => self.write_through(op),
            Kind::Fetch => self.fetch(op),
            _ => self.access(op),
        }
    }

    fn access(&mut self, op: &Op) {
        let store = matches!(op.kind, Kind::Write | Kind::Update);
        let load = op.kind != Kind::Write;
        self.counts.accesses += 1;
        let w = &mut self.window;
        if op.dependent != 0 && w.last_load > w.clock {
            w.stalls.load += w.last_load - w.clock;
            w.clock = w.last_load;
        }
        if store {
            self.counts.updates += load as u64;
            w.stores_seen += 1;
            let (at, buffer) = (w.stores_seen, self.m.core.store_buffer as u64);
            w.stalls.store += Window::retire(&mut w.stores, at, buffer, &mut w.clock);
        }
        let end = op.addr + op.size.max(1) as u64 - 1;
        for virtual_line in op.addr >> 6..=end >> 6 {
            let (line, walk) = self.translate(virtual_line << 6);
            let again = Some(line) == self.last_line && virtual_line == op.addr >> 6;
            if again && walk == 0 && !store {
                let done = self.window.clock + ps(self.m.l1.ns);
                self.window.last_load = self.window.last_load.max(done);
            } else {
                self.line(line, load, store, walk);
            }
            self.last_line = Some(line);
        }
    }

    fn fetch(&mut self, op: &Op) {
        self.counts.accesses += 1;
        let end = op.addr + op.size.max(1) as u64 - 1;
        let mut latest = 0;
        for virtual_line in op.addr >> 6..=end >> 6 {
            if self.instructions.hit(virtual_line, false) {
                continue;
            }
            self.instructions.insert(virtual_line, false);
            let (line, walk) = self.translate(virtual_line << 6);
            self.counts.l1_misses += 1;
            let start = self.window.clock + walk;
            let done = if self.l2.hit(line, false) {
                start + ps(self.m.l2.ns)
            } else {
                self.counts.l2_misses += 1;
                self.beyond(line, start, true)
            };
            latest = latest.max(done);
        }
        let w = &mut self.window;
        if latest > w.clock {
            w.stalls.fetch += latest - w.clock;
            w.clock = latest;
        }
    }

    /// Physical line of an address, and the time that its translation takes.
    fn translate(&mut self, address: u64) -> (u64, Ps) {
        let vpn = address / self.page_bytes;
        let mut cost = 0;
        if !self.first_tlb.hit(vpn, false) {
            self.first_tlb.insert(vpn, false);
            self.counts.tlb_misses += 1;
            cost = ps(self.m.tlb.l2_ns);
            if !self.second_tlb.hit(vpn, false) {
                self.counts.walks += 1;
                cost += ps(if self.page_bytes > 8192 {
                    self.m.tlb.walk_2m_ns
                } else {
                    self.m.tlb.walk_4k_ns
                });
                self.second_tlb.insert(vpn, false);
            }
        }
        let next = self.pages.len() as u64;
        let frame = *self.pages.entry(vpn).or_insert_with(|| {
            let fault = ps(self.m.os.fault_ns);
            self.counts.faults += 1;
            self.window.clock += fault;
            self.window.stalls.system += fault;
            next
        });
        (
            (frame * self.page_bytes + address % self.page_bytes) >> 6,
            cost,
        )
    }

    fn missed(&mut self, done: Ps, load: bool) {
        let w = &mut self.window;
        if load {
            w.last_load = done;
            w.loads.push_back((done, w.instructions));
        } else {
            w.last_store = w.last_store.max(done);
            w.stores.push_back((w.last_store, w.stores_seen));
            w.fetched.push_back(w.last_store);
        }
    }

    fn line(&mut self, line: u64, load: bool, store: bool, walk: Ps) {
        if self.l1.hit(line, store) {
            let done = self.window.clock + ps(self.m.l1.ns) + walk;
            if load {
                self.window.last_load = done;
            }
            if walk > ps(self.m.tlb.l2_ns) {
                self.room(!load);
                self.missed(done, load);
            }
            return;
        }
        self.counts.l1_misses += 1;
        self.room(!load);
        let start = self.window.clock + walk;
        let on = self.prefetcher.on();
        let ahead = on.then(|| self.prefetcher.observe(line)).flatten();
        let mut done = if self.l2.hit(line, false) {
            let arrival = if on { self.prefetcher.arrival(line) } else { 0 };
            (start + ps(self.m.l2.ns)).max(arrival)
        } else {
            self.counts.l2_misses += 1;
            self.beyond(line, start, true)
        };
        if let Some(out) = self.l1.insert(line, store)
            && !self.l2.hit(out, true)
        {
            done = done.max(self.put_second(out, true, start));
        }
        self.missed(done, load);
        let Some((_, first, last)) = ahead else {
            return;
        };
        for next in first..=last {
            if !self.l2.hit(next, false) {
                self.counts.prefetches += 1;
                self.prefetching = true;
                let done = self.beyond(next, start, false);
                self.prefetcher.arrives(next, done);
            }
        }
    }

    fn beyond(&mut self, line: u64, start: Ps, demand: bool) -> Ps {
        let llc = ps(self.m.llc.ns);
        let mut done = start + llc;
        if !self.llc.hit(line, false) {
            let mut at = start;
            let mut empty = false;
            if self.prefetching {
                self.super_queue.retain(|until| *until > start);
                self.super_queue.sort();
                if self.super_queue.len() >= self.m.core.super_queue as usize {
                    at = self.super_queue.remove(0);
                }
                empty = self.super_queue.is_empty();
            }
            at += llc;
            let reply = self.memory.read(at, line << 6, 0);
            done = reply.done;
            if let Some(out) = self.llc.insert(line, false) {
                done = done.max(self.evict(at, out));
            }
            if demand {
                self.counts.llc_misses += 1;
                self.counts.slow += (reply.source == Source::Slow) as u64;
            }
            if self.prefetching {
                self.prefetching = !empty;
                self.super_queue.push(done);
            }
        }
        done.max(self.put_second(line, false, start))
    }

    fn put_second(&mut self, line: u64, dirty: bool, now: Ps) -> Ps {
        match self.l2.insert(line, dirty) {
            Some(out) if !self.llc.hit(out, true) => match self.llc.insert(out, true) {
                Some(out) => self.evict(now, out),
                None => now,
            },
            _ => now,
        }
    }

    fn write_through(&mut self, op: &Op) {
        self.counts.accesses += 1;
        self.last_line = None;
        let end = op.addr + op.size.max(1) as u64 - 1;
        for virtual_line in op.addr >> 6..=end >> 6 {
            let (line, cost) = self.translate(virtual_line << 6);
            if op.kind == Kind::Flush {
                let dirty = [&mut self.l1, &mut self.l2, &mut self.llc].map(|c| c.clean(line));
                if dirty == [false; 3] {
                    continue;
                }
            }
            self.room(false);
            if op.kind == Kind::Flush {
                let w = &mut self.window;
                let begin = w.clock.max(self.next_write_back);
                w.stalls.store += begin - w.clock;
                w.clock = begin;
                self.next_write_back = begin + ps(self.m.core.write_back_ns);
            }
            let start = self.window.clock + cost + ps(self.m.llc.ns);
            let mut taken = self.memory.write(start, line << 6, 0, Store::Streamed);
            let trip = self.m.core.stream_ns / 2.0;
            if op.kind == Kind::NtWrite {
                let known = self.m.llc.ns + self.m.controller.overhead_ns;
                taken += ps((trip - known).max(0.0));
            }
            let w = &mut self.window;
            if op.kind == Kind::Flush {
                // The store before it may still wait for its line.
                taken = taken.max(w.last_store + taken - start);
            }
            w.last_flush = w.last_flush.max(taken);
            let freed = match op.kind {
                Kind::Flush => taken,
                _ => taken + ps(trip),
            };
            w.stores.push_back((freed, w.stores_seen));
        }
    }
}

/// A machine whose caches and TLBs are small enough for a short program to overflow them.
fn small(name: &str, prefetch: bool) -> Machine {
    let mut m = Machine::load(name).unwrap();
    (m.l1.bytes.0, m.l1.ways) = (2 << 10, 4);
    (m.l2.bytes.0, m.l2.ways) = (12 << 10, 12);
    (m.llc.bytes.0, m.llc.ways) = (33 << 10, 11);
    (m.tlb.l1_entries, m.tlb.l1_ways) = (4, 2);
    (m.tlb.l2_entries, m.tlb.l2_ways) = (12, 3);
    m.prefetch.streams = if prefetch { 4 } else { 0 };
    m
}

/// Runs of neighbouring lines and single jumps, of every kind of access.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let kind = prop::sample::select(vec![
        Kind::Read,
        Kind::Read,
        Kind::Read,
        Kind::Write,
        Kind::Update,
        Kind::Update,
        Kind::Fetch,
        Kind::NtWrite,
        Kind::Flush,
        Kind::Fence,
    ]);
    let run = (
        kind,
        0u64..1 << 18,
        -80i64..100,
        1usize..40,
        0u32..30,
        0u16..200,
        0u8..8,
    );
    prop::collection::vec(run, 1..60).prop_map(|runs| {
        let one = |(kind, from, step, n, instructions, size, dependent)| {
            (0..n as i64).map(move |i| Op {
                addr: match kind {
                    // Either of the two fences.
                    Kind::Fence => from % 2,
                    _ => (1u64 << 32)
                        .wrapping_add(from)
                        .wrapping_add_signed(i * step),
                },
                instructions,
                size: if size > 150 { size } else { size % 17 },
                kind,
                dependent: (dependent == 0) as u8,
            })
        };
        runs.into_iter().flat_map(one).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn the_fast_path_is_the_obvious_path(
        ops in ops(),
        cached in any::<bool>(),
        prefetch in any::<bool>(),
        small_pages in any::<bool>(),
        newer in any::<bool>(),
    ) {
        let name = if cached { "optane-6230-memory-mode" } else { "optane-6230" };
        let m = small(name, prefetch);
        let page_bytes = if small_pages { 4096 } else { 2 << 20 };
        let mut slow = Path::new(&m, page_bytes);
        ops.iter().for_each(|op| slow.op(op));
        let mut pager = InOrder { page_bytes, next: 0 };
        let mut program = Fixed::new(vec![ops]);
        // Processors without the newer instructions give the same.
        let newer = newer.then(Newer::detect).flatten();
        let options = Options::default();
        let out = model::Ready { newer, owners: None }
            .run(&m, &mut pager, &mut [&mut program], &options, &mut |_| true)
            .unwrap();
        slow.counts.instructions = slow.window.instructions;
        prop_assert_eq!(out.threads[0], slow.counts);
        prop_assert_eq!(out.thread_stalls[0], slow.window.stalls);
        prop_assert_eq!(out.thread_ns[0], slow.window.clock / 1000);
    }
}
