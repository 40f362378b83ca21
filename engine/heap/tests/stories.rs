//! The guarantees of the heap, one story each.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use varve_heap::layout::*;
use varve_heap::{
    Cause, Config, ConfigError, Dram, Heap, Kind, Mutator, Observer, Record, Ref, Roots, Shape,
    Shapes, Stress, log_element_slow, log_slow,
};

/// `id, left, right`
const NODE: u32 = 0;
const BYTES: u32 = 1;
const REFS: u32 = 2;

const LEFT: u64 = 16;
const RIGHT: u64 = 20;

fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    shapes
        .add(Shape::structure("node", 24, [LEFT as u32, RIGHT as u32]))
        .unwrap();
    shapes.add(Shape::array("bytes", 1)).unwrap();
    shapes.add(Shape::ref_array("refs")).unwrap();
    shapes
}

fn config() -> Config {
    let nursery = 256 << 10;
    Config {
        max: 64 << 20,
        nursery,
        nursery_max: nursery,
        initial: 4 << 20,
        threads: 1,
        ..Config::default()
    }
}

struct World {
    heap: Heap,
    mutator: Mutator,
    roots: Vec<Ref>,
    records: Arc<Mutex<Vec<Record>>>,
}

impl World {
    fn new(mut config: Config) -> World {
        let records = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&records);
        config.log = Some(Box::new(move |record| {
            log.lock().unwrap().push(record.clone())
        }));
        let mut heap = Heap::new(config, shapes()).unwrap();
        let mutator = heap.attach();
        World {
            heap,
            mutator,
            roots: Vec::new(),
            records,
        }
    }

    fn node(&mut self, id: u64) -> Ref {
        let r = self
            .heap
            .alloc_struct(&mut self.mutator, NODE, 0, &mut self.roots)
            .unwrap();
        self.heap.write(r, 8, &id.to_ne_bytes());
        r
    }

    fn id(&self, r: Ref) -> u64 {
        let mut id = [0; 8];
        self.heap.read(r, 8, &mut id);
        u64::from_ne_bytes(id)
    }

    fn collect(&mut self, kind: Kind) -> Record {
        self.heap.collect(&mut self.mutator, kind, &mut self.roots);
        self.records.lock().unwrap().last().unwrap().clone()
    }

    fn verify(&mut self) -> u64 {
        self.heap
            .verify(&self.mutator, &mut self.roots)
            .unwrap()
            .objects
    }

    /// A perfect binary tree, as the last root.
    fn tree(&mut self, depth: u64) {
        let node = self.node(depth);
        self.roots.push(node);
        if depth > 0 {
            for field in [LEFT, RIGHT] {
                self.tree(depth - 1);
                let child = self.roots.pop().unwrap();
                let node = *self.roots.last().unwrap();
                self.heap.write_ref(&mut self.mutator, node, field, child);
            }
        }
    }

    /// The sum of all ids below `r`.
    fn sum(&self, r: Ref) -> u64 {
        if r.is_null() {
            return 0;
        }
        self.id(r) + self.sum(self.heap.read_ref(r, LEFT)) + self.sum(self.heap.read_ref(r, RIGHT))
    }
}

/// Compiled code allocates and stores with nothing but the offsets of `layout`.
#[test]
fn compiled_code_needs_the_published_offsets_alone() {
    let mut world = World::new(config());
    let first = world.node(1);
    world.roots.push(first);
    let mutator: *mut Mutator = &mut world.mutator;
    // SAFETY: the offsets are those of the mutator's fields, and the nursery has room up to the limit.
    let young = unsafe {
        let field = |offset: i32| mutator.byte_offset(offset as isize).cast::<u64>();
        let (cursor, limit, base) = (
            field(MUTATOR_CURSOR),
            field(MUTATOR_LIMIT),
            field(MUTATOR_HEAP_BASE),
        );
        assert_eq!(*base, world.heap.base_address());
        let address = *cursor;
        assert!(address + 24 <= *limit);
        *cursor = address + 24;
        let offset = address - *base;
        let r = world.heap.align().reference(offset);
        let header = new_header(NODE, 5, HOT);
        world.heap.write(r, 8, &2u64.to_ne_bytes());
        // A header is eight bytes like any others to compiled code.
        std::ptr::with_exposed_provenance_mut::<u64>(address as usize).write(header);
        r
    };
    world.roots.push(young);
    world.collect(Kind::Minor);
    let (old, young) = (world.roots[0], world.roots[1]);
    assert_eq!((world.id(old), world.id(young)), (1, 2));
    let header = world.heap.header(young);
    assert_eq!(
        (header.site(), header.temperature() & HOT, header.age()),
        (5, HOT, 1)
    );
    assert!(header.has(UNLOGGED));
    // The write barrier's slow path, by hand. A node that only the old one knows lives on.
    let hidden = world.node(3);
    world.heap.write(old, LEFT, &hidden.0.to_ne_bytes());
    assert!(
        world
            .heap
            .verify(&world.mutator, &mut world.roots)
            .unwrap_err()
            .to_string()
            .contains("not remembered")
    );
    let mut byte = [0];
    world.heap.read(old, COLLECTOR_BYTE as u64, &mut byte);
    assert_eq!(byte[0] & UNLOGGED, UNLOGGED);
    // SAFETY: the mutator is this test's, and the object one of its heap.
    unsafe { log_slow(&mut world.mutator, old.0) };
    world.heap.read(old, COLLECTOR_BYTE as u64, &mut byte);
    assert_eq!(byte[0] & UNLOGGED, 0);
    world.verify();
    world.collect(Kind::Minor);
    assert_eq!(world.id(world.heap.read_ref(world.roots[0], LEFT)), 3);
}

#[test]
fn a_heap_that_is_full_says_so_and_goes_on_once_something_dies() {
    let mut world = World::new(config());
    let mut list = Vec::new();
    let error = loop {
        match world
            .heap
            .alloc_array(&mut world.mutator, BYTES, 0, 1000, &mut world.roots)
        {
            Ok(r) => world.roots.push(r),
            Err(error) => break error,
        }
        list.push(());
    };
    assert_eq!(
        (error.requested, error.max),
        (world.heap.align().array_size(1, 1000), 64 << 20)
    );
    assert!(error.used > 55 << 20 && error.used <= error.max, "{error}");
    assert!(
        error
            .to_string()
            .starts_with("out of memory: no room for 1016 bytes, "),
        "{error}"
    );
    assert!(list.len() > 55 << 10);
    // Again and again, without harm.
    for _ in 0..3 {
        assert!(
            world
                .heap
                .alloc_struct(&mut world.mutator, NODE, 0, &mut world.roots)
                .is_err()
        );
    }
    world.verify();
    world.roots.truncate(1000);
    let node = world.node(7);
    assert_eq!(world.id(node), 7);
    assert_eq!(world.verify(), 1000);
}

#[test]
fn objects_too_large_for_the_heap_are_refused_without_a_collection() {
    let mut world = World::new(config());
    let error = world
        .heap
        .alloc_array(&mut world.mutator, REFS, 0, u32::MAX, &mut world.roots)
        .unwrap_err();
    assert_eq!(error.requested, world.heap.align().array_size(4, u32::MAX));
    assert_eq!(world.heap.stats().count(Kind::Full), 0);
    // One that could fit if the heap were empty, and one that does.
    assert!(
        world
            .heap
            .alloc_array(&mut world.mutator, BYTES, 0, 64 << 20, &mut world.roots)
            .is_err()
    );
    assert!(
        world
            .heap
            .alloc_array(&mut world.mutator, BYTES, 0, 60 << 20, &mut world.roots)
            .is_ok()
    );
}

#[test]
fn large_objects_are_zero_stay_where_they_are_and_leave_room_when_they_die() {
    let mut world = World::new(config());
    for round in 0..50 {
        let r = world
            .heap
            .alloc_array(&mut world.mutator, BYTES, 0, 10 << 20, &mut world.roots)
            .unwrap();
        let mut content = vec![1; 10 << 20];
        world.heap.read(r, 12, &mut content);
        assert!(content.iter().all(|&byte| byte == 0));
        world.heap.write(r, 12, &vec![round; 10 << 20]);
        world.roots = vec![r];
        world.collect(Kind::Minor);
        assert_eq!(world.roots, [r]);
        assert!(world.heap.header(r).has(LARGE));
    }
    assert!(world.heap.stats().count(Kind::Full) >= 5);
    world.collect(Kind::Full);
    assert!(world.heap.used() < 11 << 20);
}

/// One element of a large array costs the next collection one line of it, and not the array.
#[test]
fn a_store_into_a_large_array_is_remembered_by_line() {
    let mut world = World::new(config());
    let array = world
        .heap
        .alloc_array(&mut world.mutator, REFS, 0, 100_000, &mut world.roots)
        .unwrap();
    world.roots.push(array);
    world.collect(Kind::Minor);
    for round in 0..3u64 {
        for index in [0, 1, 52, 53, 54, 777, 778, 99_999] {
            let node = world.node(round + u64::from(index));
            world
                .heap
                .write_element(&mut world.mutator, array, index, node);
        }
        assert!(
            world.heap.header(array).has(UNLOGGED),
            "the array is not remembered"
        );
        world.verify();
        world.collect(Kind::Minor);
        assert_eq!(world.verify(), 1 + 8);
        for index in [0, 1, 52, 53, 54, 777, 778, 99_999] {
            let node = world.heap.read_element(array, index);
            assert_eq!(world.id(node), round + u64::from(index));
        }
    }
    // Without the barrier the walk complains.
    let node = world.node(5);
    world
        .heap
        .write(array, 12 + 4 * 5000, &node.0.to_ne_bytes());
    let damage = world
        .heap
        .verify(&world.mutator, &mut world.roots)
        .unwrap_err();
    assert!(damage.to_string().contains("not remembered"), "{damage}");
    let address = world.heap.address(array) + 12 + 4 * 5000;
    // SAFETY: the mutator is this test's, and the address an element's.
    unsafe { log_element_slow(&mut world.mutator, array.0, address) };
    world.verify();
}

/// Of many nodes one in fifty lives, all over the heap: then the next full collection moves survivors together, and
/// memory becomes free.
#[test]
fn a_fragmented_heap_is_moved_together() {
    let mut world = World::new(config());
    for id in 0..500_000 {
        let node = world.node(id);
        world.roots.push(node);
    }
    world.collect(Kind::Full);
    let survivors: Vec<Ref> = world.roots.iter().copied().step_by(50).collect();
    world.roots = survivors;
    let fragmented = world.collect(Kind::Full);
    assert_eq!(fragmented.live, Some(10_000 * 24));
    assert!(
        fragmented.after > 4 * 10_000 * 24,
        "holes are too small to count: {}",
        fragmented.after
    );
    let mut last = fragmented.clone();
    for _ in 0..6 {
        last = world.collect(Kind::Full);
    }
    assert!(world.heap.stats().evacuated > 0);
    assert!(
        last.after < 2 * 10_000 * 24,
        "{} after {}",
        last.after,
        fragmented.after
    );
    let ids: Vec<u64> = world.roots.iter().map(|&r| world.id(r)).collect();
    assert!(ids.iter().enumerate().all(|(i, &id)| id == 50 * i as u64));
    assert_eq!(world.verify(), 10_000);
    // Freed memory is used again, and once.
    for id in 0..500_000 {
        let node = world.node(id);
        world.roots.push(node);
    }
    world.collect(Kind::Minor);
    assert_eq!(world.verify(), 510_000);
    let new = world.roots[10_000..].iter().map(|&r| world.id(r));
    assert!(new.eq(0..500_000));
}

#[test]
fn evacuation_moves_every_object_that_can_move() {
    let mut world = World::new(Config {
        poison: true,
        ..config()
    });
    world.tree(12);
    let large = world
        .heap
        .alloc_array(&mut world.mutator, BYTES, 0, 100_000, &mut world.roots)
        .unwrap();
    world.roots.push(large);
    world.collect(Kind::Full);
    let before = world.roots.clone();
    let sum = world.sum(before[0]);
    world.heap.evacuate(&mut world.mutator, &mut world.roots);
    assert_ne!(world.roots[0], before[0]);
    assert_eq!(world.roots[1], before[1], "large objects stay");
    assert_eq!(world.sum(world.roots[0]), sum);
    let record = world.records.lock().unwrap().last().cloned().unwrap();
    assert_eq!(
        (record.cause, record.evacuated),
        (Cause::Evacuate, ((1 << 13) - 1) * 24)
    );
}

/// Trees, tables and chains, traced by several threads again and again while they change.
#[test]
fn several_threads_trace_what_one_does() {
    let small = cfg!(miri);
    let (threads, depth, rounds) = if small { (2, 7, 3) } else { (4, 16, 12) };
    let (width, length, max) = if small {
        (3000, 300, 4 << 20)
    } else {
        (50_000, 30_000, 256 << 20)
    };
    let mut world = World::new(Config {
        threads,
        max,
        poison: true,
        ..config()
    });
    let table = world
        .heap
        .alloc_array(&mut world.mutator, REFS, 0, width, &mut world.roots)
        .unwrap();
    world.roots.push(table);
    world.tree(depth);
    let sum = world.sum(world.roots[1]);
    // A chain has nothing to share.
    let mut chain = world.node(0);
    for id in 1..length {
        world.roots.push(chain);
        let next = world.node(id);
        chain = world.roots.pop().unwrap();
        world.heap.write_ref(&mut world.mutator, next, LEFT, chain);
        chain = next;
    }
    world.roots.push(chain);
    for round in 0..rounds {
        for index in (round..width).step_by(7) {
            let node = world.node(u64::from(index));
            let table = world.roots[0];
            world
                .heap
                .write_element(&mut world.mutator, table, index, node);
        }
        match round % 3 {
            0 => drop(world.collect(Kind::Minor)),
            1 => drop(world.collect(Kind::Full)),
            _ => world.heap.evacuate(&mut world.mutator, &mut world.roots),
        }
        world.verify();
        assert_eq!(world.sum(world.roots[1]), sum);
        let table = world.roots[0];
        for index in (round..width).step_by(7) {
            assert_eq!(
                world.id(world.heap.read_element(table, index)),
                u64::from(index)
            );
        }
    }
    let (mut id, mut node) = (length, world.roots[2]);
    while !node.is_null() {
        id -= 1;
        assert_eq!(world.id(node), id);
        node = world.heap.read_ref(node, LEFT);
    }
    assert_eq!(id, 0);
}

/// Four tables of the same new nodes: threads that trace different tables meet at every node.
#[test]
fn an_object_that_several_threads_reach_is_copied_once() {
    let count = if cfg!(miri) { 300 } else { 100_000 };
    let nursery = 16 << 20;
    let settings = || Config {
        max: 512 << 20,
        nursery,
        nursery_max: nursery,
        threads: 4,
        ..config()
    };
    for round in 0..if cfg!(miri) { 1 } else { 12 } {
        let mut world = World::new(settings());
        for _ in 0..4 {
            let table = world
                .heap
                .alloc_array(&mut world.mutator, REFS, 0, count, &mut world.roots)
                .unwrap();
            world.roots.push(table);
        }
        for index in 0..count {
            let node = world.node(u64::from(index));
            for table in world.roots.clone() {
                world
                    .heap
                    .write_element(&mut world.mutator, table, index, node);
            }
        }
        match round % 3 {
            0 => drop(world.collect(Kind::Minor)),
            1 => drop(world.collect(Kind::Full)),
            _ => {
                world.collect(Kind::Minor);
                world.heap.evacuate(&mut world.mutator, &mut world.roots);
            }
        }
        for index in 0..count {
            let node = world.heap.read_element(world.roots[0], index);
            assert_eq!(world.id(node), u64::from(index));
            for &table in &world.roots {
                assert_eq!(world.heap.read_element(table, index), node);
            }
        }
        assert_eq!(world.verify(), 4 + u64::from(count));
    }
}

#[test]
fn a_heap_gives_memory_back_to_its_spaces() {
    let mut world = World::new(config());
    for _ in 0..10 {
        world.tree(15);
        world.roots.clear();
    }
    world.collect(Kind::Full);
    assert_eq!(world.heap.used(), 0);
    let spaces = world.heap.spaces();
    let mut filled = spaces.iter().filter(|space| space.name != "nursery");
    assert!(filled.all(|space| space.held == 0));
    let stats = world.heap.stats();
    assert!(stats.allocated >= 10 * ((1 << 16) - 1) * 24);
    assert!(stats.peak <= 16 << 20);
}

/// The same program with and without stress ends with the same numbers, and stress never lets compiled code
/// allocate by itself.
#[test]
fn stress_collects_before_every_allocation() {
    for (stress, kind) in [
        (Stress::Minor(1), Kind::Minor),
        (Stress::Full(1), Kind::Full),
        (Stress::Full(10), Kind::Full),
    ] {
        let mut world = World::new(Config {
            stress,
            poison: true,
            ..config()
        });
        world.tree(6);
        assert_eq!(
            world.sum(world.roots[0]),
            (0..=6).map(|depth| depth << (6 - depth)).sum::<u64>()
        );
        let expected = if matches!(stress, Stress::Full(10)) {
            12
        } else {
            127
        };
        assert!(
            world.heap.stats().count(kind).abs_diff(expected) <= 1,
            "{}",
            world.heap.stats().count(kind)
        );
        assert_eq!(world.verify(), 127);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line() {
    /// A change of the settings, and what is said of it.
    type Wrong = (fn(&mut Config), &'static str);
    let wrong: [Wrong; 6] = [
        (|c| c.max = 1000, "a heap of 1000 B is too small"),
        (|c| c.nursery = 1000, "a nursery of 1000 B"),
        (
            |c| (c.nursery, c.nursery_max) = (1 << 20, 1 << 19),
            "not begin larger",
        ),
        (|c| c.max = 16 << 30, "is too large"),
        (|c| c.growth = 1.0, "growth factor of 1"),
        (|c| c.growth = f64::NAN, "growth factor of NaN"),
    ];
    for (change, said) in wrong {
        let mut config = config();
        change(&mut config);
        let refused = Heap::new(config, shapes()).err().unwrap().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert!(matches!(
        Heap::new(Config { max: 0, ..config() }, shapes()),
        Err(ConfigError::TooSmall(0))
    ));
}

/// An observer sees as many bytes copied as the collection reports.
#[test]
fn an_observer_sees_the_collector_at_work() {
    #[derive(Default)]
    struct Sum {
        read: AtomicU64,
        written: AtomicU64,
        lowest: AtomicU64,
    }
    impl Observer for Sum {
        fn read(&self, _: u64, bytes: u64) {
            self.read.fetch_add(bytes, Relaxed);
        }
        fn write(&self, address: u64, bytes: u64) {
            self.written.fetch_add(bytes, Relaxed);
            self.lowest.fetch_min(address, Relaxed);
        }
    }
    let mut heap = Heap::with(
        config(),
        shapes(),
        Dram,
        Sum {
            lowest: AtomicU64::new(u64::MAX),
            ..Sum::default()
        },
    )
    .unwrap();
    let mut mutator = heap.attach();
    let mut roots: Vec<Ref> = Vec::new();
    for _ in 0..100 {
        let r = heap
            .alloc_struct(&mut mutator, NODE, 0, &mut roots)
            .unwrap();
        roots.push(r);
    }
    heap.collect(&mut mutator, Kind::Minor, &mut roots);
    let seen = heap.observer();
    // Each node is read to be copied and read again to be scanned; the copy and the forwarded header are written.
    assert_eq!(seen.read.load(Relaxed), 100 * (24 + 24));
    assert_eq!(seen.written.load(Relaxed), 100 * (24 + 8));
    assert!(seen.lowest.load(Relaxed) >= heap.base_address() + NULL_GUARD);
}

/// An access through null, or through a reference behind the heap, faults: the system has nothing there.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_mapped_around_null_and_behind_the_heap() {
    let mut world = World::new(config());
    let base = world.heap.base_address() as usize;
    world.node(1);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let around = |address: usize| {
        maps.lines()
            .find(|line| {
                let (from, to) = line
                    .split_whitespace()
                    .next()
                    .unwrap()
                    .split_once('-')
                    .unwrap();
                let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16).unwrap());
                (from..to).contains(&address)
            })
            .map(|line| line.split_whitespace().nth(1).unwrap().to_owned())
    };
    assert_eq!(around(base).as_deref(), Some("---p"));
    assert_eq!(
        around(base + NULL_GUARD as usize - 1).as_deref(),
        Some("---p")
    );
    assert_eq!(
        around(base + world.heap.align().span() as usize - 1).as_deref(),
        Some("---p")
    );
    assert_eq!(around(base + CHUNK_SIZE as usize).as_deref(), Some("rw-p"));
}

/// Roots may be anything that can be visited.
#[test]
fn globals_and_handles_are_roots() {
    struct Globals {
        one: Ref,
        other: Option<Ref>,
    }
    impl Roots for Globals {
        fn visit(&mut self, f: &mut dyn FnMut(&mut Ref)) {
            f(&mut self.one);
            self.other.iter_mut().for_each(f);
        }
    }
    let mut heap = Heap::new(config(), shapes()).unwrap();
    let mut mutator = heap.attach();
    let mut globals = Globals {
        one: Ref::i31(5),
        other: None,
    };
    let r = heap
        .alloc_struct(&mut mutator, NODE, 0, &mut globals)
        .unwrap();
    globals.other = Some(r);
    heap.collect(&mut mutator, Kind::Full, &mut globals);
    assert_eq!(globals.one, Ref::i31(5));
    assert_ne!(globals.other, Some(r));
    assert_eq!(heap.header(globals.other.unwrap()).type_index(), NODE);
}

/// An engine keeps heap and mutator in a store that may move to another thread.
#[test]
fn heaps_and_mutators_may_move_to_other_threads() {
    fn movable<T: Send>(_: &T) {}
    let world = World::new(config());
    movable(&world.heap);
    movable(&world.mutator);
}

/// A helper that fails would leave the others waiting for work that never comes, and the heap half moved.
#[cfg(unix)]
#[test]
fn a_collector_thread_that_panics_ends_the_process_and_says_so() {
    use std::os::unix::process::ExitStatusExt;
    /// Fails on any thread but the program's.
    struct Fails;

    impl Observer for Fails {
        fn read(&self, _: u64, _: u64) {
            let thread = std::thread::current();
            assert!(thread.name() != Some("collector"), "on purpose");
        }
        fn write(&self, _: u64, _: u64) {}
    }

    const INSIDE: &str = "VARVE_HEAP_TEST_FAILS";
    if std::env::var_os(INSIDE).is_some() {
        let settings = Config {
            max: 512 << 20,
            nursery: 64 << 20,
            nursery_max: 64 << 20,
            threads: 2,
            ..config()
        };
        let mut heap = Heap::with(settings, shapes(), Dram, Fails).unwrap();
        let mut mutator = heap.attach();
        let mut roots: Vec<Ref> = Vec::new();
        let array = heap
            .alloc_array(&mut mutator, REFS, 0, 500_000, &mut roots)
            .unwrap();
        roots.push(array);
        for index in 0..500_000 {
            let node = heap
                .alloc_struct(&mut mutator, NODE, 0, &mut roots)
                .unwrap();
            heap.write_element(&mut mutator, roots[0], index, node);
        }
        // The helper may come too late for one collection, not for hundreds.
        for _ in 0..500 {
            heap.evacuate(&mut mutator, &mut roots);
        }
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_collector_thread_that_panics_ends_the_process_and_says_so",
        ])
        .args(["--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("on purpose"), "{said}");
    assert!(
        said.contains("the collector failed during a collection"),
        "{said}"
    );
}
