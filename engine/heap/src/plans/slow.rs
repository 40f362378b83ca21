//! `slow`: everything in slow memory (A1, Optane-only), the collector's tables and compiled code too.

use super::{Entry, Fixed};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-only",
    usual: true,
    ..Entry::new(
        "slow",
        "everything in slow memory, code and tables too",
        |_, _| Ok(Box::new(PLAN)),
    )
};

/// Everything in slow memory.
const PLAN: Fixed = Fixed {
    name: "slow",
    nursery: Tier::SLOW,
    tables: Tier::SLOW,
    old: Tier::SLOW,
};
