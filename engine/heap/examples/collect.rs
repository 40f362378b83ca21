//! How fast the collector is: pauses of a 4 MiB nursery, tracing of a large heap in place and on the move,
//! allocation, the write barrier.
//!
//! ```text
//! cargo run --release -p varve-heap --example collect [-- THREADS [PLAN [PART [ALIGN]]]]
//! ```
//!
//! With a placement plan, such as `kg-w`, the heap asks it for every object; without one, or with `none`, there is
//! nothing to ask. A part is `nursery`, `records`, `nearby`, `anywhere` or `mutator`; without one, or with
//! `all`, all are measured. Objects are aligned to 8 bytes if nothing else is said.
//!
//! Prints medians of several rounds, in processor time. State how busy the machine was beside any of them.

use std::hint::black_box;
use std::time::Duration;

use varve_heap::{
    AnyPlan, Config, Dram, Heap, Kind, Mutator, ObjectAlign, Places, Ref, Shape, Shapes,
    Unobserved, plans,
};

const MIB: f64 = (1 << 20) as f64;

/// An id, two references: 24 bytes, as a tree's node has.
const NODE: u32 = 0;
const TABLE: u32 = 1;
/// A number, a text, two other records: 40 bytes.
const RECORD: u32 = 2;
const TEXT: u32 = 3;

struct World<P> {
    heap: Heap<P>,
    mutator: Mutator,
    roots: Vec<Ref>,
    random: u64,
}

impl<P: Places> World<P> {
    fn new(config: Config, plan: P) -> World<P> {
        let mut shapes = Shapes::new();
        shapes.add(Shape::structure("node", 24, [16, 20])).unwrap();
        shapes.add(Shape::ref_array("table")).unwrap();
        shapes
            .add(Shape::structure("record", 40, [16, 20, 24]))
            .unwrap();
        shapes.add(Shape::array("text", 1)).unwrap();
        let mut heap = Heap::with(config, shapes, plan, Unobserved).unwrap();
        let mutator = heap.attach();
        World {
            heap,
            mutator,
            roots: Vec::new(),
            random: 88172645463325252,
        }
    }

    fn random(&mut self, below: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(below)) >> 32) as u32
    }

    fn node(&mut self) -> Ref {
        self.heap
            .alloc_struct(&mut self.mutator, NODE, 0, &mut self.roots)
            .unwrap()
    }

    fn collect(&mut self, kind: Kind) -> Duration {
        let begin = now();
        self.heap.collect(&mut self.mutator, kind, &mut self.roots);
        now() - begin
    }

    /// The same in time of this thread alone: memory that is touched ahead is no part of a pause.
    fn pause(&mut self) -> Duration {
        let begin = thread_now();
        self.heap
            .collect(&mut self.mutator, Kind::Minor, &mut self.roots);
        thread_now() - begin
    }

    /// A table of `count` records, each with a text of 10 to 100 bytes and two neighbours.
    fn records(&mut self, count: u32) {
        let (heap, mutator, roots) = (&mut self.heap, &mut self.mutator, &mut self.roots);
        let table = heap.alloc_array(mutator, TABLE, 0, count, roots).unwrap();
        roots.push(table);
        for index in 0..count {
            let length = 10 + index.wrapping_mul(2_654_435_761) % 91;
            let text = heap.alloc_array(mutator, TEXT, 0, length, roots).unwrap();
            roots.push(text);
            let record = heap.alloc_struct(mutator, RECORD, 0, roots).unwrap();
            let text = roots.pop().unwrap();
            heap.write_ref(mutator, record, 16, text);
            for (field, back) in [(20, 1), (24, 100)] {
                let neighbour = heap.read_element(roots[0], index.saturating_sub(back));
                heap.write_ref(mutator, record, field, neighbour);
            }
            heap.write_element(mutator, roots[0], index, record);
        }
    }

    /// A table of `count` nodes, each with an edge to two others that are `near` or anywhere.
    fn graph(&mut self, count: u32, near: Option<u32>) -> Ref {
        let table = self
            .heap
            .alloc_array(&mut self.mutator, TABLE, 0, count, &mut self.roots)
            .unwrap();
        let slot = self.roots.len();
        self.roots.push(table);
        for index in 0..count {
            let node = self.node();
            let table = self.roots[slot];
            self.heap
                .write_element(&mut self.mutator, table, index, node);
        }
        self.collect(Kind::Minor);
        for index in 0..count {
            for field in [16, 20] {
                let to = match near {
                    Some(near) => (index + self.random(near)) % count,
                    None => self.random(count),
                };
                let table = self.roots[slot];
                let (from, to) = (
                    self.heap.read_element(table, index),
                    self.heap.read_element(table, to),
                );
                self.heap.write_ref(&mut self.mutator, from, field, to);
            }
        }
        self.roots[slot]
    }
}

fn median(times: Vec<Duration>) -> Duration {
    fastest_and_median(times).1
}

/// The fastest one is the machine's speed without interference from other processes.
fn fastest_and_median(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[0], times[times.len() / 2])
}

/// The configuration to measure.
#[derive(Clone, Copy)]
struct Settings {
    threads: usize,
    align: ObjectAlign,
}

impl Settings {
    fn alone(self) -> Settings {
        Settings { threads: 1, ..self }
    }
}

fn config(Settings { threads, align }: Settings) -> Config {
    Config {
        max: 4 << 30,
        align,
        nursery: 4 << 20,
        nursery_max: 4 << 20,
        threads,
        ..Config::default()
    }
}

/// A 4 MiB nursery of nodes in lists of ten, of which every tenth survives, after a warm-up; a mature heap of 100
/// MiB lies beside it.
fn nursery_pauses<P: Places>(settings: Settings, plan: P) {
    let mut world = World::new(config(settings), plan);
    world.graph(4 << 20, Some(1000));
    world.collect(Kind::Full);
    let kept = world.roots.len();
    for survive in [1, 10, 50] {
        let mut pauses = Vec::new();
        for _ in 0..60 {
            world.collect(Kind::Minor);
            let in_nursery = (4 << 20) / settings.align.object_size(24) - 100;
            let mut list = Ref::NULL;
            for i in 0..in_nursery {
                let node = world.node();
                if i % 100 < survive {
                    world.heap.write_ref(&mut world.mutator, node, 16, list);
                    list = node;
                    if i % 10 == 0 {
                        world.roots.push(list);
                        list = Ref::NULL;
                    }
                }
            }
            world.roots.push(list);
            pauses.push(if settings.threads == 1 {
                world.pause()
            } else {
                world.collect(Kind::Minor)
            });
            world.roots.truncate(kept);
        }
        let mut pauses = pauses.split_off(10);
        pauses.sort_unstable();
        let at = |percent: usize| millis(pauses[(pauses.len() - 1) * percent / 100]);
        println!(
            "nursery 4 MiB, {survive:>2} % survive: pause {:>8.3} ms, 90 % within {:>8.3}, longest {:>8.3} ms",
            at(50),
            at(90),
            at(100)
        );
    }
}

/// Full collections of a heap that stays in place, and of one that moves as a whole.
fn tracing<P: Places>(settings: Settings, plan: P, what: &str, fill: impl Fn(&mut World<P>)) {
    let mut world = World::new(config(settings), plan);
    fill(&mut world);
    let (tell, told) = std::sync::mpsc::channel();
    world.heap.set_log(Some(Box::new(move |record| {
        let _ = tell.send(record.live);
    })));
    world.collect(Kind::Full);
    world.heap.set_log(None);
    let live = told.recv().unwrap().expect("full collections count");
    let mark = fastest_and_median((0..7).map(|_| world.collect(Kind::Full)).collect());
    let moves = (0..7).map(|_| {
        let before = world.heap.stats().evacuated;
        let begin = now();
        world.heap.evacuate(&mut world.mutator, &mut world.roots);
        let time = now() - begin;
        assert!(world.heap.stats().evacuated - before > live / 2);
        time
    });
    let moved = fastest_and_median(moves.collect());
    for (verb, (fastest, time)) in [("mark", mark), ("move", moved)] {
        let (mib, millis, rate) = (live as f64 / MIB, millis(time), rate(live, time));
        let best = self::rate(live, fastest);
        println!(
            "{verb} {mib:>6.1} MiB of {what:<31}: {millis:>7.1} ms, {rate:.2} GB/s, fastest {best:.2} GB/s"
        );
    }
}

/// Nodes that die at once.
fn allocation(settings: Settings) {
    let mut world = World::new(config(settings.alone()), Dram);
    let rounds = (0..9).map(|_| {
        let begin = now();
        for _ in 0..10_000_000 {
            black_box(world.node());
        }
        now() - begin
    });
    let time = median(rounds.collect());
    println!(
        "allocate 24-byte nodes: {:.2} ns each, {:.2} GB/s",
        time.as_nanos() as f64 / 1e7,
        rate(10_000_000 * settings.align.object_size(24), time)
    );
}

/// Stores of a reference into an object that was logged already, and into plain memory.
fn barrier(settings: Settings) {
    let mut world = World::new(config(settings.alone()), Dram);
    world.graph(1000, None);
    let table = world.roots[0];
    let node = world.heap.read_element(table, 0);
    let times = (0..9).map(|_| {
        let begin = now();
        for index in 0..10_000_000u32 {
            world
                .heap
                .write_element(&mut world.mutator, table, index % 1000, black_box(node));
        }
        now() - begin
    });
    let stored = median(times.collect());
    println!(
        "store with the barrier's fast path: {:.2} ns",
        stored.as_nanos() as f64 / 1e7
    );
    let times = (0..9).map(|_| {
        world.collect(Kind::Minor);
        world.graph_logged()
    });
    let logged = median(times.collect());
    println!(
        "store that logs its object: {:.2} ns",
        logged.as_nanos() as f64 / 1000.0
    );
}

impl<P: Places> World<P> {
    /// One store into each of the graph's thousand nodes.
    fn graph_logged(&mut self) -> Duration {
        let table = self.roots[0];
        let nodes: Vec<Ref> = (0..1000)
            .map(|index| self.heap.read_element(table, index))
            .collect();
        let begin = now();
        for node in nodes {
            self.heap.write_ref(&mut self.mutator, node, 16, node);
        }
        now() - begin
    }
}

/// Processor time of the whole process, so that other programs on the machine disturb less. With several threads it
/// says what they cost together.
fn now() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the calling thread.
fn thread_now() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(which: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec.
    unsafe { libc::clock_gettime(which, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn millis(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_nanos() as f64
}

fn main() {
    let mut words = std::env::args().skip(1);
    let threads = words
        .next()
        .map_or(1, |n| n.parse().expect("THREADS is a number"));
    println!("{threads} collector thread(s); medians of processor time");
    let plan = words.next().filter(|plan| plan != "none");
    let part = words.next().filter(|part| part != "all");
    let align = words.next().map_or(ObjectAlign::default(), |bytes| {
        bytes.parse().unwrap_or_else(|error| panic!("{error}"))
    });
    let settings = Settings { threads, align };
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    match plan {
        None => collections(settings, || Dram, wanted),
        Some(spec) => {
            let plan = || {
                let chosen = plans::by_name(&spec, Some(&varve_sites::Profile::default()));
                AnyPlan::new(chosen.unwrap_or_else(|error| panic!("{error}")).plan)
            };
            collections(settings, plan, wanted)
        }
    }
    if wanted("mutator") {
        allocation(settings);
        barrier(settings);
    }
}

fn collections<P: Places>(settings: Settings, plan: impl Fn() -> P, wanted: impl Fn(&str) -> bool) {
    if wanted("nursery") {
        nursery_pauses(settings, plan());
    }
    if wanted("records") {
        tracing(settings, plan(), "records with texts", |world| {
            world.records(2 << 20)
        });
    }
    if wanted("nearby") {
        tracing(settings, plan(), "24-byte nodes, edges nearby", |world| {
            world.graph(8 << 20, Some(100));
        });
    }
    if wanted("anywhere") {
        tracing(settings, plan(), "24-byte nodes, edges anywhere", |world| {
            world.graph(8 << 20, None);
        });
    }
}
