//! The guarantees of each plan, one story each, with small programs; and the guarantees of all, over the registry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use varve_heap::layout::*;
use varve_heap::plans::{Entry, by_name, plans};
use varve_heap::{
    AnyPlan, Backing, Config, Heap, Interval, Kind, Moved, Mutator, NurserySize, Object,
    ObjectAlign, Observer, Origin, Phase, Record, Ref, Sampler, Shape, Shapes, Site, Space, Stage,
    Stress, Tier, Unobserved,
};
use varve_sites::{Counts, Key, Profile, SiteProfile, SitesFile};

/// `id, left, right`
const NODE: u32 = 0;
const REFS: u32 = 1;

const LEFT: u64 = 16;

fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    shapes.add(Shape::structure("node", 24, [16, 20])).unwrap();
    shapes.add(Shape::ref_array("refs")).unwrap();
    shapes
}

fn config() -> Config {
    let nursery = 256 << 10;
    Config {
        max: 64 << 20,
        nursery,
        nursery_max: nursery,
        initial: 16 << 20,
        threads: 1,
        ..Config::default()
    }
}

/// Which addresses are memory of which tier: first address -> bytes and tier.
#[derive(Clone, Default)]
struct Map(Arc<Mutex<BTreeMap<u64, (u64, Tier)>>>);

impl Backing for Map {
    unsafe fn bind(&self, address: u64, bytes: u64, tier: Tier) {
        let mut map = self.0.lock().unwrap();
        // Chunk by chunk, because they come and go one at a time; tables are no chunks.
        if address.is_multiple_of(CHUNK_SIZE) {
            for at in (address..address + bytes).step_by(CHUNK_SIZE as usize) {
                map.insert(at, (CHUNK_SIZE, tier));
            }
        } else {
            map.insert(address, (bytes, tier));
        }
    }

    unsafe fn release(&self, address: u64, _: u64) -> bool {
        self.0.lock().unwrap().remove(&address);
        false
    }
}

impl Map {
    fn tier(&self, address: u64) -> Option<Tier> {
        let map = self.0.lock().unwrap();
        let (&start, &(bytes, tier)) = map.range(..=address).next_back()?;
        (address < start + bytes).then_some(tier)
    }
}

/// The collector's reports.
#[derive(Default)]
struct Events {
    moved: Mutex<Vec<Moved>>,
    stages: Mutex<Vec<Stage>>,
}

impl Observer for Events {
    fn read(&self, _: u64, _: u64) {}
    fn write(&self, _: u64, _: u64) {}
    fn moved(&self, moved: Moved) {
        self.moved.lock().unwrap().push(moved);
    }
    fn stage(&self, _: Kind, stage: Stage) {
        self.stages.lock().unwrap().push(stage);
    }
}

struct World {
    heap: Heap<AnyPlan, Events>,
    mutator: Mutator,
    roots: Vec<Ref>,
    map: Map,
    records: Arc<Mutex<Vec<Record>>>,
    intervals: u64,
    now: Duration,
}

impl World {
    /// Every phase that the plan has entered.
    fn phases(&self) -> &[varve_heap::Entry] {
        let told = self.heap.plan().sampler().and_then(Sampler::intervals);
        told.unwrap().log()
    }

    fn new(spec: &str) -> World {
        World::with(spec, config())
    }

    fn with(spec: &str, mut config: Config) -> World {
        let chosen = by_name(spec, Some(&profile())).unwrap();
        let (map, records) = (Map::default(), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&records);
        config.backing = Some(Box::new(map.clone()));
        config.log = Some(Box::new(move |record: &Record| {
            log.lock().unwrap().push(record.clone())
        }));
        let mut heap = Heap::planned(config, shapes(), chosen.plan, Events::default()).unwrap();
        let mutator = heap.attach();
        World {
            heap,
            mutator,
            roots: Vec::new(),
            map,
            records,
            intervals: 0,
            now: Duration::ZERO,
        }
    }

    /// A node, as the last root.
    fn node(&mut self, temperature: u8) {
        let header = new_header(NODE, 1, temperature);
        let r = self
            .heap
            .alloc(&mut self.mutator, header, 0, &mut self.roots)
            .unwrap();
        self.roots.push(r);
    }

    /// A table of references, as the last root.
    fn table(&mut self, length: u32) {
        let header = new_header(REFS, 2, 0);
        let r = self
            .heap
            .alloc(&mut self.mutator, header, length, &mut self.roots)
            .unwrap();
        self.roots.push(r);
    }

    fn write(&mut self, root: usize) {
        let r = self.roots[root];
        let offset = match self.heap.header(r).type_index() {
            NODE => 8,
            _ => 12,
        };
        self.heap.write(r, offset, &[0; 4]);
    }

    fn collect(&mut self, kind: Kind) -> Record {
        self.heap.collect(&mut self.mutator, kind, &mut self.roots);
        self.verify();
        self.records.lock().unwrap().last().unwrap().clone()
    }

    /// The heap is whole, and every object that a root names is where the backing bound it.
    fn verify(&mut self) {
        self.heap.verify(&self.mutator, &mut self.roots).unwrap();
        for &r in self.roots.iter().filter(|r| r.is_object()) {
            let address = self.heap.address(r);
            assert_eq!(self.map.tier(address), Some(self.heap.tier_of(r)), "{r:?}");
        }
        self.verify_ranges();
    }

    /// Where spaces say that they are: all that they hold, in their memory, and every object in one of them.
    fn verify_ranges(&self) {
        let (ranges, spaces) = (self.heap.ranges(), self.heap.spaces());
        for (index, space) in ranges.iter().enumerate() {
            for &(start, bytes) in space.ranges.iter().filter(|&&(_, bytes)| bytes > 0) {
                for at in [start, start + bytes - 1] {
                    assert_eq!(self.map.tier(at), Some(space.tier), "{}", space.name);
                }
            }
            let Some(held) = spaces.get(index) else {
                assert_eq!(space.name, "tables");
                continue;
            };
            let bytes: u64 = space.ranges.iter().map(|&(_, bytes)| bytes).sum();
            assert_eq!((&space.name, bytes), (&held.name, held.held));
        }
        for r in self.roots.iter().filter(|r| r.is_object()) {
            let address = self.heap.address(*r);
            let holds = |&(start, bytes): &(u64, u64)| (start..start + bytes).contains(&address);
            let holders = ranges.iter().filter(|s| s.ranges.iter().any(holds));
            let tiers: Vec<Tier> = holders.map(|s| s.tier).collect();
            assert_eq!(tiers, [self.heap.tier_of(*r)], "{r:?}");
        }
    }

    fn tiers(&self) -> Vec<Tier> {
        self.roots.iter().map(|&r| self.heap.tier_of(r)).collect()
    }

    fn interval(&mut self, millis: u64) -> Option<Tier> {
        self.intervals += 1;
        self.now += Duration::from_millis(millis);
        let (id, now) = (self.intervals, self.now);
        let (load, update) = (Duration::from_millis(millis), Duration::ZERO);
        let interval = Interval {
            id,
            load,
            update,
            now,
        };
        let roots = &mut self.roots;
        let to = self
            .heap
            .interval(&mut self.mutator, interval, roots, || now)
            .unwrap();
        self.verify();
        to
    }
}

fn key(function: &str) -> Key {
    Key {
        function: function.into(),
        ty: "Node".into(),
        nth: 0,
    }
}

/// Vertices are written to, small strings are read, large ones are written to now and then.
fn profile() -> Profile {
    let site = |function: &str, bytes: u64, reads, writes| SiteProfile {
        key: key(function),
        offset: 0,
        line: None,
        counts: Counts {
            objects: 100,
            bytes: 100 * bytes,
            survivors: 100,
            survived_bytes: 100 * bytes,
            reads,
            writes,
            old_reads: reads,
            old_writes: writes,
            ..Counts::default()
        },
    };
    Profile {
        program: "p.wasm".into(),
        sites: vec![
            site("vertex", 24, 0, 5000),
            site("string", 40, 9000, 0),
            site("buffer", 10_000, 0, 200),
            site("unused", 100, 0, 0),
        ],
    }
}

const FAST: Tier = Tier::FAST;
const SLOW: Tier = Tier::SLOW;

#[test]
fn kingsguard_nursery_has_new_objects_in_fast_memory_and_all_others_in_slow() {
    let mut world = World::new("kg-n");
    world.node(0);
    world.node(HOT);
    world.table(3000);
    assert_eq!(world.tiers(), [FAST; 3]);
    world.table(60_000);
    assert_eq!(
        world.tiers(),
        [FAST, FAST, FAST, SLOW],
        "too large for the nursery"
    );
    let record = world.collect(Kind::Minor);
    assert_eq!(world.tiers(), [SLOW; 4]);
    let used = |name: &str| record.spaces.iter().find(|s| s.name == name).unwrap().used;
    assert_eq!((used("mature 0"), used("large 0")), (0, 0));
    assert!(used("mature 1") > 0 && used("large 1") > 60_000 * 4);
    // The nursery counts as fast memory, and nothing else.
    let stats = world.heap.stats();
    assert_eq!(stats.peak_by_tier[0], 256 << 10);
    assert!(stats.to_string().contains("memory 1: peak"), "{stats}");
}

#[test]
fn the_two_halves_of_slow_memory_show_scanning_and_copying_apart() {
    for (spec, young, old) in [
        ("dram", FAST, FAST),
        ("slow", SLOW, SLOW),
        ("slow-scan", SLOW, FAST),
        ("slow-copy", FAST, SLOW),
    ] {
        let mut world = World::new(spec);
        world.node(0);
        assert_eq!(world.tiers(), [young], "{spec}");
        world.verify();
        world.collect(Kind::Minor);
        assert_eq!(world.tiers(), [old], "{spec}");
        world.collect(Kind::Full);
        assert_eq!(world.tiers(), [old], "{spec}");
    }
}

#[test]
fn kingsguard_writers_sorts_survivors_by_what_was_written() {
    let mut world = World::new("kg-w");
    for root in 0..4 {
        world.node(0);
        // Before it survived: an initialization, which says nothing.
        world.write(root);
    }
    world.table(3000);
    world.collect(Kind::Minor);
    assert_eq!(
        world.tiers(),
        [FAST, FAST, FAST, FAST, SLOW],
        "observed, but the large one"
    );
    world.write(1);
    let child = world.roots[3];
    world
        .heap
        .write_ref(&mut world.mutator, world.roots[2], LEFT, child);
    world.collect(Kind::Minor);
    let record = world.collect(Kind::Observer);
    assert_eq!(record.kind, Kind::Observer);
    assert_eq!(world.tiers(), [SLOW, FAST, FAST, SLOW, SLOW]);
    assert_eq!(record.sorted[..2], [2 * 24, 2 * 24]);
    let left = world.heap.read_ref(world.roots[2], LEFT);
    assert_eq!(left, world.roots[3], "references follow");
}

#[test]
fn kingsguard_writers_goes_on_watching_old_objects() {
    for (spec, after) in [
        ("kg-w", [FAST, SLOW, FAST]),
        ("kg-w:old=kept", [SLOW, FAST, SLOW]),
    ] {
        let mut world = World::new(spec);
        world.node(0);
        world.node(0);
        world.table(3000);
        world.collect(Kind::Minor);
        world.write(1);
        world.collect(Kind::Observer);
        assert_eq!(world.tiers(), [SLOW, FAST, SLOW]);
        let table = world.roots[2];
        // Now the other one is written to, and the large one.
        world.write(0);
        world.write(2);
        let record = world.collect(Kind::Full);
        assert_eq!(world.tiers(), after, "{spec}");
        let moved = spec == "kg-w";
        assert_eq!(
            world.roots[2] != table,
            moved,
            "a large object moves between memories alone"
        );
        let expected = [24 + world.heap.align().array_size(4, 3000), 24]
            .map(|bytes| if moved { bytes } else { 0 });
        assert_eq!(record.moved[..2], expected, "{spec}");
    }
}

/// Only an old object refers to it, and that one was not written to since.
#[test]
fn an_object_in_the_observer_space_lives_through_old_references() {
    let mut world = World::new("kg-w");
    world.table(60_000);
    world.node(0);
    let (table, node) = (world.roots[0], world.roots[1]);
    world
        .heap
        .write_element(&mut world.mutator, table, 50_000, node);
    world.roots.truncate(1);
    for round in 0..3 {
        world.collect(Kind::Minor);
        let node = world.heap.read_element(table, 50_000);
        assert_eq!(world.heap.tier_of(node), FAST, "round {round}");
    }
    world.collect(Kind::Observer);
    let sorted = world.heap.read_element(table, 50_000);
    assert_eq!(world.heap.tier_of(sorted), SLOW);
    // Survivors of the nursery wait in the other half meanwhile, and are found from there too.
    world.node(0);
    let young = world.roots[1];
    world
        .heap
        .write_ref(&mut world.mutator, sorted, LEFT, young);
    world.roots.truncate(1);
    world.collect(Kind::Observer);
    let waiting = world
        .heap
        .read_ref(world.heap.read_element(table, 50_000), LEFT);
    assert_eq!(world.heap.tier_of(waiting), FAST);
    world.collect(Kind::Observer);
    let sorted = world
        .heap
        .read_ref(world.heap.read_element(table, 50_000), LEFT);
    assert_eq!(world.heap.tier_of(sorted), SLOW);
}

/// More survivors than the observer space holds: it is sorted before it is full, and what does not fit goes on
/// unobserved.
#[test]
fn the_observer_space_is_sorted_when_it_is_full() {
    let mut world = World::new("kg-w");
    for _ in 0..100_000 {
        world.node(0);
    }
    world.verify();
    let stats = world.heap.stats();
    assert!(stats.count(Kind::Observer) >= 3, "{stats}");
    assert!(stats.to_string().contains("\nobserver "), "{stats}");
    assert!(stats.sorted[1] > 1 << 20 && stats.sorted[0] == 0);
    let half = 2 * (256 << 10);
    assert!(stats.peak_by_tier[0] <= half + (256 << 10), "{stats}");
    let tiny = Config {
        observer: 8 << 10,
        ..config()
    };
    let mut world = World::with("kg-w", tiny);
    for _ in 0..10_000 {
        world.node(0);
    }
    world.collect(Kind::Minor);
    let slow = world.tiers().iter().filter(|&&tier| tier == SLOW).count();
    assert!(slow > 9000, "{slow}");
}

#[test]
fn crystal_gazer_and_hints_place_by_the_site() {
    for (spec, hot) in [
        ("cgz-f", &["vertex", "buffer"][..]),
        ("cgz-f:threshold=10", &["vertex"]),
        ("cgz-d", &["vertex"]),
        ("hot-sites", &["string"]),
        ("hot-sites:top=0.3", &["string", "vertex"]),
        ("hints", &["marked"]),
        ("kg-n", &[]),
    ] {
        let mut world = World::new(spec);
        for (root, function) in ["vertex", "string", "buffer", "unused", "marked"]
            .into_iter()
            .enumerate()
        {
            let site = Site {
                key: &key(function),
                hinted: function == "marked",
            };
            let temperature = world.heap.temperature(site);
            world.node(temperature);
            world.collect(Kind::Minor);
            let expected = if hot.contains(&function) { FAST } else { SLOW };
            assert_eq!(world.tiers()[root], expected, "{spec}: {function}");
        }
        let before = world.tiers();
        world.heap.evacuate(&mut world.mutator, &mut world.roots);
        world.verify();
        assert_eq!(
            world.tiers(),
            before,
            "{spec}: heat lasts as long as the object"
        );
    }
}

#[test]
fn pima_tries_both_memories_and_moves_everything_to_the_better_one() {
    let mut world = World::new("pima:hold-off=1s");
    for _ in 0..1000 {
        world.node(0);
    }
    world.table(60_000);
    world.collect(Kind::Minor);
    assert!(world.tiers().iter().all(|&tier| tier == SLOW), "by default");
    // The handshake; two intervals in slow memory; two in fast memory.
    let moves: Vec<_> = [30, 30, 30, 10, 10]
        .map(|millis| world.interval(millis))
        .into();
    assert_eq!(moves, [None, None, Some(FAST), None, None]);
    assert!(world.tiers().iter().all(|&tier| tier == FAST));
    let record = world.records.lock().unwrap().last().unwrap().clone();
    assert_eq!(record.cause.to_string(), "moving");
    assert_eq!(
        record.moved[0],
        1000 * 24 + world.heap.align().array_size(4, 60_000)
    );
    assert_eq!(world.phases().last().unwrap().phase, Phase::HoldOff(FAST));
    // Survivors follow. A second later it no longer pays.
    world.node(0);
    world.collect(Kind::Minor);
    assert_eq!(world.tiers().last(), Some(&FAST));
    let moves: Vec<_> = [1000, 10, 10, 12, 12]
        .map(|millis| world.interval(millis))
        .into();
    assert_eq!(moves, [None, None, Some(SLOW), None, None]);
    assert!(
        world.tiers().iter().all(|&tier| tier == SLOW),
        "where the sample ended"
    );
    let large_left = world
        .heap
        .spaces()
        .iter()
        .find(|s| s.name == "large 0")
        .map(|s| s.used);
    assert_eq!(large_left, Some(0), "old places are free again");
}

#[test]
fn with_hints_pima_decides_about_the_marked_objects_alone() {
    let mut world = World::new("hints+pima");
    world.node(HOT);
    world.node(0);
    world.collect(Kind::Minor);
    assert_eq!(world.tiers(), [SLOW, SLOW]);
    for millis in [30, 30, 30, 10, 10] {
        world.interval(millis);
    }
    assert_eq!(world.tiers(), [FAST, SLOW]);
    world.node(HOT);
    world.node(0);
    world.collect(Kind::Minor);
    assert_eq!(world.tiers(), [FAST, SLOW, FAST, SLOW]);
}

/// Whatever the plan is: objects are where the backing bound them, where the plan wants them, and where the collector reported that it moved them to.
#[test]
fn every_plan_keeps_its_word() {
    for entry in plans() {
        every_word_is_kept(entry, ObjectAlign::LEAST);
        every_word_is_kept(entry, ObjectAlign::MOST);
    }
}

fn every_word_is_kept(entry: &Entry, align: ObjectAlign) {
    let config = Config {
        max: config().max * align.bytes() / 8,
        align,
        ..config()
    };
    let mut world = World::with(entry.name, config);
    for round in 0..30u64 {
        for id in 0..8000u64 {
            let hot = if id.is_multiple_of(7) { HOT } else { 0 };
            world.node(hot);
            if !id.is_multiple_of(20) {
                world.roots.pop();
            }
        }
        if round.is_multiple_of(5) {
            world.table(3000 + 7000 * (round as u32 % 3));
        }
        for root in (0..world.roots.len()).step_by(11) {
            world.write(root);
        }
        let drop = world.roots.len() / 4;
        world.roots.drain(..drop);
        world.interval(10 + round);
        world.verify();
    }
    world.collect(Kind::Full);
    let plan = world.heap.plan();
    for &r in &world.roots {
        let (header, tier) = (world.heap.header(r), world.heap.tier_of(r));
        let object = Object {
            from: Origin::Old(tier),
            large: header.has(LARGE),
            hot: header.temperature() & HOT != 0,
            written: false,
            colour: 0,
        };
        // The choices of a monitoring plan depend on writes that it has seen and forgotten, or on earlier samples.
        if !plan.monitors() && plan.sampler().and_then(Sampler::stacks).is_none() {
            assert_eq!(
                plan.place(object),
                Space::Old(tier),
                "{}: {r:?}",
                entry.name
            );
        }
    }
    let told = world.heap.observer();
    let moved = told.moved.lock().unwrap();
    let bytes = |what: &dyn Fn(&Moved) -> bool| -> u64 {
        moved.iter().filter(|m| what(m)).map(|m| m.bytes).sum()
    };
    let stats = world.heap.stats();
    let young = bytes(&|m| m.from == Origin::Nursery);
    assert_eq!(young, stats.promoted, "{}", entry.name);
    for tier in [FAST, SLOW] {
        let to = Space::Old(tier);
        let sorted = bytes(&|m| m.from == Origin::Observer && m.to == to);
        let moved = bytes(&|m| matches!(m.from, Origin::Old(from) if from != tier) && m.to == to);
        let index = usize::from(tier.0);
        assert_eq!(
            (sorted, moved),
            (stats.sorted[index], stats.moved[index]),
            "{}",
            entry.name
        );
    }
    let stages = told.stages.lock().unwrap();
    let whole = [Stage::Roots, Stage::Trace, Stage::Rest, Stage::End];
    assert!(
        stages.chunks(4).all(|stages| stages == whole),
        "{}",
        entry.name
    );
}

/// The same program ends with the same objects under every plan, several threads, and moves at every allocation.
#[test]
fn every_plan_under_stress() {
    for entry in plans() {
        for (stress, threads, align) in [
            (Stress::Minor(1), 1, 8),
            (Stress::Full(1), 1, 8),
            (Stress::Full(3), 2, 8),
            (Stress::Full(1), 1, 16),
            (Stress::Full(3), 2, 64),
            (Stress::Minor(1), 1, 256),
        ] {
            let config = Config {
                stress,
                threads,
                align: ObjectAlign::new(align).unwrap(),
                poison: true,
                ..config()
            };
            let mut world = World::with(entry.name, config);
            world.table(3000);
            for id in 0..200u32 {
                world.node(if id.is_multiple_of(3) { HOT } else { 0 });
                let (node, table) = (world.roots.pop().unwrap(), world.roots[0]);
                world.heap.write(node, 8, &id.to_ne_bytes());
                world
                    .heap
                    .write_element(&mut world.mutator, table, 13 * id, node);
                if id.is_multiple_of(20) {
                    world.interval(u64::from(id) + 1);
                }
            }
            world.verify();
            for id in 0..200u32 {
                let node = world.heap.read_element(world.roots[0], 13 * id);
                let mut found = [0; 4];
                world.heap.read(node, 8, &mut found);
                assert_eq!(u32::from_ne_bytes(found), id, "{} {stress:?}", entry.name);
            }
        }
    }
}

/// Enough objects that other threads are woken to help.
#[test]
fn every_plan_with_several_threads() {
    let count = 60_000;
    let aligns = [ObjectAlign::LEAST, ObjectAlign::MOST];
    for (entry, align) in plans()
        .iter()
        .flat_map(|entry| aligns.map(|align| (entry, align)))
    {
        let config = Config {
            max: 256 << 20,
            align,
            nursery: 16 << 20,
            nursery_max: 16 << 20,
            initial: 128 << 20,
            threads: 4,
            poison: true,
            ..config()
        };
        let mut world = World::with(entry.name, config);
        // Two tables of the same objects: threads meet at every one.
        world.table(count);
        world.table(count);
        for id in 0..count {
            world.node(if id.is_multiple_of(3) { HOT } else { 0 });
            let node = world.roots.pop().unwrap();
            world.heap.write(node, 8, &id.to_ne_bytes());
            for table in [world.roots[0], world.roots[1]] {
                world
                    .heap
                    .write_element(&mut world.mutator, table, id, node);
            }
        }
        let check = |world: &mut World, what: &str| {
            world.verify();
            for id in 0..count {
                let node = world.heap.read_element(world.roots[0], id);
                assert_eq!(node, world.heap.read_element(world.roots[1], id));
                let mut found = [0; 4];
                world.heap.read(node, 8, &mut found);
                assert_eq!(u32::from_ne_bytes(found), id, "{} after {what}", entry.name);
            }
        };
        for round in 0..2 {
            world.collect(Kind::Minor);
            check(&mut world, "minor");
            for id in (round..count).step_by(5) {
                let node = world.heap.read_element(world.roots[0], id);
                world.heap.write(node, 8, &id.to_ne_bytes());
            }
            world.collect(Kind::Observer);
            check(&mut world, "observer");
            for millis in [30, 30, 30, 10, 10] {
                world.interval(millis);
            }
            world.collect(Kind::Full);
            check(&mut world, "full");
            world.heap.evacuate(&mut world.mutator, &mut world.roots);
            check(&mut world, "evacuate");
        }
    }
}

/// The tables of the collector are memory of a tier as well.
#[test]
fn memory_for_the_nursery_is_asked_for_as_it_grows() {
    let bound = |world: &World| -> u64 {
        let ranges = world.heap.ranges();
        let (start, _) = ranges[0].ranges[0];
        let map = world.map.0.lock().unwrap();
        let behind = map.range(start..start + 8 * CHUNK_SIZE);
        behind.map(|(_, &(bytes, _))| bytes).sum()
    };
    let mut world = World::with(
        "slow",
        Config {
            nursery: CHUNK_SIZE,
            nursery_max: 8 * CHUNK_SIZE,
            ..config()
        },
    );
    assert_eq!(bound(&world), CHUNK_SIZE);
    let young = |world: &World| world.heap.spaces()[0].used;
    // Tables of 256 bytes, which fill it to the last byte and all survive.
    while young(&world) <= CHUNK_SIZE {
        world.table(61);
    }
    world.verify();
    let grown = young(&world).next_multiple_of(CHUNK_SIZE);
    assert!(grown > CHUNK_SIZE);
    assert_eq!(bound(&world), grown);
}

#[test]
fn tables_are_in_the_memory_that_the_plan_says() {
    for (spec, tier) in [("kg-n", FAST), ("slow", SLOW)] {
        let world = World::new(spec);
        let map = world.map.0.lock().unwrap();
        let heap = world.heap.base_address();
        let tables = map
            .iter()
            .filter(|(start, _)| !(heap..heap + world.heap.align().span()).contains(start));
        let tiers: Vec<Tier> = tables.map(|(_, (_, tier))| *tier).collect();
        assert_eq!(tiers, [tier; 2], "{spec}");
    }
}

/// The counting of compiled code for a profile, checked against a list of all that happened.
#[test]
fn a_recorder_counts_every_access_of_every_site() {
    for align in [ObjectAlign::LEAST, ObjectAlign::MOST] {
        every_access_is_counted(align);
    }
}

fn every_access_is_counted(align: ObjectAlign) {
    use std::collections::HashMap;
    use varve_heap::record::{READS, Recorder, WRITES};
    use varve_heap::{Dram, Roots};

    /// The records that a program keeps about its own objects.
    #[derive(Clone, Copy, Default)]
    struct Book {
        site: u32,
        bytes: u64,
        young: (u64, u64),
        old: (u64, u64),
        survived: bool,
    }
    /// Strong references to the living, weak ones to all.
    #[derive(Default)]
    struct Living {
        strong: Vec<Ref>,
        weak: Vec<Option<Ref>>,
    }
    impl Roots for Living {
        fn visit(&mut self, f: &mut dyn FnMut(&mut Ref)) {
            self.strong.iter_mut().for_each(f);
        }
        fn visit_weak(&mut self, f: &mut dyn FnMut(Ref) -> Option<Ref>) {
            for weak in &mut self.weak {
                *weak = weak.and_then(&mut *f);
            }
        }
    }

    let config = || Config { align, ..config() };
    let recorder = Recorder::new(&config()).unwrap();
    let mut heap = Heap::with(config(), shapes(), Dram, recorder).unwrap();
    let mut mutator = heap.attach();
    let (mut living, mut books) = (Living::default(), Vec::<Book>::new());
    let (mut random, mut collections) = (12345u32, 0);
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    for step in 0..20_000u32 {
        // Small ones, some that are large once they survive, few that are born large.
        let (shape, site, length) = match next(2000) {
            0 => (REFS, 3, 20_000),
            1..20 => (REFS, 2, 3000),
            n => (NODE, 4 + n % 3, 0),
        };
        let header = new_header(shape, site, 0);
        let r = heap
            .alloc(&mut mutator, header, length, &mut living)
            .unwrap();
        let large = heap.header(r).has(LARGE);
        books.push(Book {
            site,
            bytes: heap.object_size(r),
            survived: large,
            ..Book::default()
        });
        living.weak.push(Some(r));
        living.strong.push(r);
        if living.strong.len() > 500 {
            let victim = next(500) as usize;
            living.strong.swap_remove(victim);
        }
        if step % 3000 == 2999 {
            let kind = if step % 2 == 0 {
                Kind::Minor
            } else {
                Kind::Full
            };
            heap.collect(&mut mutator, kind, &mut living);
        }
        // An object outside of the nursery has survived by now.
        let now = heap.stats().count(Kind::Minor) + heap.stats().count(Kind::Full);
        if now != std::mem::replace(&mut collections, now) {
            for (book, r) in books.iter_mut().zip(&living.weak) {
                book.survived |= r.is_some_and(|r| heap.header(r).collector() != 0);
            }
        }
        for _ in 0..next(4) {
            let number = books.len() - 1 - next(700.min(books.len() as u32)) as usize;
            // The dead are not accessed.
            let Some(r) = living.weak[number].filter(|r| living.strong.contains(r)) else {
                continue;
            };
            let book = &mut books[number];
            let counts = if book.survived {
                &mut book.old
            } else {
                &mut book.young
            };
            match next(3) {
                0 => {
                    heap.observer().count(r, WRITES, 1);
                    counts.1 += 1;
                }
                _ => {
                    // More than 32 bits hold, now and then.
                    let reads = if step % 1000 == 0 { 1 << 33 } else { 1 };
                    heap.observer().count(r, READS, reads);
                    counts.0 += reads;
                }
            }
        }
    }
    let place = |site: u32| Some((key(&site.to_string()), u64::from(site), None));
    let profile = Recorder::profile(&heap, &mutator, "p.wasm", place);
    let mut expected: HashMap<String, Counts> = HashMap::new();
    for book in &books {
        let counts = expected.entry(book.site.to_string()).or_default();
        counts.objects += 1;
        counts.bytes += book.bytes;
        counts.reads += book.young.0 + book.old.0;
        counts.writes += book.young.1 + book.old.1;
        if book.survived {
            counts.survivors += 1;
            counts.survived_bytes += book.bytes;
            counts.old_reads += book.old.0;
            counts.old_writes += book.old.1;
            let bucket = Counts::bucket(book.old.0 + book.old.1);
            counts
                .accesses
                .resize(counts.accesses.len().max(bucket + 1), 0);
            counts.accesses[bucket] += 1;
        }
    }
    assert_eq!(profile.sites.len(), expected.len());
    for site in &profile.sites {
        assert_eq!(
            site.counts, expected[&site.key.function],
            "site {}",
            site.key
        );
    }
    let all: u64 = profile.sites.iter().map(|s| s.counts.old_reads).sum();
    assert!(all > 500, "{all}");
    // The written profile can be read, and classified.
    let read = Profile::parse("p.sites", &profile.text()).unwrap();
    assert_eq!(read.text(), profile.text());
}

#[test]
fn pima_leaves_fast_memory_alone_that_is_too_small() {
    let limit = |mib: u64| Config {
        fast_max: Some(mib << 20),
        ..config()
    };
    for (mib, moves) in [(64, true), (2, false)] {
        let mut world = World::with("pima", limit(mib));
        // Four bytes an element: more than 3 MiB.
        world.table(800_000);
        world.collect(Kind::Minor);
        let moved: Vec<_> = [30, 30, 30, 10, 10].map(|ms| world.interval(ms)).into();
        assert_eq!(moved.contains(&Some(FAST)), moves, "{mib} MiB");
        let log = world.phases();
        let said = log.iter().any(|e| e.to_string().contains("do not fit"));
        assert_eq!(said, !moves, "{mib} MiB");
    }
}

#[test]
fn what_does_not_fit_into_fast_memory_goes_to_slow_memory() {
    let half_full = Config {
        fast_max: Some(3 << 20),
        ..config()
    };
    let mut world = World::with("hints", half_full);
    for _ in 0..200_000 {
        world.node(HOT);
        if world.roots.len().is_multiple_of(5000) {
            world.collect(Kind::Minor);
            let fast = world.heap.spaces();
            let fast = fast.iter().filter(|space| space.tier == FAST);
            assert!(fast.map(|space| space.used).sum::<u64>() <= 3 << 20);
        }
    }
    let fast = world.tiers().iter().filter(|&&t| t == FAST).count();
    assert!((80_000..131_072).contains(&fast), "{fast}");
    let error = Heap::planned(
        Config {
            fast_max: Some(1),
            ..config()
        },
        shapes(),
        by_name("kg-n", None).unwrap().plan,
        Events::default(),
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("make the nursery smaller"), "{error}");
}

#[test]
fn heaps_of_several_threads_sample_together() {
    let instances = Arc::new(varve_heap::Instances::new(2));
    let world = || {
        World::with(
            "pima",
            Config {
                instances: Some(Arc::clone(&instances)),
                ..config()
            },
        )
    };
    let phase = |world: &World| world.phases().last().unwrap().phase;
    let (mut one, mut two) = (world(), world());
    for _ in 0..5 {
        assert_eq!(one.interval(30), None);
        assert_eq!(phase(&one), Phase::Prepare);
    }
    two.interval(30);
    assert_eq!(phase(&two), Phase::Sample(SLOW));
    one.interval(30);
    assert_eq!(phase(&one), Phase::Sample(SLOW));
    // A single instance does not wait.
    drop(one);
    for millis in [30, 30, 10, 10, 60_000] {
        two.interval(millis);
    }
    assert_eq!(phase(&two), Phase::Sample(FAST));
}

/// A large object is born where it stays: the samples at that time count, and not those of an earlier collection.
#[test]
fn a_large_object_is_coloured_by_the_samples_before_its_birth() {
    let mut world = World::new("sampled:cool=100ms");
    let warmth = Arc::clone(
        world
            .heap
            .plan()
            .sampler()
            .and_then(Sampler::stacks)
            .unwrap(),
    );
    warmth.learn(7, [REFS]);
    world.table(20_000);
    warmth.sample(Duration::from_millis(1), Some(7));
    world.table(20_000);
    warmth.sample(Duration::from_secs(1), None);
    world.table(20_000);
    assert_eq!(world.tiers(), [SLOW, FAST, SLOW]);
    world.verify();
}

/// The nursery grows while much survives it, though objects seldom end where it does; but not beyond what fast memory it may have.
#[test]
fn a_nursery_grows_when_much_survives_and_stays_within_fast_memory() {
    let grown = |spec: &str, fast_max: Option<u64>| {
        let config = Config {
            nursery: 256 << 10,
            nursery_max: 2 << 20,
            fast_max,
            ..config()
        };
        let mut world = World::with(spec, config);
        let start = world.heap.spaces()[0].used;
        for _ in 0..200_000 {
            world.node(0);
        }
        assert_eq!(world.heap.spaces()[0].name, "nursery");
        (start, world.heap.spaces()[0].used)
    };
    assert_eq!(grown("kg-n", None), (256 << 10, 2 << 20));
    assert_eq!(grown("kg-n", Some(700 << 10)), (256 << 10, 700 << 10));
    let (_, observed) = grown("kg-w", None);
    assert_eq!(
        observed,
        256 << 10,
        "its observer space does not grow either"
    );
}

/// Fast memory that is smaller than the young objects' usual spaces: if their size was not requested, they begin smaller.
#[test]
fn young_spaces_fit_into_little_fast_memory_where_nobody_asked_for_their_size() {
    let heap = |sized, fast_max| {
        let config = Config {
            fast_max: Some(fast_max),
            nursery: 4 << 20,
            sized,
            ..Config::default()
        };
        let plan = by_name("kg-w", None).unwrap().plan;
        Heap::planned(config, Shapes::new(), plan, Unobserved).map(drop)
    };
    for fast_max in [20 << 20, 8 << 20, 1 << 20] {
        assert!(heap(NurserySize::Fits, fast_max).is_ok(), "{fast_max}");
    }
    let refused = heap(NurserySize::Given, 8 << 20).unwrap_err().to_string();
    assert!(refused.contains("make the nursery smaller"), "{refused}");
}
