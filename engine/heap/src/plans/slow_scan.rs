//! `slow-scan`: the nursery in slow memory, old objects in fast memory (A2, Optane-S). It shows the cost of scanning
//! the nursery in slow memory costs: section 4.4 of the paper. All but old objects is as in `slow`.

use super::{Entry, Fixed};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-S",
    ..Entry::new("slow-scan", "all but old objects in slow memory", |_, _| {
        Ok(Box::new(PLAN))
    })
};

/// Only old objects in fast memory.
const PLAN: Fixed = Fixed {
    name: "slow-scan",
    nursery: Tier::SLOW,
    tables: Tier::SLOW,
    old: Tier::FAST,
};
