//! `sampled`: objects of warm types in fast memory, the others in slow memory, by samples of the running method (B3).
//!
//! An object that is born outside of the nursery, or leaves it, is hot if the method that it was born in, or its type, is; when everything
//! is collected, objects are placed anew by their types. The nursery itself is hot: it is written from end to end again and again,
//! whatever is born there, and a cold half of it would keep a cold DIMM awake. `warm.rs` determines which methods and types are warm. If
//! [`Plan::sampler`] provides that, the table of answers uses it in place of the bit in an object's header.

use std::sync::Arc;

use super::Entry;
use crate::plan::{Object, Plan, Space};
use crate::sampler::Sampler;
use crate::warm::{WarmSettings, Warmth};
use varve_pima::Tier;
use varve_spec::{Param, Want};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Olson et al., TACO 2018, section 7.1.2",
    colours: true,
    params: &[
        Param::new(
            "interval",
            Want::Time,
            "1ms",
            "time between two samples of the running method, 0s for none: the paper tries 0s and 10us to 1s, and finds 1ms best for small loads",
        ),
        Param::new(
            "cool",
            Want::Time,
            "100ms",
            "methods and types that were not sampled for so long are cold (section 8.2: 0.1 s)",
        ),
    ],
    ..Entry::new(
        "sampled",
        "objects of types that running methods touch in fast memory, others in slow memory, found by sampling the running method",
        |v, _| {
            let (interval, cool) = (v.time("interval"), v.time("cool"));
            if cool.is_zero() {
                let refused = v.refuse("cool", "must be a time above 0, such as 100ms");
                return Err(refused.into());
            }
            Ok(Box::new(Stacks::new(WarmSettings { interval, cool })))
        },
    )
};

/// By the running methods.
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
        ENTRY.name
    }

    fn place(&self, o: Object) -> Space {
        Space::Old(if o.hot { Tier::FAST } else { Tier::SLOW })
    }

    fn sampler(&self) -> Option<Sampler<'_>> {
        Some(Sampler::Stacks(&self.warmth))
    }
}
