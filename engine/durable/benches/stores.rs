//! Durable stores beside what the processor's write-back and fence allow, in the same run: `cargo bench -p varve-durable`.
//!
//! | group | limit | region |
//! |---|---|---|
//! | `store` | a store, its line's write-back, a fence | a store outside of failure-atomic regions |
//! | `region` | the stores and write-backs of an undo log and of the data: a fence before each line that is stored over, two at the end | the same stores in a failure-atomic region |
//! | `objects` | copies, their write-backs, one fence | objects that become durable together |
//!
//! All on ordinary memory: the extra cost of persistent memory comes on top of both.
#![allow(
    missing_docs,
    reason = "criterion's macro makes a public function without"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::World;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use varve_durable::domain::{CacheLines, Domain, Fence};
use varve_heap::Ref;

/// Lines that stores go to in turn: more than a first-level cache would make easy, fewer than the last one holds.
const LINES: usize = 1 << 14;
/// Stores of a failure-atomic region, to one line each, and to eight lines.
const STORES: u64 = 64;
/// Chains of objects that are made before their time is taken.
const CHAINS: u64 = 64;
/// Bytes of a log's entry for a line: its checksum, length, place and number, and what was there.
const ENTRY: usize = 24 + 64;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Stores by hand: no checks, no log.
struct Raw {
    lines: Vec<Line>,
    log: Vec<u8>,
    domain: CacheLines,
    next: usize,
}

impl Raw {
    fn new() -> Raw {
        Raw {
            lines: vec![Line([0; 8]); LINES],
            log: vec![0; 2 * ENTRY * STORES as usize],
            domain: CacheLines::new("raw"),
            next: 0,
        }
    }

    fn store(&mut self) {
        self.next = (self.next + 1) % LINES;
        let word = &raw mut self.lines[self.next].0[0];
        // SAFETY: the word is this vector's, and no other code reads it.
        unsafe { word.write_volatile(self.next as u64) };
        self.domain.write_back(word.cast(), 8);
    }

    fn fence(&mut self) {
        self.domain.fence(Fence::Stored).expect("caches never fail");
    }

    /// An entry of an undo log for the line that comes next.
    fn log(&mut self, number: usize) {
        let held = self.lines[(self.next + 1) % LINES].0;
        let entry = &mut self.log[number * ENTRY..][..ENTRY];
        for (to, from) in entry[24..].chunks_exact_mut(8).zip(held) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        let at = entry.as_ptr();
        self.domain.write_back(at, ENTRY as u64);
    }
}

/// A region with a table that is one long durable object, on the same instructions.
fn world() -> (World, u64) {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    let table = world.table((LINES * 16) as u32);
    let table = world.publish("table", table);
    let start = varve_durable::Space::offset_of(table.offset());
    (world, start.next_multiple_of(64) + 64)
}

/// The place of the line that comes next.
fn next(start: u64, turn: &mut u64) -> u64 {
    *turn = (*turn + 1) % (LINES as u64 - 2);
    start + 64 * *turn
}

fn store(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("store");
    group.throughput(Throughput::Elements(1));
    let mut raw = Raw::new();
    group.bench_function("limit", |b| {
        b.iter(|| {
            raw.store();
            raw.fence();
        });
    });
    let (mut world, start) = world();
    let mut turn = 0;
    group.bench_function("region", |b| {
        b.iter(|| {
            let at = next(start, &mut turn);
            world.space().store(at, 0, &turn.to_le_bytes()).unwrap();
        });
    });
    group.finish();
}

fn region(c: &mut Criterion<ProcessorTime>) {
    for (name, lines) in [
        ("region, 64 lines", STORES),
        ("region, 8 lines", STORES / 8),
    ] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(STORES));
        let mut raw = Raw::new();
        group.bench_function("limit", |b| {
            b.iter(|| {
                for i in 0..lines {
                    raw.log(i as usize);
                    raw.fence();
                    for _ in 1..STORES / lines {
                        let next = raw.next;
                        raw.store();
                        raw.next = next;
                    }
                    raw.store();
                }
                raw.fence();
                raw.store();
                raw.fence();
            });
        });
        let (mut world, start) = world();
        let mut turn = 0;
        group.bench_function("region", |b| {
            b.iter(|| {
                let space = world.space();
                space.begin();
                for _ in 0..lines {
                    let at = next(start, &mut turn);
                    for i in 0..STORES / lines {
                        space.store(at, 8 * i % 64, &turn.to_le_bytes()).unwrap();
                    }
                }
                space.end().unwrap();
            });
        });
        group.finish();
    }
}

fn objects(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("objects, 64 lines");
    group.throughput(Throughput::Elements(STORES));
    let mut raw = Raw::new();
    group.bench_function("limit", |b| {
        b.iter(|| {
            for _ in 0..STORES {
                raw.store();
            }
            raw.fence();
        });
    });
    let mut world = world().0;
    group.bench_function("region", |b| {
        b.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let chains = left.min(CHAINS);
                left -= chains;
                world.held.clear();
                world.space().collect(&[]);
                for _ in 0..chains {
                    // Two nodes of 32 bytes are a line.
                    let add = |chain, i| world.node(i, i, chain, Ref::NULL);
                    let chain = (0..2 * STORES as i64).fold(Ref::NULL, add);
                    // The heap may move it until its turn comes.
                    world.held.push(chain);
                }
                let begun = ProcessorTime.start();
                for chain in 0..chains as usize {
                    let chain = world.held[chain];
                    world.persist(chain).unwrap();
                }
                time += ProcessorTime.end(begun);
            }
            time
        });
    });
    group.finish();
}

/// Time for which a processor ran this thread: other activity of the machine is not in it.
struct ProcessorTime;

static WALL: WallTime = WallTime;

impl Measurement for ProcessorTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn end(&self, start: Duration) -> Duration {
        self.start() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WALL.formatter()
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(ProcessorTime);
    targets = store, region, objects
}
criterion_main!(benches);
