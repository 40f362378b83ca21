//! `slow-scan`: the nursery in slow memory, old objects in fast memory (A2, Optane-S). It shows what scanning the
//! nursery in slow memory costs: section 4.4 of the paper. All but old objects is as in `slow`.

use super::Entry;
use crate::plan::{Object, Plan, Space};
use crate::tier::Tier;

/// What there is to know of it.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-S",
    ..Entry::new("slow-scan", "all but old objects in slow memory", |_, _| {
        Ok(Box::new(SlowScan))
    })
};

/// Only old objects in fast memory.
#[derive(Clone, Copy, Debug)]
pub struct SlowScan;

impl Plan for SlowScan {
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
        Space::Old(Tier::FAST)
    }
}
