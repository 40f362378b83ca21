//! Other processes access a region while a program uses it: inspection, copies.
#![cfg(not(miri))]

mod common;

use common::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use varve_durable::*;
use varve_heap::Ref;

/// Money moves between the nodes of a list, in regions, and the list gets new nodes; the sum stays.
fn bank(world: &mut World, stop: &AtomicBool) -> u64 {
    let mut list = Ref::NULL;
    for _ in 0..200 {
        list = world.node(1000, 0, list, Ref::NULL);
    }
    let first = world.publish("list", list);
    let mut nodes = vec![first];
    while let next @ Ref(1..) = world.load_ref(*nodes.last().unwrap(), 24) {
        nodes.push(next);
    }
    let mut rounds = 0u64;
    while !stop.load(Ordering::Relaxed) {
        rounds += 1;
        let (a, b) = (
            nodes[(rounds * 7919 % 200) as usize],
            nodes[(rounds * 104729 % 200) as usize],
        );
        world.space().begin();
        let held = world.load(a, 8);
        world.store(a, 8, held - 1);
        let note = world.node(rounds as i64, 0, Ref::NULL, Ref::NULL);
        world.store_ref(a, 28, note);
        let held = world.load(b, 8);
        world.store(b, 8, held + 1);
        world.space().end().unwrap();
        if world.space().wants_collection() || rounds.is_multiple_of(5000) {
            world.space().collect(&[]);
        }
        if rounds.is_multiple_of(3000) {
            world.space().seal_for_tests();
        }
    }
    rounds
}

fn sum(region: &Inspection) -> i64 {
    assert_eq!(region.walk.damages, []);
    let mut sum = 0;
    let mut at = region.roots[0].object;
    while !at.is_null() {
        let offset = Space::offset_of(at.offset());
        sum += region.image.u64(offset + 8) as i64;
        at = Ref(region.image.u32(offset + 24));
    }
    sum
}

/// Each copy is the region of one instant: no region is there in part, and no page is of another time than the rest.
#[test]
fn copies_of_a_region_in_use_are_of_one_instant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let stop = Arc::new(AtomicBool::new(false));
    let program = std::thread::spawn({
        let (path, stop) = (path.clone(), stop.clone());
        move || {
            let mut world = World::on_file(&path, Medium::Memory).unwrap();
            let rounds = bank(&mut world, &stop);
            world.close();
            rounds
        }
    });
    while !path.exists() || Inspection::of_file(&path).is_ok_and(|r| r.roots.is_empty()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let copy = folder.path().join("copy.region");
    for i in 0..40 {
        assert_eq!(
            sum(&Inspection::of_file(&path).unwrap()),
            200_000,
            "look {i}"
        );
        let made = backup(&path, &copy, &mut |_, _| ()).unwrap();
        let region = Inspection::of_file(&copy).unwrap();
        assert_eq!(sum(&region), 200_000, "copy {i}");
        assert!(region.commit.closed && region.walk.objects.len() as u64 == made.objects);
    }
    let same = backup(&path, &path, &mut |_, _| ()).unwrap_err();
    assert!(same.to_string().contains("another name"), "{same}");
    stop.store(true, Ordering::Relaxed);
    let rounds = program.join().unwrap();
    assert!(rounds > 1000, "{rounds}");
    assert_eq!(sum(&Inspection::of_file(&path).unwrap()), 200_000);
    // At rest, too.
    backup(&path, &copy, &mut |_, _| ()).unwrap();
    assert_eq!(sum(&Inspection::of_file(&copy).unwrap()), 200_000);
}
