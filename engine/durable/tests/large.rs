//! Regions that are opened without being traced: free space is known from the marks of pages, whatever happened before.
#![cfg(not(miri))]

mod common;

use common::{World, inspect};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use varve_durable::domain::CacheLines;
use varve_durable::{Error, Space};
use varve_heap::Ref;

/// Runs a random program in many runs, some of which end without closing, and keeps what the list has beside.
fn story(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = World::new(|_| Box::new(varve_durable::domain::CacheLines::new("memory")));
    let mut list: Vec<i64> = Vec::new();
    for run in 0..12 {
        for _ in 0..rng.random_range(0..60) {
            match rng.random_range(0..6) {
                // Shorter: garbage.
                0 if !list.is_empty() => {
                    let keep = rng.random_range(0..list.len());
                    let mut at = world.root("list");
                    for _ in keep + 1..list.len() {
                        at = world.load_ref(at, 24);
                    }
                    list.truncate(keep + 1);
                    world.space().set_root("list", at).unwrap();
                }
                1 => world.space().collect(&[]),
                2 => world.space().seal_for_tests(),
                3 => {
                    // A region that is rolled back, with many objects and lines in the log.
                    world.space().begin();
                    let mut at = world.root("list");
                    while !at.is_null() {
                        world.store(at, 8, -1);
                        at = world.load_ref(at, 24);
                    }
                    for i in 0..50 {
                        let node = world.node(i, i, Ref::NULL, Ref::NULL);
                        world.persist(node).unwrap();
                    }
                    world.space().roll_back_all().unwrap();
                }
                _ => {
                    let mut head = world.root("list");
                    for _ in 0..rng.random_range(1..40) {
                        let value = rng.random_range(0..1 << 40);
                        list.push(value);
                        head = world.node(value, 0, head, Ref::NULL);
                    }
                    world.publish("list", head);
                }
            }
        }
        let mut at = world.root("list");
        for &value in list.iter().rev() {
            assert_eq!(world.load(at, 8), value, "seed {seed}, run {run}");
            at = world.load_ref(at, 24);
        }
        assert!(at.is_null());
        assert_eq!(world.space().check().damages, []);
        // The next run has the bytes as they are, or as closing leaves them; it follows nothing, or everything.
        let mut bytes = world.space().image().to_vec();
        if rng.random_range(0..2) == 0 {
            world.space().seal_for_tests();
            bytes = world.space().image().to_vec();
        }
        inspect(&bytes).unwrap();
        let checked_first = [0, u64::MAX][rng.random_range(0..2)];
        drop(world);
        world = World::again(&bytes, checked_first).unwrap();
    }
}

#[test]
fn nothing_that_lives_is_stored_over() {
    for seed in 0..40 {
        story(seed);
    }
}

/// Pages that were free when the region was closed are used again without having followed anything.
#[test]
fn what_is_free_is_known_without_following_anything() {
    let mut world = World::new(|_| Box::new(varve_durable::domain::CacheLines::new("memory")));
    for _ in 0..5 {
        let mut list = Ref::NULL;
        for i in 0..2000 {
            list = world.node(i, i, list, Ref::NULL);
        }
        world.publish("list", list);
    }
    world.space().collect(&[]);
    world.space().seal_for_tests();
    let used = world.space().used();
    let bytes = world.space().image().to_vec();
    drop(world);
    let mut world = World::again(&bytes, 0).unwrap();
    assert_eq!(world.space().recovered().objects, None);
    // A page is taken as a whole where a line of it is.
    let again = world.space().used();
    assert!(again <= used + used / 4 + (64 << 10), "{again} of {used}");
    let len = world.space().image().len();
    for _ in 0..4 {
        let mut list = Ref::NULL;
        for i in 0..1000 {
            list = world.node(i, i, list, Ref::NULL);
        }
        world.publish("list", list);
    }
    assert_eq!(world.space().image().len(), len, "there was room");
}

/// A region that stores everywhere gives its log's room to the next one, and garbage is no more than one region's log.
#[test]
fn the_log_gives_its_room_back() {
    let mut world = World::new(|_| Box::new(varve_durable::domain::CacheLines::new("memory")));
    let mut list = Ref::NULL;
    for i in 0..10_000 {
        list = world.node(i, 0, list, Ref::NULL);
    }
    let head = world.publish("list", list);
    let mut longest = 0;
    for round in 0..200 {
        world.space().begin();
        let mut at = head;
        while !at.is_null() {
            world.store(at, 16, round);
            at = world.load_ref(at, 24);
        }
        match round % 7 {
            3 => world.space().roll_back_all().unwrap(),
            _ => world.space().end().unwrap(),
        }
        if round == 20 {
            longest = world.space().image().len();
        }
    }
    assert_eq!(world.space().image().len(), longest);
    assert_eq!(world.space().stats().collections, 0);
    assert_eq!(world.load(head, 16), 198);
}

/// Checksums find damage, but no attacker, who can forge them. A region that is verified is traced first.
#[test]
fn an_object_of_a_wrong_type_is_found_when_a_region_is_verified() {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    let table = world.table(3);
    let table = world.publish("table", table);
    let node = world.node(1, 2, Ref::NULL, Ref::NULL);
    let node = world.publish("node", node);
    // A table where there can only be a node.
    let object = Space::offset_of(node.offset());
    let bytes = table.0.to_le_bytes();
    world.space().store(object, 24, &bytes).unwrap();
    world.space().seal_for_tests();
    let bytes = world.space().image().to_vec();
    assert!(World::again(&bytes, 0).is_ok(), "its pages are right");
    let Err(Error::Damaged { what, .. }) = World::again(&bytes, u64::MAX) else {
        panic!("not found");
    };
    assert!(what.contains("table"), "{what}");
}
