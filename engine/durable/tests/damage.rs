//! Damaged regions: every bit that matters is noticed, one wrong bit is repaired, and what is whole is got out of worse.
#![cfg(not(miri))]

mod common;

use common::{World, inspect, tables};
use std::path::Path;
use varve_durable::domain::{Domain, Fence};
use varve_durable::layout::*;
use varve_durable::*;
use varve_heap::Ref;

/// A closed region with two lists of `nodes` nodes, of which one is of tables of ten.
fn closed(path: &Path, nodes: i64) -> Vec<u8> {
    let mut world = World::on_file(path, Medium::Memory).unwrap();
    let mut list = Ref::NULL;
    for i in 0..nodes {
        list = world.node(i, -i, list, Ref::NULL);
    }
    world.publish("list", list);
    let table = world.table(10);
    let table = world.publish("table", table);
    for i in 0..10 {
        let node = world.node(i, 0, Ref::NULL, Ref::NULL);
        world.store_ref(table, 12 + 4 * i as u64, node);
    }
    world.close();
    std::fs::read(path).unwrap()
}

/// Offsets at which something is that a program could read.
fn used(bytes: &[u8]) -> Vec<usize> {
    let image = Image::memory(bytes, bytes.len() as u64);
    let region = Inspection::of(image, "used").unwrap();
    let mut used: Vec<usize> = (0..12).chain(LOG as usize..LOG as usize + 8).collect();
    let tables = region.commit.tables as usize;
    for copy in [TABLES, TABLES + tables_room(tables as u64)] {
        used.extend((copy as usize..copy as usize + tables).step_by(7));
    }
    used.extend(ROOTS as usize..ROOTS as usize + 256);
    for &at in &region.walk.objects {
        used.extend(at as usize..at as usize + 32);
    }
    used
}

#[test]
fn a_flipped_bit_is_noticed_wherever_it_matters() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = closed(&folder.path().join("a.region"), 50);
    let before = inspect(&bytes).unwrap();
    let mut flips = 0;
    for (i, at) in used(&bytes).into_iter().enumerate() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (i % 8);
        let image = Image::memory(&flipped, flipped.len() as u64);
        let noticed = match Inspection::of(image, "flipped") {
            Ok(region) => !region.walk.damages.is_empty(),
            Err(_) => true,
        };
        assert!(noticed, "bit {} of {at:#x}", i % 8);
        // And where it is opened, whatever is checked first.
        let opened = World::again(&flipped, CHECKED_FIRST).err();
        // Of the tables there are two copies.
        let tables_only = (TABLES..TABLES + (8 << 10)).contains(&(at as u64));
        assert!(opened.is_some() || tables_only, "{at:#x}");
        flips += 1;
    }
    assert!(flips > 1500, "{flips}");
    assert_eq!(inspect(&bytes).unwrap(), before);
}

fn exported(path: &Path) -> Vec<String> {
    let region = Inspection::of_file(path).unwrap();
    assert_eq!(region.walk.damages, []);
    let mut text = Vec::new();
    region.export(None, &mut text).unwrap();
    // Without places, which differ.
    let text = String::from_utf8(text).unwrap();
    let numbers = |line: &str| {
        line.split("\"a\":")
            .nth(1)
            .map(|s| s.split(',').next().unwrap().to_string())
    };
    let mut lines: Vec<String> = text.lines().filter_map(numbers).collect();
    lines.sort();
    lines
}

#[test]
fn one_wrong_bit_is_repaired_and_all_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (
        folder.path().join("a.region"),
        folder.path().join("b.region"),
    );
    let bytes = closed(&path, 50);
    let before = exported(&path);
    for (i, at) in used(&bytes).into_iter().enumerate().step_by(97) {
        if at < ROOTS as usize {
            continue;
        }
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (i % 8);
        std::fs::write(&path, &flipped).unwrap();
        let done = salvage(&path, &into).unwrap();
        assert_eq!(
            (done.lost.len(), done.roots.len()),
            (
                usize::from(at < CLASS_DATA as usize && at >= LOG as usize),
                0
            ),
            "{at:#x}: {done:?}"
        );
        assert_eq!(exported(&into), before, "{at:#x}");
        assert_eq!(std::fs::read(&path).unwrap(), flipped, "it stays as it is");
    }
}

#[test]
fn what_is_whole_is_got_out() {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (
        folder.path().join("a.region"),
        folder.path().join("b.region"),
    );
    let bytes = closed(&path, 1000);
    let region = Inspection::of_file(&path).unwrap();
    let table = region.roots.iter().find(|r| r.name == "table").unwrap();
    let table = Space::offset_of(table.object.offset());
    let objects = region.walk.objects.clone();
    drop(region);
    // A page in the middle of the list, which was made first.
    let page = objects[500] / PAGE * PAGE;
    assert!(!(page..page + PAGE).contains(&table));
    let mut damaged = bytes.clone();
    damaged[page as usize..(page + PAGE) as usize].fill(0xa5);
    std::fs::write(&path, &damaged).unwrap();
    assert!(World::on_file(&path, Medium::Memory).is_err());
    let done = salvage(&path, &into).unwrap();
    assert!(done.lost.iter().any(|l| l.contains("checksum")), "{done:?}");
    assert_eq!(done.roots, [] as [&str; 0]);
    let kept = exported(&into);
    // The table with all of its nodes, and the list up to the page.
    assert!(kept.len() > 10 && kept.len() < 1010, "{}", kept.len());
    assert!((0..10).all(|i| kept.contains(&i.to_string())));
    let mut world = World::on_file(&into, Medium::Memory).unwrap();
    assert!(!world.root("list").is_null() && !world.root("table").is_null());
    // The page of the table itself: its root is lost, the list is there.
    let mut damaged = bytes.clone();
    let page = (table / PAGE * PAGE) as usize;
    damaged[page + 8..page + 4000].fill(0xa5);
    std::fs::write(&path, &damaged).unwrap();
    drop(world);
    let done = salvage(&path, &into).unwrap();
    assert!(done.roots.contains(&"table".to_string()), "{done:?}");
    let same = salvage(&path, &path).unwrap_err().to_string();
    assert!(same.contains("another name"), "{same}");
    assert!(tables() == Inspection::of_file(&into).unwrap().tables);
}

/// A medium that fails from some fence on.
struct Failing(u64, std::sync::Arc<std::sync::atomic::AtomicU64>);

impl Domain for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn write_back(&mut self, _: *const u8, _: u64) {}

    fn fence(&mut self, _: Fence) -> std::io::Result<()> {
        let n = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // Once, as `fdatasync` does: asked again it would say that all is well.
        match n == self.0 {
            true => Err(std::io::ErrorKind::Other.into()),
            false => Ok(()),
        }
    }
}

/// After a sync has failed nothing more is stored, closing changes nothing, and the region is as it was before the operation or after it.
#[test]
fn nothing_is_stored_after_the_medium_has_failed() {
    let count: std::sync::Arc<std::sync::atomic::AtomicU64> = Default::default();
    let operation = |world: &mut World, i: i64| -> Result<()> {
        let node = world.node(i, i, Ref::NULL, Ref::NULL);
        world.space().begin();
        let node = world.persist(node)?;
        world.space().set_root("node", node)?;
        world.space().set_root("last", node)?;
        world.space().end()?;
        let object = Space::offset_of(node.offset());
        world.space().store(object, 8, &[7; 8])
    };
    let mut failures = 0;
    for fail_at in 20.. {
        count.store(0, std::sync::atomic::Ordering::Relaxed);
        let mut world = World::new(|_| Box::new(Failing(fail_at, count.clone())));
        let mut before = String::new();
        let failed = (0..30).find_map(|i| {
            before = inspect(&world.space().image().to_vec()).unwrap();
            operation(&mut world, i).err()
        });
        let Some(error) = failed else { break };
        failures += 1;
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let refused = world.space().store(ROOTS, 0, &[0; 4]);
        assert!(matches!(refused, Err(Error::Failed(_))));
        let bytes = world.space().image().to_vec();
        world.close();
        let left = inspect(&bytes).unwrap();
        let roots = left.matches("\"root\"").count();
        assert!(left == before || roots == 2, "{left}\nafter\n{before}");
        drop(world);
        let mut again = World::again(&bytes, CHECKED_FIRST).unwrap();
        assert!(!again.space().recovered().closed);
    }
    assert!(failures > 50, "{failures}");
}
