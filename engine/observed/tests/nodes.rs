//! A heap under PIMA on real memory nodes: when the plan moves objects to other memory, their pages are there.
//! Skipped where all memory is alike.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use varve_heap::layout::new_header;
use varve_heap::{
    AnyPlan, Config, Heap, Interval, Kind, Mutator, Ref, Shape, Shapes, Tier, Unobserved, plans,
};
use varve_live::nodes::{Kinds, NodeMemory, ZeroPool, positions};
use varve_live::probe::Topology;
use varve_observed::OnNodes;

const NODE: u32 = 0;
const REFS: u32 = 1;
/// Small objects, 24 bytes each.
const OBJECTS: u64 = 100_000;

struct World {
    heap: Heap<AnyPlan, Unobserved>,
    mutator: Mutator,
    roots: Vec<Ref>,
    kinds: Kinds,
    pool: Arc<ZeroPool>,
    intervals: u64,
    now: Duration,
}

impl World {
    /// A heap on the nodes, with numbered objects and a large one.
    fn new(kinds: Kinds) -> World {
        let memory = NodeMemory::new(kinds.clone()).expect("nodes can be used");
        let pool = Arc::new(ZeroPool::new().expect("there is room for a pool"));
        let config = Config {
            max: 64 << 20,
            backing: Some(Box::new(OnNodes::new(memory, Some(Arc::clone(&pool))))),
            ..Config::default()
        };
        let mut shapes = Shapes::new();
        shapes.add(Shape::structure("node", 24, [16, 20])).unwrap();
        shapes.add(Shape::ref_array("refs")).unwrap();
        let plan = plans::by_name("pima:hold-off=1s", None).unwrap().plan;
        let mut heap = Heap::planned(config, shapes, plan, Unobserved).unwrap();
        let mut world = World {
            mutator: heap.attach(),
            heap,
            roots: Vec::new(),
            kinds,
            pool,
            intervals: 0,
            now: Duration::ZERO,
        };
        for id in 0..OBJECTS {
            let r = world.alloc(NODE, 0);
            world.heap.write(r, 8, &id.to_ne_bytes());
        }
        world.alloc(REFS, 1 << 20);
        let (heap, mutator) = (&mut world.heap, &mut world.mutator);
        heap.collect(mutator, Kind::Minor, &mut world.roots);
        world
    }

    fn alloc(&mut self, ty: u32, length: u32) -> Ref {
        let header = new_header(ty, 1, 0);
        let new = self
            .heap
            .alloc(&mut self.mutator, header, length, &mut self.roots);
        self.roots.push(new.unwrap());
        new.unwrap()
    }

    fn intervals(&mut self, millis: [u64; 5]) {
        for millis in millis {
            let load = Duration::from_millis(millis);
            self.intervals += 1;
            self.now += load;
            let (id, now) = (self.intervals, self.now);
            let interval = Interval {
                id,
                load,
                update: Duration::ZERO,
                now,
            };
            self.heap
                .interval(&mut self.mutator, interval, &mut self.roots, || now)
                .unwrap();
        }
    }

    /// Every space is where the plan wants it, every object in `tier` and as it was.
    fn check(&self, tier: Tier) {
        assert_eq!(self.heap.failure(), None);
        for space in self.heap.ranges() {
            let found = positions(&space.ranges).unwrap();
            let wanted = self.kinds.of_tier(space.tier.0);
            assert_eq!(found.outside(wanted), 0, "{}: {found:?}", space.name);
        }
        for (id, &r) in self.roots.iter().enumerate() {
            assert_eq!(self.heap.tier_of(r), tier, "object {id}");
            // The pages of some, and of the large one.
            if id % 1000 == 0 {
                let page = (self.heap.address(r)) & !4095;
                let found = positions(&[(page, 4096)]).unwrap();
                let elsewhere = found.outside(self.kinds.of_tier(tier.0));
                assert_eq!((found.total(), elsewhere), (4096, 0), "object {id}");
            }
        }
        for id in 0..OBJECTS {
            let mut bytes = [0; 8];
            self.heap.read(self.roots[id as usize], 8, &mut bytes);
            assert_eq!(u64::from_ne_bytes(bytes), id, "moves lose nothing");
        }
    }
}

#[test]
fn pima_moves_live_objects_to_pages_of_the_other_nodes_and_back() {
    let mut world = match Kinds::probe(&Topology::read(Path::new("/")).0) {
        Ok(kinds) => World::new(kinds),
        Err(why) => return varve_skip::skip!("{why}"),
    };
    world.check(Tier::SLOW);
    // A handshake, two intervals in slow memory, and two in fast memory, which pay. A second later they do not.
    world.intervals([30, 30, 30, 10, 10]);
    world.check(Tier::FAST);
    let given = world.pool.counts();
    assert!(
        given.given >= 6 << 20,
        "objects and the large one: {given:?}"
    );
    world.pool.settle();
    world.intervals([1000, 10, 10, 12, 12]);
    world.check(Tier::SLOW);
    // Slow memory came back as zeros that are on the slow nodes, which `check` has seen.
    let taken = world.pool.counts();
    assert!(taken.taken >= 6 << 20, "{taken:?}");
}
