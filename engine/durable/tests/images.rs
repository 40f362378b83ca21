//! Region files that are cut off, changed in random places, or of something else: an error or a whole region, never a panic, and never an
//! object that leads outside.
#![cfg(not(miri))]

mod common;

use common::{World, inspect};
use proptest::prelude::*;
use varve_durable::domain::CacheLines;
use varve_durable::layout::CONSTANTS_START;
use varve_durable::{Error, Image, Inspection, Kind, Space, Storage, Tables, rewritten};
use varve_heap::Ref;
use varve_heap::layout::REF_SHIFT;

/// A region with a list, a table and an open failure-atomic region.
fn image(open_region: bool) -> Vec<u8> {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    let mut list = Ref::NULL;
    for i in 0..50 {
        list = world.node(i, -i, list, Ref::NULL);
    }
    let list = world.publish("list", list);
    let table = world.table(20);
    let table = world.publish("table", table);
    for i in 0..20 {
        let node = world.node(i, i, Ref::NULL, list);
        world.store_ref(table, 12 + 4 * i as u64, node);
    }
    if open_region {
        world.space().begin();
        world.store(list, 8, 12345);
        let node = world.node(1, 1, Ref::NULL, Ref::NULL);
        world.store_ref(list, 28, node);
    }
    world.space().image().to_vec()
}

/// Opens the bytes as programs do, whatever they are.
fn open(bytes: &[u8]) -> Result<Space, Error> {
    let image = Image::memory(bytes, bytes.len() as u64 + (1 << 20));
    Space::open("image", image, Box::new(CacheLines::new("memory")), None)
}

/// Uses the bytes as a large region's, of which nothing is followed before: whatever they are, that ends in no panic.
fn use_unfollowed(bytes: &[u8]) {
    let image = Image::memory(bytes, bytes.len() as u64 + (1 << 20));
    let domain = Box::new(CacheLines::new("memory"));
    let Ok(mut region) = Space::open_checked("image", image, domain, None, 0) else {
        return;
    };
    let roots = region.roots();
    region.begin();
    for root in &roots {
        region.set_root(&root.name, Ref::NULL).ok();
        region.set_root("another", root.object).ok();
    }
    region.end().ok();
    region.collect(&[]);
    region.check();
    region.close().ok();
}

#[test]
fn an_open_region_is_taken_back() {
    let (before, during) = (image(false), image(true));
    assert_ne!(before, during);
    assert_eq!(inspect(&before), inspect(&during));
    let region = open(&during).ok().unwrap();
    assert!(region.recovered().taken_back > 0 && !region.recovered().closed);
}

#[test]
fn every_length_is_an_error_or_a_region() {
    let whole = image(true);
    let mut lengths: Vec<usize> = (0..whole.len()).step_by(997).collect();
    lengths.extend([0, 1, 7, 8, 11, 12, 16, 4095, 4096]);
    for length in lengths {
        use_unfollowed(&whole[..length]);
        if let Ok(region) = open(&whole[..length]) {
            assert!(region.check().damages.is_empty(), "cut off after {length}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_are_an_error_or_a_region(changes in proptest::collection::vec((any::<u32>(), any::<u8>(), any::<bool>()), 1..20)) {
        static IMAGE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let whole = IMAGE.get_or_init(|| image(true));
        let mut bytes = whole.clone();
        for (at, value, in_objects) in changes {
            // Most of an image is free: half of the changes are where something is.
            let used = bytes.len().min(440 << 10);
            let at = at as usize % if in_objects { bytes.len() } else { used };
            bytes[at] ^= value;
        }
        use_unfollowed(&bytes);
        if let Ok(mut region) = open(&bytes) {
            prop_assert!(region.check().damages.is_empty());
            // It can be used: the space found free is not in use.
            let roots = region.roots();
            region.begin();
            region.set_root("another", roots.first().map_or(Ref::NULL, |r| r.object)).ok();
            region.end().unwrap();
            prop_assert!(region.check().damages.is_empty());
        }
    }
}

fn other_tables(change: impl FnOnce(&mut Tables)) -> Result<Vec<u8>, Error> {
    let bytes = image(false);
    let old = Inspection::of(Image::memory(&bytes, bytes.len() as u64), "old").unwrap();
    let mut tables = common::tables();
    change(&mut tables);
    rewritten(&old, &tables)
}

#[test]
fn an_added_field_begins_as_zero_and_all_else_stays() {
    let new = other_tables(|tables| {
        // Another type comes first, and nodes have a field more before the others.
        tables.types.insert(1, tables.types[0].clone());
        let to = |s: &mut Storage| {
            if let Storage::Ref(t) = s
                && let varve_durable::Heap::Type(n) = &mut t.to
            {
                *n += 1;
            }
        };
        let Kind::Struct { size, fields } = &mut tables.types[2].kind else {
            unreachable!()
        };
        *size = 40;
        for f in fields.iter_mut() {
            f.offset += 8;
            to(&mut f.storage);
        }
        let mut added = fields[0].clone();
        (added.name, added.offset) = ("added".into(), 8);
        fields.insert(0, added);
    });
    let text = inspect(&new.unwrap()).unwrap();
    let before = inspect(&image(false)).unwrap();
    assert_eq!(text.lines().count(), before.lines().count());
    assert_eq!(text.matches("\"added\":0").count(), 70);
    assert_eq!(
        text.matches("\"a\":49").count(),
        before.matches("\"a\":49").count()
    );
}

#[test]
fn other_changes_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Tables), says: &str| {
        let error = other_tables(|t| change(t)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let fields = |t: &mut Tables, f: &dyn Fn(&mut Vec<varve_durable::Field>)| {
        if let Kind::Struct { fields, .. } = &mut t.types[1].kind {
            f(fields);
        }
    };
    refused(&|t| t.types[1].name = "knot".into(), "objects of type node");
    refused(
        &|t| fields(t, &|f| drop(f.remove(0))),
        "field a of node is not there any more",
    );
    refused(
        &|t| fields(t, &|f| f[0].storage = Storage::F64),
        "field a of node has another type",
    );
    refused(
        &|t| t.types[2].kind = Kind::Array(Storage::I64),
        "table is something else",
    );
    refused(
        &|t| t.types[1].refused = Some("nodes are shy".into()),
        "nodes are shy",
    );
}

#[test]
fn compaction_leaves_the_same_objects_in_fewer_bytes() {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    for round in 0..400 {
        let mut list = Ref::NULL;
        for i in 0..50 {
            list = world.node(i, round, list, Ref::NULL);
        }
        world.publish("list", list);
    }
    let bytes = world.space().image().to_vec();
    let old = Inspection::of(Image::memory(&bytes, bytes.len() as u64), "old").unwrap();
    let new = rewritten(&old, &old.tables).unwrap();
    assert!(
        new.len() < bytes.len() / 2,
        "{} of {}",
        new.len(),
        bytes.len()
    );
    let region = open(&new).ok().unwrap();
    assert_eq!(region.recovered().objects, Some(50));
}

/// Garbage is found again, live objects stay where they are, and what the program holds counts as live.
#[test]
fn garbage_is_collected_in_place() {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    let kept = world.node(1, 2, Ref::NULL, Ref::NULL);
    let kept = world.persist(kept).unwrap();
    let head = world.node(7, 8, Ref::NULL, Ref::NULL);
    let head = world.publish("list", head);
    for round in 0..3000 {
        let mut list = Ref::NULL;
        for i in 0..20 {
            list = world.node(i, round, list, Ref::NULL);
        }
        world.store_ref(head, 24, list);
        if round % 100 == 99 {
            // Class data that the program made for itself are none of the region's.
            let own = Ref(((CONSTANTS_START + 0x3eb8) >> REF_SHIFT) as u32);
            world.space().collect(&[kept, own]);
        }
    }
    assert!(
        world.space().image().len() < 2 << 20,
        "{}",
        world.space().image().len()
    );
    assert_eq!((world.load(kept, 8), world.load(kept, 16)), (1, 2));
    assert_eq!(world.load(head, 8), 7);
    assert_eq!(world.space().check().objects.len(), 21);
}
