//! `kg-n`: Kingsguard-nursery (A3). New objects in fast memory, survivors in slow memory.

use super::{Entry, Fixed};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Kingsguard-nursery",
    usual: true,
    ..Entry::new(
        "kg-n",
        "the nursery in fast memory, old objects in slow memory",
        |_, _| Ok(Box::new(PLAN)),
    )
};

/// The nursery in fast memory, old objects in slow memory.
const PLAN: Fixed = Fixed {
    name: "kg-n",
    nursery: Tier::FAST,
    tables: Tier::FAST,
    old: Tier::SLOW,
};
