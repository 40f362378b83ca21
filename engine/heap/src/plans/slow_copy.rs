//! `slow-copy`: the nursery in fast memory, old objects in slow memory (A2, Optane-C). It shows the cost of copying to
//! slow memory costs: section 4.4 of the paper. All but the nursery is as in `slow`; with tables and code in fast
//! memory it would be `kg-n`.

use super::{Entry, Fixed};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-C",
    ..Entry::new("slow-copy", "all but the nursery in slow memory", |_, _| {
        Ok(Box::new(PLAN))
    })
};

/// Only the nursery in fast memory.
const PLAN: Fixed = Fixed {
    name: "slow-copy",
    nursery: Tier::FAST,
    tables: Tier::SLOW,
    old: Tier::SLOW,
};
