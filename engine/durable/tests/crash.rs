//! Every image that a crash can leave, by the model of cache lines: opened, walked, and compared with what was there before the operation and
//! after it. Leaving out a fence must be noticed.
#![cfg(not(miri))]

mod common;

use common::nested::nested;
use common::{Seen, World, inspect, tables};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex};
use varve_durable::domain::{CacheLines, Fence};
use varve_durable::journal::{Disk, DiskCrash, Journal, Limits, SimulatedDisk, Sync, recover};
use varve_durable::layout::VERSION;
use varve_durable::{CHECKED_FIRST, Image, Space};
use varve_heap::{ObjectAlign, Ref};

/// One operation of a random program: a store outside of regions, a region, or one that is rolled back.
fn operation(world: &mut World, rng: &mut SmallRng) {
    // Pages are sealed now and then, between operations: later operations open them.
    if rng.random_range(0..4) == 0 {
        world.space().seal_for_tests();
    }
    let head = world.root("list");
    match rng.random_range(0..11) {
        // Regions within regions, some of them rolled back.
        9 | 10 if !head.is_null() => nested(world, rng),
        // A new chain becomes reachable by one store.
        0 | 1 if !head.is_null() => {
            let next = world.load_ref(head, 24);
            let mut chain = next;
            for i in 0..rng.random_range(1..5) {
                chain = world.node(i, -i, chain, Ref::NULL);
            }
            world.store_ref(head, 24, chain);
        }
        // The list loses its first node.
        2 if !head.is_null() => {
            let next = world.load_ref(head, 24);
            let after = match next.is_null() {
                true => next,
                false => world.load_ref(next, 24),
            };
            world.store_ref(head, 24, after);
        }
        // Money moves between fields of several nodes, and a new node comes with it.
        3 | 4 if !head.is_null() => {
            world.space().begin();
            let amount = rng.random_range(1..100);
            let (a, b) = (world.load(head, 8), world.load(head, 16));
            world.store(head, 8, a - amount);
            let new = world.node(amount, 7, Ref::NULL, Ref::NULL);
            world.store_ref(head, 28, new);
            let new = world.load_ref(head, 28);
            world.store(new, 16, 8);
            world.store(head, 16, b + amount);
            let mut at = world.load_ref(head, 24);
            for _ in 0..3 {
                if at.is_null() {
                    break;
                }
                let a = world.load(at, 8);
                world.store(at, 8, a + 1);
                at = world.load_ref(at, 24);
            }
            world.space().end().unwrap();
        }
        // The same, and rolled back.
        5 if !head.is_null() => {
            world.space().begin();
            let a = world.load(head, 8);
            world.store(head, 8, a + 1000);
            // The fence for its log has the medium take what was stored so far.
            let next = world.load_ref(head, 24);
            if !next.is_null() {
                world.store(next, 8, a);
            }
            let new = world.node(1, 2, Ref::NULL, Ref::NULL);
            world.store_ref(head, 24, new);
            world.space().roll_back_all().unwrap();
        }
        // A root is no more, and its place is another's: alone, or in a region that is rolled back.
        7 if !head.is_null() => {
            let name = format!("root {} {}", rng.random_range(0..3), "long".repeat(20));
            let in_region = rng.random_range(0..2) == 0;
            if in_region {
                world.space().begin();
            }
            world.space().set_root(&name, Ref::NULL).unwrap();
            if in_region {
                world.space().set_root("short", head).unwrap();
                world.space().roll_back_all().unwrap();
            }
        }
        // Another root, which may be new.
        6 => {
            // Longer than a cache line.
            let name = format!("root {} {}", rng.random_range(0..3), "long".repeat(20));
            let node = world.node(5, 6, Ref::NULL, head);
            world.publish(&name, node);
        }
        _ if head.is_null() => {
            let node = world.node(500, 500, Ref::NULL, Ref::NULL);
            world.publish("list", node);
        }
        _ => {
            world.held = vec![];
            world.space().collect(&[]);
        }
    }
}

/// Runs a random program; gives what a crash could leave that was neither before an operation nor after it.
fn explore(seed: u64, operations: usize, without: Option<Fence>) -> (Option<String>, u64) {
    let seen = Seen::default();
    let mut world = World::new(|at| seen.domain(at, without, seed));
    let mut rng = SmallRng::seed_from_u64(seed);
    seen.states.lock().unwrap().clear();
    let mut before = world.state();
    for i in 0..operations {
        operation(&mut world, &mut rng);
        let after = world.state();
        let states = std::mem::take(&mut *seen.states.lock().unwrap());
        for (state, when) in states {
            match state {
                Ok(s) if s == before || s == after => {}
                // A name without an object is no root.
                Ok(s) => {
                    return (
                        Some(format!(
                            "operation {i}, {when}: neither\n{before}\nnor\n{after}\nbut\n{s}"
                        )),
                        0,
                    );
                }
                Err(e) => return (Some(format!("operation {i}, {when}: {e}")), 0),
            }
        }
        before = after;
    }
    (None, seen.images.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_crash_leaves_what_was_before_an_operation_or_after_it() {
    let mut images = 0;
    for seed in 0..6 {
        let (wrong, seen) = explore(seed, 40, None);
        assert_eq!(wrong, None);
        images += seen;
    }
    assert!(images > 1000, "only {images} images were looked at");
}

#[test]
fn a_fence_that_is_left_out_is_noticed() {
    for fence in [
        Fence::Copied,
        Fence::Logged,
        Fence::Finished,
        Fence::Named,
        Fence::TakenBack,
        Fence::Opened,
    ] {
        let noticed = (0..20).any(|seed| explore(seed, 40, Some(fence)).0.is_some());
        assert!(noticed, "without {fence:?} all was well");
    }
}

/// A completed store is in the medium: the program may have acknowledged it.
#[test]
fn what_is_over_is_there() {
    for (fence, whole) in [
        (None, true),
        (Some(Fence::Stored), false),
        (Some(Fence::Committed), false),
    ] {
        let medium = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let latest = medium.clone();
        let mut world = World::new(|at| {
            let look = move |crash: &varve_durable::domain::Crash<'_>| {
                *latest.lock().unwrap() = crash.image(|_| false);
            };
            let domain = varve_durable::domain::Simulated::new(at, look);
            match fence {
                None => Box::new(domain),
                Some(fence) => Box::new(domain.without(fence)),
            }
        });
        let mut rng = SmallRng::seed_from_u64(7);
        let mut lost = 0;
        for _ in 0..60 {
            operation(&mut world, &mut rng);
            let state = world.state();
            // The moment of the next write-back shows what is certain by then.
            world.space().flush_for_tests();
            lost += u32::from(inspect(&medium.lock().unwrap()) != Ok(state));
        }
        assert_eq!(
            lost == 0,
            whole,
            "without {fence:?}: {lost} operations lost"
        );
    }
}

// ---- files with a journal -------------------------------------------------------------------------------------------------------

/// A file with a region without objects, closed in order.
fn new_file() -> Vec<u8> {
    let domain = Box::new(CacheLines::new("memory"));
    let image = Image::memory(&[], 1 << 20);
    let mut space = Space::create("new", image, domain, tables(), ObjectAlign::LEAST).unwrap();
    space.seal_for_tests();
    space.image().to_vec()
}

/// Small ones, so that little is enough for a checkpoint.
const LIMITS: Limits = Limits {
    journal: 16 << 10,
    pages: 40,
};

/// The bytes of a file after its journal was brought to its place.
fn recovered(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut disk = SimulatedDisk::new(file, |_| ());
    let wrong = recover(&mut disk).map_err(|e| e.to_string())?;
    let mut bytes = vec![0; disk.len().unwrap() as usize];
    disk.read_at(&mut bytes, 0).unwrap();
    match wrong {
        None if bytes[8] == VERSION as u8 => Ok(bytes),
        None => Err("there is a journal still".into()),
        Some(what) => Err(what.into()),
    }
}

/// The contents of files that a crash could have left: as opened, and as inspected.
#[derive(Clone, Default)]
struct Files {
    states: Arc<Mutex<std::collections::BTreeMap<Result<String, String>, String>>>,
    files: Arc<std::sync::atomic::AtomicU64>,
    latest: Arc<Mutex<Vec<u8>>>,
}

impl Files {
    fn disk(&self, seed: u64) -> SimulatedDisk {
        let seen = self.clone();
        let mut rng = SmallRng::seed_from_u64(seed);
        let look = move |crash: &DiskCrash<'_>| {
            let n = crash.pending();
            let choices = match n {
                0..=3 => 1 << n,
                _ => 10,
            };
            for choice in 0..choices {
                let file = match n {
                    0..=3 => crash.file(|i| choice >> i & 1 == 1),
                    _ => crash.file(|_| rng.random()),
                };
                let i = seen
                    .files
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let state = match i % 2 {
                    0 => recovered(file).and_then(|bytes| inspect(&bytes)),
                    _ => inspect(&file),
                };
                let when = || format!("at {:?}, {n} pending", crash.at);
                seen.states
                    .lock()
                    .unwrap()
                    .entry(state)
                    .or_insert_with(when);
            }
            *seen.latest.lock().unwrap() = crash.file(|_| false);
        };
        SimulatedDisk::new(new_file(), look)
    }
}

/// Runs a random program on a file with a journal, which commits all of `together` operations at once. Gives what a crash could leave that was
/// neither committed nor about to be.
fn explore_journal(
    seed: u64,
    operations: usize,
    together: usize,
    without: Option<Sync>,
) -> (Option<String>, u64) {
    let seen = Files::default();
    let disk = seen.disk(seed);
    let disk = match without {
        None => disk,
        Some(sync) => disk.without(sync),
    };
    let journal = |at: *mut u8| {
        // SAFETY: the world has the region at this address as long as its domain, and uses both on this thread.
        Box::new(unsafe { Journal::new(disk, at, LIMITS) }.unwrap()) as Box<_>
    };
    let mut world = World::on_bytes(&new_file(), CHECKED_FIRST, journal).unwrap();
    let mut rng = SmallRng::seed_from_u64(seed);
    world.space().set_grouped(together > 1).unwrap();
    let mut before = world.state();
    for i in 0..operations {
        operation(&mut world, &mut rng);
        let after = world.state();
        let committed = together == 1 || i % together == together - 1;
        if together > 1 && committed {
            world.space().commit_now().unwrap();
            assert!(!world.space().uncommitted());
        }
        for (state, when) in std::mem::take(&mut *seen.states.lock().unwrap()) {
            let wrong = match state {
                Ok(s) if s == before || (committed && s == after) => continue,
                Ok(s) => format!("neither\n{before}\nnor\n{after}\nbut\n{s}"),
                Err(e) => e,
            };
            return (Some(format!("operation {i}, {when}: {wrong}")), 0);
        }
        if committed {
            before = after;
        }
    }
    // An acknowledged commit is found, whatever comes next.
    world.space().set_grouped(false).unwrap();
    let committed = world.state();
    seen.states.lock().unwrap().clear();
    if let Err(e) = world.space.take().unwrap().close() {
        return (Some(e.to_string()), 0);
    }
    let states = std::mem::take(&mut *seen.states.lock().unwrap());
    let wrong = states
        .into_iter()
        .find(|(s, _)| *s != Ok(committed.clone()));
    (
        wrong.map(|(state, when)| format!("closing, {when}: {state:?}")),
        seen.files.load(std::sync::atomic::Ordering::Relaxed),
    )
}

#[test]
fn a_crash_leaves_a_file_with_a_journal_before_an_operation_or_after_it() {
    let mut files = 0;
    for seed in 0..5 {
        let (wrong, seen) = explore_journal(seed, 60, 1, None);
        assert_eq!(wrong, None, "seed {seed}");
        files += seen;
    }
    assert!(files > 1000, "only {files} files were looked at");
}

#[test]
fn a_crash_leaves_what_was_committed_last_of_operations_in_groups() {
    for (seed, together) in [(0, 2), (1, 7), (2, 20), (3, 64)] {
        let (wrong, _) = explore_journal(seed, 128, together, None);
        assert_eq!(wrong, None, "seed {seed}, {together} together");
    }
}

#[test]
fn a_sync_of_the_journal_that_is_left_out_is_noticed() {
    for sync in [Sync::Length, Sync::Committed, Sync::InPlace, Sync::Placed] {
        let noticed = (0..10).any(|seed| explore_journal(seed, 60, 1, Some(sync)).0.is_some());
        assert!(noticed, "without {sync:?} all was well");
    }
}

/// Copies that were made before the disk was full are garbage, in pages that get checksums all the same.
#[test]
fn a_file_whose_disk_was_full_in_the_middle_of_a_move_is_whole() {
    let seen = Files::default();
    let begin = new_file();
    let room = begin.len() as u64 + (512 << 10);
    let disk = seen.disk(1).with_room(room);
    let journal = |at: *mut u8| {
        // SAFETY: as above.
        Box::new(unsafe { Journal::new(disk, at, LIMITS) }.unwrap()) as Box<_>
    };
    let mut world = World::on_bytes(&begin, CHECKED_FIRST, journal).unwrap();
    let kept = world.node(1, 2, Ref::NULL, Ref::NULL);
    world.publish("list", kept);
    let mut chain = Ref::NULL;
    for i in 0..30_000 {
        chain = world.node(i, i, chain, Ref::NULL);
    }
    assert!(world.persist(chain).is_err());
    let state = world.state();
    seen.states.lock().unwrap().clear();
    world.close();
    let states = std::mem::take(&mut *seen.states.lock().unwrap());
    assert!(!states.is_empty());
    for (left, when) in states {
        assert_eq!(left.as_ref(), Ok(&state), "{when}");
    }
}
