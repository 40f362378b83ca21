//! `sampled`: objects of warm types in fast memory, the others in slow memory, by samples of what runs (B3).
//!
//! An object that is born outside of the nursery, or leaves it, is hot if the method that it was born in, or its type, is; when everything
//! is collected, objects are placed anew by their types. The nursery itself is hot: it is written from end to end again and again,
//! whatever is born there, and a cold half of it would keep a cold DIMM awake. What is warm is found out in `warm.rs`; that it counts in place of the bit in an object's
//! header is done by the table of answers, which looks it up when [`Plan::warmth`] is there.

use std::sync::Arc;

use crate::plan::{Object, Plan, Space, Tier};
use crate::warm::{WarmSettings, Warmth};

/// By what runs.
pub struct Stacks {
    warmth: Arc<Warmth>,
}

impl Stacks {
    /// With a sampler that works so.
    pub fn new(settings: WarmSettings) -> Stacks {
        Stacks {
            warmth: Warmth::new(settings),
        }
    }
}

impl Plan for Stacks {
    fn name(&self) -> &str {
        "sampled"
    }

    fn place(&self, o: Object) -> Space {
        Space::Old(if o.hot { Tier::FAST } else { Tier::SLOW })
    }

    fn warmth(&self) -> Option<&Arc<Warmth>> {
        Some(&self.warmth)
    }
}
