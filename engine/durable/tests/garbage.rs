//! Durable garbage is collected while a program runs: nothing that it can reach is ever freed, against a plain graph of what it did.

mod common;

use common::World;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use varve_durable::domain::CacheLines;
use varve_durable::*;
use varve_heap::Ref;

/// Where a node has its references, and a table its first.
const FIELDS: [u64; 2] = [24, 28];
const ELEMENTS: u64 = 12;
const LENGTH: u32 = 2500;

/// An action of a program; numbers choose among its objects.
#[derive(Clone, Debug)]
enum Step {
    /// Makes a chain of new nodes, and stores it somewhere.
    Make {
        chain: u8,
        place: u16,
    },
    /// Loads a reference, and keeps it.
    Load {
        place: u16,
    },
    /// Stores what it keeps somewhere.
    Store {
        kept: u8,
        place: u16,
    },
    /// Stores null somewhere.
    Cut {
        place: u16,
    },
    /// Keeps one reference less.
    Forget {
        kept: u8,
    },
    /// Begins, ends or rolls back a failure-atomic region.
    Begin,
    End,
    TakeBack,
    /// A durable collection begins.
    Look,
    Some {
        references: u8,
    },
    Finish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1u8..6, any::<u16>()).prop_map(|(chain, place)| Step::Make { chain, place }),
        6 => any::<u16>().prop_map(|place| Step::Load { place }),
        6 => (any::<u8>(), any::<u16>()).prop_map(|(kept, place)| Step::Store { kept, place }),
        4 => any::<u16>().prop_map(|place| Step::Cut { place }),
        3 => any::<u8>().prop_map(|kept| Step::Forget { kept }),
        1 => Just(Step::Begin),
        1 => Just(Step::End),
        1 => Just(Step::TakeBack),
        1 => Just(Step::Look),
        9 => (1u8..40).prop_map(|references| Step::Some { references }),
        1 => Just(Step::Finish),
    ];
    prop::collection::vec(step, 1..300)
}

/// References by the objects that have them and where they are there.
type Slots = HashMap<(u32, u64), Ref>;

/// The region, and what it should be.
struct Program {
    world: World,
    slots: Slots,
    /// The state when the open region began, and the objects reachable then.
    before: Option<(Slots, HashSet<u32>)>,
    table: Ref,
    kept: Vec<Ref>,
    collections: u64,
    number: i64,
}

impl Program {
    fn new() -> Program {
        let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
        let table = world.table(LENGTH);
        let table = world.publish("table", table);
        Program {
            world,
            slots: HashMap::new(),
            before: None,
            table,
            kept: Vec::new(),
            collections: 0,
            number: 0,
        }
    }

    /// All that roots and what is kept lead to: objects of the reference graph.
    fn reachable(&self) -> HashSet<u32> {
        let mut edges: HashMap<u32, Vec<Ref>> = HashMap::new();
        for (&(object, _), &to) in &self.slots {
            edges.entry(object).or_default().push(to);
        }
        let mut found = HashSet::new();
        let mut pending = self.kept.clone();
        pending.push(self.table);
        while let Some(r) = pending.pop() {
            if !r.is_null() && found.insert(r.0) {
                pending.extend(edges.get(&r.0).into_iter().flatten());
            }
        }
        found
    }

    /// A slot of something that is reachable: often of the table.
    fn slot(&self, choice: u16) -> (Ref, u64) {
        if !choice.is_multiple_of(3) {
            // Few of them, at both ends: they are stored over again and again.
            let (near, far) = (u64::from(choice) % 7, u64::from(LENGTH) - 1);
            let index = if choice.is_multiple_of(2) {
                near
            } else {
                far - near
            };
            return (self.table, ELEMENTS + 4 * index);
        }
        let mut nodes: Vec<u32> = self.reachable().into_iter().collect();
        nodes.retain(|&r| r != self.table.0);
        nodes.sort_unstable();
        match nodes.len() {
            0 => (self.table, ELEMENTS),
            n => (
                Ref(nodes[choice as usize % n]),
                FIELDS[choice as usize / 3 % 2],
            ),
        }
    }

    fn store(&mut self, (object, at): (Ref, u64), value: Ref) {
        self.world.store_ref(object, at, value);
        let value = self.world.load_ref(object, at);
        self.slots.insert((object.0, at), value);
    }

    fn step(&mut self, step: &Step) {
        let in_region = self.before.is_some();
        match *step {
            Step::Make { chain, place } => {
                let slot = self.slot(place);
                let mut list = Ref::NULL;
                for _ in 0..chain {
                    self.number += 1;
                    list = self.world.node(self.number, -self.number, list, Ref::NULL);
                }
                self.store(slot, list);
                let mut node = self.world.load_ref(slot.0, slot.1);
                while !node.is_null() {
                    let next = self.world.load_ref(node, FIELDS[0]);
                    self.slots.insert((node.0, FIELDS[0]), next);
                    self.slots.insert((node.0, FIELDS[1]), Ref::NULL);
                    node = next;
                }
            }
            Step::Load { place } => {
                let (object, at) = self.slot(place);
                let r = self.world.load_ref(object, at);
                if !r.is_null() {
                    self.kept.push(r);
                }
            }
            Step::Store { kept, place } if !self.kept.is_empty() => {
                let value = self.kept[kept as usize % self.kept.len()];
                let slot = self.slot(place);
                // A node may be where it leads to itself; the table is of another type.
                if value != self.table {
                    self.store(slot, value);
                }
            }
            Step::Cut { place } => self.store(self.slot(place), Ref::NULL),
            Step::Forget { kept } if !self.kept.is_empty() => {
                self.kept.swap_remove(kept as usize % self.kept.len());
            }
            Step::Begin if !in_region => {
                self.world.space().begin();
                self.before = Some((self.slots.clone(), self.reachable()));
            }
            Step::End if in_region => {
                self.world.space().end().unwrap();
                self.before = None;
            }
            Step::TakeBack if in_region => {
                self.world.space().roll_back_all().unwrap();
                let (slots, alive) = self.before.take().unwrap();
                self.slots = slots;
                // Objects made in the region are gone, even if the program kept references: a language drops them too.
                self.kept.retain(|r| alive.contains(&r.0));
            }
            Step::Look => {
                let kept = self.kept.clone();
                self.world.space().begin_collection(&kept);
            }
            Step::Some { references } => self.world.space().step(u64::MAX, references.into()),
            Step::Finish => {
                self.world.space().finish_collection();
            }
            _ => {}
        }
        let collections = self.world.space().stats().collections;
        if collections > self.collections {
            self.collections = collections;
            self.compare();
        }
    }

    /// Nothing reachable was freed, and all of it is as it should be.
    fn compare(&mut self) {
        for r in self.reachable() {
            let offset = Space::offset_of(Ref(r).offset());
            assert!(self.world.space().holds_for_tests(offset), "freed: {r:#x}");
        }
        let reachable = self.reachable();
        let slots: Vec<_> = self.slots.iter().map(|(&slot, &to)| (slot, to)).collect();
        for ((object, at), to) in slots {
            if reachable.contains(&object) {
                assert_eq!(self.world.load_ref(Ref(object), at), to);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_program_can_reach_is_freed(steps in steps()) {
        let mut program = Program::new();
        for step in &steps {
            program.step(step);
        }
        program.world.space().finish_collection();
        program.compare();
    }
}

/// Garbage from before marking is free when it ends; garbage that appeared since, after the next cycle.
#[test]
fn garbage_is_free_after_one_cycle_or_two() {
    let mut world = World::new(|_| Box::new(CacheLines::new("memory")));
    let head = world.node(0, 0, Ref::NULL, Ref::NULL);
    let head = world.publish("head", head);
    let list = |world: &mut World| {
        let list = (0..2000).fold(Ref::NULL, |next, i| world.node(i, i, next, Ref::NULL));
        world.store_ref(head, FIELDS[0], list);
    };
    list(&mut world);
    let one = world.space().used();
    list(&mut world);
    let both = world.space().used();
    world.space().begin_collection(&[]);
    world.space().step(u64::MAX, 500);
    // The second list dies while its nodes are being found.
    world.store_ref(head, FIELDS[0], Ref::NULL);
    assert!(world.space().is_collecting());
    world.space().finish_collection();
    let used = world.space().used();
    assert!(
        used < both && used + 4096 > both - one,
        "{used} of {both}, {one} for one"
    );
    world.space().collect(&[]);
    assert!(world.space().used() < one);
}
