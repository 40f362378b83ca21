//! The heap against an obvious one: a graph in hash maps. Random programs build, change and drop objects on both;
//! whatever is collected, and however, both must stay the same.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use varve_heap::layout::{HOT, new_header};
use varve_heap::plans::{Entry, by_name, plans};
use varve_heap::{
    AnyPlan, Config, Dram, Heap, Interval, Kind, Mutator, ObjectAlign, Places, Ref, Roots, Shape,
    Shapes, Stress, Unobserved,
};
use varve_sites::Profile;

const PAIR: u32 = 0;
const WIDE: u32 = 1;
const BYTES: u32 = 2;
const REFS: u32 = 3;
const LONGS: u32 = 4;
const HOST: u32 = 5;

const WIDE_REFS: u32 = 90;

fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    for shape in [
        Shape::structure("pair", 24, [16, 20]),
        Shape::structure(
            "wide",
            16 + 4 * WIDE_REFS,
            (0..WIDE_REFS).map(|i| 16 + 4 * i).collect::<Vec<_>>(),
        ),
        Shape::array("bytes", 1),
        Shape::ref_array("refs"),
        Shape::array("longs", 8),
        Shape::host("host"),
        Shape::structure("empty", 8, []),
    ] {
        shapes.add(shape).unwrap();
    }
    shapes
}

/// A value of the obvious heap.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Null,
    Int(i32),
    Object(u64),
}

/// An object of the obvious heap.
#[derive(Debug)]
struct Node {
    shape: u32,
    refs: Vec<Value>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Step {
    New {
        shape: u32,
        length: u32,
    },
    Store {
        object: usize,
        field: usize,
        value: usize,
    },
    StoreInt {
        object: usize,
        field: usize,
        value: i32,
    },
    Load {
        object: usize,
        field: usize,
    },
    Drop {
        root: usize,
    },
    Weaken {
        root: usize,
    },
    Collect(bool),
    /// The program reports an interval of this number of milliseconds.
    Interval(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let length =
        prop_oneof![8 => 0u32..20, 4 => 20u32..600, 1 => 2000u32..5000, 1 => 20_000u32..300_000];
    prop_oneof![
        10 => (0u32..7, length).prop_map(|(shape, length)| Step::New { shape, length }),
        10 => (any::<usize>(), any::<usize>(), any::<usize>()).prop_map(|(object, field, value)| Step::Store { object, field, value }),
        2 => (any::<usize>(), any::<usize>(), -(1 << 30)..1 << 30).prop_map(|(object, field, value)| Step::StoreInt { object, field, value }),
        4 => (any::<usize>(), any::<usize>()).prop_map(|(object, field)| Step::Load { object, field }),
        6 => any::<usize>().prop_map(|root| Step::Drop { root }),
        1 => any::<usize>().prop_map(|root| Step::Weaken { root }),
        2 => any::<bool>().prop_map(Step::Collect),
        2 => (1u64..100).prop_map(Step::Interval),
    ]
}

/// The part of this test that the heap sees: strong roots, weak ones, and what it said about hosts.
#[derive(Default)]
struct Outside {
    strong: Vec<Ref>,
    weak: Vec<Option<Ref>>,
    died: Vec<u64>,
}

impl Roots for Outside {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Ref)) {
        self.strong.iter_mut().for_each(f);
    }

    fn visit_weak(&mut self, f: &mut dyn FnMut(Ref) -> Option<Ref>) {
        for weak in &mut self.weak {
            *weak = weak.and_then(&mut *f);
        }
    }

    fn host_died(&mut self, handle: u64) {
        self.died.push(handle);
    }
}

/// Both heaps, side by side.
struct Both<P> {
    heap: Heap<P>,
    mutator: Mutator,
    outside: Outside,
    nodes: HashMap<u64, Node>,
    /// The nodes that `outside.strong` and `outside.weak` stand for.
    strong: Vec<u64>,
    weak: Vec<u64>,
    next: u64,
    intervals: u64,
    now: Duration,
}

impl<P: Places> Both<P> {
    fn new(config: Config, plan: P) -> Both<P> {
        let mut heap = Heap::with(config, shapes(), plan, Unobserved).unwrap();
        let mutator = heap.attach();
        let (outside, nodes) = (Outside::default(), HashMap::new());
        Both {
            heap,
            mutator,
            outside,
            nodes,
            strong: Vec::new(),
            weak: Vec::new(),
            next: 1,
            intervals: 0,
            now: Duration::ZERO,
        }
    }

    fn new_object(&mut self, shape: u32, length: u32) {
        let (heap, mutator, outside) = (&mut self.heap, &mut self.mutator, &mut self.outside);
        let id = self.next;
        self.next += 1;
        let site = id as u32 & 0xffff;
        let (refs, bytes) = match shape {
            PAIR => (2, 8),
            WIDE => (WIDE_REFS, 8),
            BYTES => (0, length as usize),
            REFS => (length, 0),
            LONGS => (0, 8 * length as usize),
            _ => (0, 0),
        };
        // Every third object is hot.
        let header = new_header(shape, site, if id.is_multiple_of(3) { HOT } else { 0 });
        let allocated = match shape {
            HOST => heap.alloc_host(mutator, shape, id, outside),
            _ => heap.alloc(mutator, header, length, outside),
        };
        let r = allocated.expect("the heap is large enough for everything that this test makes");
        let content: Vec<u8> = (0..bytes)
            .map(|i| (id as usize * 31 + i * 7) as u8)
            .collect();
        let mut zero = vec![1; bytes];
        heap.read(r, payload(shape), &mut zero);
        assert!(zero.iter().all(|&byte| byte == 0), "new objects are zero");
        heap.write(r, payload(shape), &content);
        outside.strong.push(r);
        self.strong.push(id);
        self.nodes.insert(
            id,
            Node {
                shape,
                refs: vec![Value::Null; refs as usize],
                bytes: content,
            },
        );
    }

    /// A root's object that has references, and one of them.
    fn pick(&self, object: usize, field: usize) -> Option<(usize, usize)> {
        let with_refs: Vec<usize> = (0..self.strong.len())
            .filter(|&i| !self.nodes[&self.strong[i]].refs.is_empty())
            .collect();
        let root = *with_refs.get(object % with_refs.len().max(1))?;
        Some((root, field % self.nodes[&self.strong[root]].refs.len()))
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::New { shape, length } => self.new_object(shape, length),
            Step::Store {
                object,
                field,
                value,
            } => {
                let Some((root, field)) = self.pick(object, field) else {
                    return;
                };
                let value = value % self.strong.len();
                self.write(
                    root,
                    field,
                    self.outside.strong[value],
                    Value::Object(self.strong[value]),
                );
            }
            Step::StoreInt {
                object,
                field,
                value,
            } => {
                let Some((root, field)) = self.pick(object, field) else {
                    return;
                };
                self.write(root, field, Ref::i31(value as u32), Value::Int(value));
            }
            Step::Load { object, field } => {
                let Some((root, field)) = self.pick(object, field) else {
                    return;
                };
                let Value::Object(id) = self.nodes[&self.strong[root]].refs[field] else {
                    return;
                };
                let r = self.heap.read_ref(
                    self.outside.strong[root],
                    offset(self.nodes[&self.strong[root]].shape, field),
                );
                self.outside.strong.push(r);
                self.strong.push(id);
            }
            Step::Drop { root } => {
                if !self.strong.is_empty() {
                    let root = root % self.strong.len();
                    self.strong.swap_remove(root);
                    self.outside.strong.swap_remove(root);
                }
            }
            Step::Weaken { root } => {
                if !self.strong.is_empty() {
                    let root = root % self.strong.len();
                    self.weak.push(self.strong[root]);
                    self.outside.weak.push(Some(self.outside.strong[root]));
                }
            }
            Step::Collect(full) => {
                let kind = if full { Kind::Full } else { Kind::Minor };
                self.heap
                    .collect(&mut self.mutator, kind, &mut self.outside);
                let verified = self.heap.verify(&self.mutator, &mut self.outside).unwrap();
                assert_eq!(verified.young, 0, "collections empty the nursery");
                self.check(full);
            }
            Step::Interval(millis) => {
                let load = Duration::from_millis(millis);
                self.now += load;
                self.intervals += 1;
                let interval = Interval {
                    id: self.intervals,
                    load,
                    update: Duration::ZERO,
                    now: self.now,
                };
                let (heap, now) = (&mut self.heap, self.now);
                let moved = heap
                    .interval(&mut self.mutator, interval, &mut self.outside, || now)
                    .unwrap();
                if moved.is_some() {
                    self.check(true);
                }
            }
        }
    }

    fn write(&mut self, root: usize, field: usize, r: Ref, value: Value) {
        let node = self.nodes.get_mut(&self.strong[root]).unwrap();
        node.refs[field] = value;
        let (object, mutator) = (self.outside.strong[root], &mut self.mutator);
        if node.shape == REFS {
            self.heap.write_element(mutator, object, field as u32, r);
        } else {
            let offset = offset(node.shape, field);
            self.heap.write_ref(mutator, object, offset, r);
        }
    }

    /// Walks over both heaps at once. `exactly`: a full collection just ended, so that nothing dead may be left.
    fn check(&mut self, exactly: bool) {
        let verified = self.heap.verify(&self.mutator, &mut self.outside).unwrap();
        let mut place: HashMap<u64, Ref> = HashMap::new();
        let mut pending: Vec<(Value, Ref)> = self
            .strong
            .iter()
            .map(|&id| Value::Object(id))
            .zip(self.outside.strong.iter().copied())
            .collect();
        while let Some((value, r)) = pending.pop() {
            let id = match value {
                Value::Null => {
                    assert!(r.is_null());
                    continue;
                }
                Value::Int(value) => {
                    assert!(r.is_i31() && r.as_i31() == value);
                    continue;
                }
                Value::Object(id) => id,
            };
            assert!(r.is_object());
            if let Some(&known) = place.get(&id) {
                assert_eq!(r, known, "one object in two places");
                continue;
            }
            place.insert(id, r);
            let node = &self.nodes[&id];
            let header = self.heap.header(r);
            assert_eq!(header.type_index(), node.shape);
            match node.shape {
                HOST => assert_eq!(self.heap.host_handle(r), id),
                _ => assert_eq!(header.site(), id as u32 & 0xffff),
            }
            let mut bytes = vec![0; node.bytes.len()];
            self.heap.read(r, payload(node.shape), &mut bytes);
            assert!(bytes == node.bytes, "the content of {id} changed");
            if node.shape == REFS {
                assert_eq!(self.heap.array_length(r) as usize, node.refs.len());
            }
            for (field, &value) in node.refs.iter().enumerate() {
                pending.push((value, self.heap.read_ref(r, offset(node.shape, field))));
            }
        }
        assert_eq!(
            verified.objects as usize,
            place.len(),
            "as many objects are reachable in both"
        );
        let died: HashSet<u64> = self.outside.died.iter().copied().collect();
        assert_eq!(
            died.len(),
            self.outside.died.len(),
            "a host object dies once"
        );
        for (&id, _) in self.nodes.iter().filter(|(_, node)| node.shape == HOST) {
            let alive = place.contains_key(&id);
            assert!(!(alive && died.contains(&id)), "host {id} lives");
            assert!(
                !exactly || alive != died.contains(&id),
                "host {id} is dead and no notification came"
            );
        }
        for (id, weak) in self.weak.iter().zip(&self.outside.weak) {
            match (place.get(id), weak) {
                (Some(r), weak) => assert_eq!(
                    Some(r),
                    weak.as_ref(),
                    "a weak reference follows its object"
                ),
                (None, weak) => assert!(
                    !exactly || weak.is_none(),
                    "a weak reference to a dead object"
                ),
            }
        }
    }
}

/// Where an object's plain bytes begin.
fn payload(shape: u32) -> u64 {
    match shape {
        BYTES => 12,
        LONGS => 16,
        _ => 8,
    }
}

/// Where a reference is in an object.
fn offset(shape: u32, field: usize) -> u64 {
    let base = if shape == REFS { 12 } else { 16 };
    base + 4 * field as u64
}

/// The usual alignment most of the time, all others too.
fn align() -> impl Strategy<Value = ObjectAlign> {
    let all: Vec<ObjectAlign> = ObjectAlign::all().collect();
    prop_oneof![Just(ObjectAlign::default()), prop::sample::select(all)]
}

fn small(align: ObjectAlign, stress: Stress, threads: usize) -> Config {
    let nursery = 64 << 10;
    Config {
        max: 1 << 30,
        nursery,
        nursery_max: 4 * nursery,
        initial: 1 << 20,
        threads,
        stress,
        poison: true,
        align,
        ..Config::default()
    }
}

/// A plan of the registry, so set that its phases are short.
fn plan(entry: &Entry) -> AnyPlan {
    let quick = match entry.params.iter().any(|p| p.key == "hold-off") {
        true => ":intervals=1,hold-off=0s",
        false => "",
    };
    let spec = format!("{}{quick}", entry.name);
    let chosen = by_name(&spec, Some(&Profile::default())).unwrap();
    AnyPlan::new(chosen.plan)
}

fn tell<P: Places>(config: Config, plan: P, steps: &[Step]) {
    let mut both = Both::new(config, plan);
    for step in steps {
        both.run(step);
    }
    both.check(false);
    both.run(&Step::Collect(true));
    // Without roots nothing is left.
    (both.strong, both.outside.strong) = (Vec::new(), Vec::new());
    both.run(&Step::Collect(true));
    assert_eq!(both.heap.used(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 96 }, ..ProptestConfig::default() })]

    #[test]
    fn programs_see_the_same_graph(align in align(), steps in prop::collection::vec(step(), 1..400)) {
        tell(small(align, Stress::Off, 1), Dram, &steps);
    }

    #[test]
    fn with_a_collection_before_every_allocation(align in align(), steps in prop::collection::vec(step(), 1..120)) {
        tell(small(align, Stress::Minor(1), 1), Dram, &steps);
    }

    #[test]
    fn with_everything_moving_before_every_allocation(align in align(), steps in prop::collection::vec(step(), 1..100)) {
        tell(small(align, Stress::Full(1), 1), Dram, &steps);
    }

    #[test]
    fn with_several_threads(align in align(), steps in prop::collection::vec(step(), 1..400)) {
        tell(small(align, Stress::Full(7), 3), Dram, &steps);
    }

    #[test]
    fn with_any_plan(
        which in 0..plans().len(), align in align(), steps in prop::collection::vec(step(), 1..400)
    ) {
        tell(small(align, Stress::Off, 1), plan(&plans()[which]), &steps);
    }

    #[test]
    fn with_any_plan_and_everything_moving(
        which in 0..plans().len(), align in align(), steps in prop::collection::vec(step(), 1..150)
    ) {
        tell(small(align, Stress::Full(2), 1), plan(&plans()[which]), &steps);
    }

    #[test]
    fn with_any_plan_several_threads_and_many_collections(
        which in 0..plans().len(), align in align(), steps in prop::collection::vec(step(), 1..300)
    ) {
        tell(small(align, Stress::Minor(3), 3), plan(&plans()[which]), &steps);
    }
}

/// Every plan and every alignment at least once, whatever is drawn above.
#[test]
fn every_plan_of_the_registry() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut aligns = ObjectAlign::all().collect::<Vec<_>>().into_iter().cycle();
    for entry in plans() {
        for stress in [Stress::Off, Stress::Minor(1), Stress::Full(1)] {
            let align = aligns.next().expect("it has no end");
            let steps = prop::collection::vec(step(), 100..120);
            let steps = steps.new_tree(&mut runner).unwrap().current();
            println!("{} under {stress:?}, {align:?}: {steps:?}", entry.name);
            tell(small(align, stress, 1), plan(entry), &steps);
        }
    }
}
