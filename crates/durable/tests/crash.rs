//! Every image that a crash can leave, by the model of cache lines: opened, walked, and compared with what was there before the operation and
//! after it. Leaving out a fence must be noticed.
#![cfg(not(miri))]

mod common;

use common::{Seen, World};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use varve_durable::domain::Fence;
use varve_heap::Ref;

/// One operation of a random program: a store outside of regions, a region, or one that is taken back.
fn operation(world: &mut World, rng: &mut SmallRng) {
    // Pages are sealed now and then, between operations: what follows opens them.
    if rng.random_range(0..4) == 0 {
        world.space().seal_for_tests();
    }
    let head = world.root("list");
    match rng.random_range(0..9) {
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
        // The same, and taken back.
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
            world.space().take_back().unwrap();
        }
        // A root is no more, and its place is another's: alone, or in a region that is taken back.
        7 if !head.is_null() => {
            let name = format!("root {} {}", rng.random_range(0..3), "long".repeat(20));
            let in_region = rng.random_range(0..2) == 0;
            if in_region {
                world.space().begin();
            }
            world.space().set_root(&name, Ref::NULL).unwrap();
            if in_region {
                world.space().set_root("short", head).unwrap();
                world.space().take_back().unwrap();
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

/// A store that is over is in the medium: the program may have told somebody.
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
            lost += u32::from(common::inspect(&medium.lock().unwrap()) != Ok(state));
        }
        assert_eq!(
            lost == 0,
            whole,
            "without {fence:?}: {lost} operations lost"
        );
    }
}
