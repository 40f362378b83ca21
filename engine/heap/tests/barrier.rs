//! The write barrier as compiled code has it inline, from nothing but `layout`, against the functions that do it:
//! after whatever program, both heaps are the same to the bit.

use proptest::prelude::*;
use varve_heap::layout::*;
use varve_heap::plans::by_name;
use varve_heap::{
    AnyPlan, Config, Dram, Heap, Kind, Mutator, ObjectAlign, Places, Ref, Shape, Shapes,
    Unobserved, log_element_slow, log_slow,
};

const PAIR: u32 = 0;
const REFS: u32 = 1;

#[derive(Clone, Debug)]
enum Step {
    /// A pair, as a new root.
    Pair,
    /// An array of this number of references, as a new root.
    Array(u32),
    /// Stores root `value` in a slot of root `object`; `whole`: logs all of an array.
    Store {
        object: usize,
        slot: u32,
        value: usize,
        whole: bool,
    },
    Drop(usize),
    Collect(Kind),
}

fn step() -> impl Strategy<Value = Step> {
    let store = (any::<usize>(), any::<u32>(), any::<usize>(), any::<bool>());
    let store = store.prop_map(|(object, slot, value, whole)| Step::Store {
        object,
        slot,
        value,
        whole,
    });
    let kinds = [Kind::Minor, Kind::Minor, Kind::Observer, Kind::Full];
    prop_oneof![
        4 => Just(Step::Pair),
        1 => (0u32..100).prop_map(Step::Array),
        // Both large when it survives, and born large.
        1 => prop_oneof![2100u32..2500, 5000u32..9000].prop_map(Step::Array),
        12 => store,
        1 => any::<usize>().prop_map(Step::Drop),
        2 => prop::sample::select(kinds.to_vec()).prop_map(Step::Collect),
    ]
}

/// Tells the heap that a reference was stored into an object, which begins at `start`, at an address.
type Barrier = fn(&mut Mutator, object: Ref, start: u64, address: u64, whole: bool);

/// By calling, as far as a byte of the header says that it is needed.
fn called(mutator: &mut Mutator, object: Ref, start: u64, address: u64, whole: bool) {
    // SAFETY: the mutator is the test's; the object is one of its heap, and the address an element's.
    unsafe {
        match whole {
            true => log_slow(mutator, object.0),
            false if *collector_byte(start) & UNLOGGED == 0 => (),
            false => log_element_slow(mutator, object.0, address),
        }
    }
}

/// As compiled code does it.
fn inline(mutator: &mut Mutator, object: Ref, start: u64, address: u64, whole: bool) {
    // SAFETY: the contract of `layout` and `Mutator`.
    unsafe {
        let byte = collector_byte(start);
        if *byte & UNLOGGED == 0 {
            return;
        }
        let base = *field(mutator, MUTATOR_HEAP_BASE);
        let remembered = field(mutator, MUTATOR_REMEMBERED);
        let entry = std::ptr::with_exposed_provenance_mut::<u32>(*remembered as usize);
        if *byte & LARGE == 0 || whole {
            *byte &= !UNLOGGED;
            entry.write(object.0);
        } else {
            let line = (address - base) / LINE_SIZE;
            let cards = *field(mutator, MUTATOR_CARDS);
            let card = std::ptr::with_exposed_provenance_mut::<u8>((cards + line) as usize);
            if card.read() != 0 {
                return;
            }
            card.write(1);
            entry.write((line as u32) << 1 | REMEMBERED_LINE);
        }
        *remembered += 4;
    }
}

unsafe fn field(mutator: *mut Mutator, offset: i32) -> *mut u64 {
    // SAFETY: the caller's offset is one of `layout`.
    unsafe { mutator.byte_offset(offset as isize).cast() }
}

fn collector_byte(start: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut((start + COLLECTOR_BYTE as u64) as usize)
}

struct World<P> {
    heap: Heap<P>,
    mutator: Mutator,
    roots: Vec<Ref>,
    barrier: Barrier,
}

impl<P: Places> World<P> {
    fn new(plan: P, barrier: Barrier, align: ObjectAlign) -> World<P> {
        let mut shapes = Shapes::new();
        shapes.add(Shape::structure("pair", 16, [8, 12])).unwrap();
        shapes.add(Shape::ref_array("refs")).unwrap();
        let config = Config {
            max: 64 << 20,
            nursery: 128 << 10,
            nursery_max: 128 << 10,
            initial: 1 << 20,
            threads: 1,
            poison: true,
            align,
            ..Config::default()
        };
        let mut heap = Heap::with(config, shapes, plan, Unobserved).unwrap();
        let mutator = heap.attach();
        World {
            heap,
            mutator,
            roots: Vec::new(),
            barrier,
        }
    }

    fn step(&mut self, step: &Step) {
        let World {
            heap,
            mutator,
            roots,
            ..
        } = self;
        match *step {
            Step::Pair => {
                let new = heap.alloc_struct(mutator, PAIR, 0, roots).unwrap();
                roots.push(new);
            }
            Step::Array(length) => {
                let new = heap.alloc_array(mutator, REFS, 0, length, roots).unwrap();
                roots.push(new);
            }
            Step::Store {
                object,
                slot,
                value,
                whole,
            } if !roots.is_empty() => {
                let object = roots[object % roots.len()];
                let value = roots[value % roots.len()];
                let is_array = heap.header(object).type_index() == REFS;
                let (base, slots) = match is_array {
                    true => (ARRAY_NARROW_BASE, heap.array_length(object)),
                    false => (STRUCT_BASE, 2),
                };
                if slots == 0 {
                    return;
                }
                let offset = u64::from(base + 4 * (slot % slots));
                heap.write(object, offset, &value.0.to_ne_bytes());
                let start = heap.address(object);
                (self.barrier)(mutator, object, start, start + offset, whole || !is_array);
            }
            Step::Drop(root) if !roots.is_empty() => {
                let root = root % roots.len();
                roots.swap_remove(root);
            }
            Step::Collect(kind) => heap.collect(mutator, kind, roots),
            Step::Store { .. } | Step::Drop(_) => (),
        }
    }

    /// The whole heap as seen from the roots: every object with its header and its references.
    fn picture(&mut self) -> Vec<(Ref, u64, Vec<Ref>)> {
        let World { heap, roots, .. } = self;
        heap.verify(&self.mutator, roots).unwrap();
        let (mut seen, mut all) = (std::collections::HashSet::new(), Vec::new());
        let mut pending = roots.clone();
        while let Some(r) = pending.pop() {
            if r.is_object() && seen.insert(r) {
                let mut refs = Vec::new();
                let walked = heap.each_ref(r, |_, child| {
                    refs.push(child);
                    Ok::<_, ()>(())
                });
                walked.unwrap();
                pending.extend(&refs);
                all.push((r, heap.header(r).0, refs));
            }
        }
        all
    }
}

/// The usual alignment most of the time, all others too.
fn align() -> impl Strategy<Value = ObjectAlign> {
    let all: Vec<ObjectAlign> = ObjectAlign::all().collect();
    prop_oneof![Just(ObjectAlign::default()), prop::sample::select(all)]
}

fn both_ways<P: Places>(plan: impl Fn() -> P, align: ObjectAlign, steps: &[Step]) {
    let mut worlds = [called as Barrier, inline].map(|barrier| World::new(plan(), barrier, align));
    for step in steps {
        worlds.iter_mut().for_each(|world| world.step(step));
        if matches!(step, Step::Collect(_)) {
            let [called, inline] = worlds.each_mut().map(World::picture);
            assert!(called == inline, "after {step:?}");
        }
    }
    let [called, inline] = worlds.each_mut().map(World::picture);
    assert!(called == inline, "in the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 200 }))]

    #[test]
    fn the_inline_barrier_is_the_called_one(align in align(), steps in prop::collection::vec(step(), 1..200)) {
        both_ways(|| Dram, align, &steps);
    }

    #[test]
    fn with_an_observer_space_too(align in align(), steps in prop::collection::vec(step(), 1..200)) {
        both_ways(|| AnyPlan::new(by_name("kg-w", None).unwrap().plan), align, &steps);
    }
}

/// A store into each object of a heap that is full of the smallest ones, and into each line of a large array: the
/// most that can be logged, twice.
#[test]
fn everything_there_is_can_be_remembered() {
    for align in [ObjectAlign::LEAST, ObjectAlign::MOST] {
        everything_is_remembered(align);
    }
}

fn everything_is_remembered(align: ObjectAlign) {
    let mut world = World::new(Dram, inline, align);
    let (pairs, length) = match (cfg!(miri), align) {
        (true, _) => (100, 10_000),
        (_, ObjectAlign::LEAST) => (800_000, 4 << 20),
        (_, _) => (80_000, 4 << 20),
    };
    for _ in 0..pairs {
        world.step(&Step::Pair);
    }
    world.step(&Step::Array(length));
    for kind in [Kind::Minor, Kind::Full] {
        world.step(&Step::Collect(kind));
        for object in 0..pairs {
            world.step(&Step::Store {
                object,
                slot: 1,
                value: object + 1,
                whole: true,
            });
        }
        for slot in (0..length).step_by(64) {
            world.step(&Step::Store {
                object: pairs,
                slot,
                value: slot as usize,
                whole: false,
            });
        }
    }
    let reached = world
        .heap
        .verify(&world.mutator, &mut world.roots)
        .unwrap()
        .objects;
    assert_eq!(reached, pairs as u64 + 1);
}
