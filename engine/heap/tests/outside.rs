//! A plan from outside of the repository, as the tutorial has it: one type and one entry, made by the functions that make ours.

use varve_heap::plans::plans;
use varve_heap::{Config, Heap, Kind, Ref, Shape, Shapes, Unobserved};

// begin: plan
use varve_heap::plans::Entry;
use varve_heap::{Object, Plan, Space, Tier};
use varve_spec::{Param, Want};

/// Large objects in one memory, small ones in the other.
struct BySize {
    large: Tier,
    small: Tier,
}

const ENTRY: Entry = Entry {
    source: "this test",
    params: &[Param::new(
        "swap",
        Want::Flag,
        "no",
        "whether small objects are those in slow memory",
    )],
    ..Entry::new("by-size", "large objects in slow memory", |values, _| {
        let (large, small) = match values.flag("swap") {
            false => (Tier::SLOW, Tier::FAST),
            true => (Tier::FAST, Tier::SLOW),
        };
        Ok(Box::new(BySize { large, small }))
    })
};

impl Plan for BySize {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn place(&self, object: Object) -> Space {
        Space::Old(if object.large { self.large } else { self.small })
    }
}
// end: plan

/// The memories of a small and of a large object that have survived.
fn memories(given: &str) -> [Tier; 2] {
    let mut shapes = Shapes::new();
    let small = shapes.add(Shape::structure("small", 16, [])).unwrap();
    let large = shapes.add(Shape::array("large", 4)).unwrap();
    let plan = ENTRY.make(given, None).unwrap().plan;
    let mut heap = Heap::planned(Config::default(), shapes, plan, Unobserved).unwrap();
    let mut mutator = heap.attach();
    let mut roots = vec![Ref::NULL; 2];
    roots[0] = heap
        .alloc_struct(&mut mutator, small, 0, &mut roots)
        .unwrap();
    roots[1] = heap
        .alloc_array(&mut mutator, large, 0, 100_000, &mut roots)
        .unwrap();
    heap.collect(&mut mutator, Kind::Full, &mut roots);
    [heap.tier_of(roots[0]), heap.tier_of(roots[1])]
}

#[test]
fn a_plan_from_outside_is_an_entry_and_a_type() {
    assert!(plans().iter().all(|entry| entry.name != ENTRY.name));
    assert!(ENTRY.is_for(false, false));
    assert_eq!(memories(""), [Tier::FAST, Tier::SLOW]);
    assert_eq!(memories("swap"), [Tier::SLOW, Tier::FAST]);
}

#[test]
fn what_is_wrong_about_it_is_said_as_of_the_others() {
    let says = |given: &str| ENTRY.make(given, None).err().unwrap().to_string();
    assert_eq!(
        says("swap=maybe"),
        "heap plan `by-size`: `swap=maybe`: must be yes or no"
    );
    assert_eq!(
        says("swop=no"),
        "heap plan `by-size` has no parameter `swop`; it takes swap, code (did you mean `swap`?)"
    );
}
