//! `slow-scan`: the nursery in slow memory, old objects in fast memory (A2, Optane-S). It shows what scanning the
//! nursery in slow memory costs: section 4.4 of the paper. All but old objects is as in `slow`.

use crate::plan::{Object, Plan, Space, Tier};

/// Only old objects in fast memory.
#[derive(Clone, Copy, Debug)]
pub struct SlowScan;

impl Plan for SlowScan {
    fn name(&self) -> &str {
        "slow-scan"
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
        Space::Old(Tier::FAST)
    }
}
