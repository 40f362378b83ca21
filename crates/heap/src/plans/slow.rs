//! `slow`: everything in slow memory (A1, Optane-only), the collector's tables and compiled code too.

use super::Entry;
use crate::plan::{Object, Plan, Space};
use crate::tier::Tier;

/// What there is to know of it.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-only",
    usual: true,
    ..Entry::new(
        "slow",
        "everything in slow memory, code and tables too",
        |_, _| Ok(Box::new(Slow)),
    )
};

/// Everything in slow memory.
#[derive(Clone, Copy, Debug)]
pub struct Slow;

impl Plan for Slow {
    fn name(&self) -> &str {
        ENTRY.name
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
