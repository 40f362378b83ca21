//! Random regions within regions, beside a plain model of what they leave.

use super::World;
use rand::Rng;
use rand::rngs::SmallRng;
use varve_heap::Ref;

/// The list of the root `list`, as far as it goes: both numbers of each node.
type Model = Vec<(i64, i64)>;

/// Most nodes that are checked.
const MOST: usize = 24;

fn nodes(world: &mut World) -> Vec<Ref> {
    let mut all = Vec::new();
    let mut at = world.root("list");
    while !at.is_null() && all.len() < MOST {
        all.push(at);
        at = world.load_ref(at, 24);
    }
    all
}

fn list(world: &mut World) -> Model {
    let all = nodes(world);
    all.into_iter()
        .map(|r| (world.load(r, 8), world.load(r, 16)))
        .collect()
}

/// Does random work in a region with others in it, each of which ends or is rolled back, and compares with the model at every end.
pub fn nested(world: &mut World, rng: &mut SmallRng) {
    let before = list(world);
    let mut outer: Vec<Model> = vec![before.clone()];
    let mut model = before;
    world.space().begin();
    for _ in 0..rng.random_range(4..24) {
        match rng.random_range(0..10) {
            0 | 1 => {
                world.space().begin();
                outer.push(model.clone());
            }
            2 | 3 if outer.len() > 1 => {
                world.space().end().unwrap();
                outer.pop();
            }
            4 | 5 if outer.len() > 1 => {
                world.space().roll_back().unwrap();
                model = outer.pop().unwrap();
                assert_eq!(list(world), model, "rolled back to the savepoint");
            }
            // A node more, at the end, which later stores of this region and of others change.
            6 => {
                let all = nodes(world);
                if let Some(&last) = all.last()
                    && all.len() < MOST
                    && world.load_ref(last, 24).is_null()
                {
                    let value = rng.random_range(0..1000);
                    let new = world.node(value, -value, Ref::NULL, Ref::NULL);
                    world.store_ref(last, 24, new);
                    model.push((value, -value));
                }
            }
            _ => {
                let all = nodes(world);
                if let Some(i) = (!all.is_empty()).then(|| rng.random_range(0..all.len())) {
                    let value = rng.random_range(0..1000);
                    world.store(all[i], 8, value);
                    model[i].0 = value;
                }
            }
        }
    }
    // Regions end as they do where a language's blocks end, or all at once as where a program ends.
    if rng.random_range(0..6) == 0 {
        world.space().roll_back_all().unwrap();
        model = outer.swap_remove(0);
    }
    while world.space().in_region() {
        let around = outer.pop().expect("a model for each region");
        match rng.random_range(0..3) {
            0 => {
                world.space().roll_back().unwrap();
                model = around;
            }
            _ => world.space().end().unwrap(),
        }
    }
    assert_eq!(list(world), model, "what the outermost region left");
}
