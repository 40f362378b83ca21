//! References and offsets that no heap gave. Safe functions refuse them with a panic: a program without `unsafe` that
//! reads past the heap does not crash.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use varve_heap::layout::{ARRAY_NARROW_BASE, NULL_GUARD};
use varve_heap::plans::by_name;
use varve_heap::record::{READS, Recorder};
use varve_heap::{Config, Dram, Heap, Kind, Mutator, Ref, Shape, Shapes, Unobserved};

const MAX: u64 = 64 << 20;

fn config() -> Config {
    Config {
        max: MAX,
        nursery: 1 << 20,
        nursery_max: 1 << 20,
        ..Config::default()
    }
}

fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    shapes.add(Shape::structure("node", 24, [16, 20])).unwrap();
    shapes.add(Shape::ref_array("table")).unwrap();
    shapes
}

/// References to no object: null and addresses after it, integers, addresses past the extent, and those that only a
/// durable region would have mapped.
fn wild() -> Vec<Ref> {
    let guard = (NULL_GUARD / 4) as u32;
    let around_guard = [2, 64, 4096, guard - 4];
    let odd = [Ref::i31(5), Ref(u32::MAX)];
    let far = [1 << 30, (1 << 31) - 2, 1 << 31, 0xc000_0000, 0xffff_fff0];
    let places = around_guard.into_iter().chain(far).map(Ref);
    [Ref::NULL].into_iter().chain(places).chain(odd).collect()
}

fn refuses<T>(what: impl Debug, action: impl FnOnce() -> T) {
    let done = catch_unwind(AssertUnwindSafe(action));
    assert!(done.is_err(), "{what:?} is not refused");
}

/// Calls everything that takes a reference alone.
fn refuse_all(heap: &mut Heap, mutator: &mut Mutator, r: Ref) {
    refuses(("header", r), || heap.header(r));
    refuses(("array_length", r), || heap.array_length(r));
    refuses(("host_handle", r), || heap.host_handle(r));
    refuses(("object_size", r), || heap.object_size(r));
    refuses(("each_ref", r), || heap.each_ref(r, |_, _| Err(())));
    refuses(("read", r), || heap.read(r, 0, &mut [0; 8]));
    refuses(("write", r), || heap.write(r, 0, &[0; 8]));
    refuses(("read_ref", r), || heap.read_ref(r, 0));
    refuses(("read_element", r), || heap.read_element(r, 0));
    refuses(("write_ref", r), || {
        heap.write_ref(mutator, r, 8, Ref::NULL)
    });
    refuses(("write_element", r), || {
        heap.write_element(mutator, r, 0, Ref::NULL)
    });
    // Neither needs an object that is there: the one is arithmetic, the other may know a place by its range.
    heap.address(r);
    let _ = catch_unwind(AssertUnwindSafe(|| heap.tier_of(r)));
}

#[test]
fn wild_references_are_refused() {
    for durable in [false, true] {
        let config = Config {
            durable,
            ..config()
        };
        let mut heap = Heap::new(config, shapes()).unwrap();
        let mut mutator = heap.attach();
        for r in wild() {
            refuse_all(&mut heap, &mut mutator, r);
        }
    }
}

#[test]
fn wild_offsets_are_refused() {
    let mut heap = Heap::new(config(), shapes()).unwrap();
    let mut mutator = heap.attach();
    let mut roots = vec![];
    let node = heap.alloc_struct(&mut mutator, 0, 0, &mut roots).unwrap();
    let far = [1 << 30, 1 << 46, u64::MAX - 3, 1 << 63];
    for offset in far.into_iter().chain([1, 2, 17]) {
        refuses(("read_ref", offset), || heap.read_ref(node, offset));
        refuses(("write_ref", offset), || {
            heap.write_ref(&mut mutator, node, offset, node)
        });
    }
    for offset in far {
        refuses(("read", offset), || heap.read(node, offset, &mut [0; 8]));
        refuses(("write", offset), || heap.write(node, offset, &[0; 8]));
    }
    // An address inside, but not aligned as objects are.
    let odd = Ref((NULL_GUARD / 4) as u32 + 1);
    refuses("header", || heap.header(odd));
    refuses("array_length", || heap.array_length(odd));
    refuses("write_ref", || heap.write_ref(&mut mutator, odd, 12, node));
    // An offset does not make a place of the heap out of null.
    let inside = NULL_GUARD + (1 << 20);
    refuses("write_ref of null", || {
        heap.write_ref(&mut mutator, Ref::NULL, inside, node)
    });
    heap.collect(&mut mutator, Kind::Full, &mut roots);
}

#[test]
fn arrays_have_no_elements_past_their_length() {
    let mut heap = Heap::new(config(), shapes()).unwrap();
    let mut mutator = heap.attach();
    let mut roots = vec![];
    let table = heap.alloc_array(&mut mutator, 1, 0, 3, &mut roots).unwrap();
    heap.write_element(&mut mutator, table, 2, table);
    assert_eq!(heap.read_element(table, 2), table);
    assert_eq!(
        heap.read_ref(table, u64::from(ARRAY_NARROW_BASE) + 8),
        table
    );
    for index in [3, 4, 1 << 20, u32::MAX] {
        refuses(("read", index), || heap.read_element(table, index));
        refuses(("write", index), || {
            heap.write_element(&mut mutator, table, index, table)
        });
    }
}

/// A plan with several memories monitors writes in headers, and asks where hot objects are.
#[test]
fn plans_with_several_memories_refuse_as_much() {
    let plan = by_name("kg-w", None).unwrap().plan;
    let mut heap = Heap::planned(config(), shapes(), plan, Unobserved).unwrap();
    let mut mutator = heap.attach();
    for r in wild() {
        refuses(("write", r), || heap.write(r, 0, &[0; 8]));
        refuses(("write_ref", r), || {
            heap.write_ref(&mut mutator, r, 8, Ref::NULL)
        });
        let _ = catch_unwind(AssertUnwindSafe(|| heap.heats(r)));
        let _ = catch_unwind(AssertUnwindSafe(|| heap.tier_of(r)));
    }
    let inside = NULL_GUARD + (1 << 20);
    refuses("write of null", || heap.write(Ref::NULL, inside, &[0; 8]));
}

#[test]
fn counters_of_wild_references_are_refused() {
    let config = config();
    let recorder = Recorder::new(&config).unwrap();
    let heap = Heap::with(config, shapes(), Dram, recorder).unwrap();
    for r in wild() {
        refuses(("count", r), || heap.observer().count(r, READS, 1));
    }
    let first = Ref((NULL_GUARD / 4) as u32);
    refuses("count", || heap.observer().count(first, u64::MAX - 7, 1));
    refuses("count", || heap.observer().count(first, 1, 1));
}

/// A reference is followed only after a check that an object can be there.
#[test]
fn the_verifier_tells_of_wild_roots() {
    let mut heap = Heap::new(config(), shapes()).unwrap();
    let mutator = heap.attach();
    for r in wild().into_iter().filter(|r| r.is_object()) {
        let damage = heap.verify(&mutator, &mut vec![r]).unwrap_err();
        assert_eq!(damage.object, r);
    }
}
