//! `slow`: everything in slow memory (A1, Optane-only), the collector's tables and compiled code too.

use crate::plan::{Object, Plan, Space, Tier};

/// Everything in slow memory.
#[derive(Clone, Copy, Debug)]
pub struct Slow;

impl Plan for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn nursery(&self) -> Tier {
        Tier::SLOW
    }

    fn metadata(&self) -> Tier {
        Tier::SLOW
    }

    fn code(&self) -> Tier {
        Tier::SLOW
    }

    fn place(&self, _: Object) -> Space {
        Space::Old(Tier::SLOW)
    }
}
