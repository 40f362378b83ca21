//! `slow-copy`: the nursery in fast memory, old objects in slow memory (A2, Optane-C). It shows what copying to slow
//! memory costs: section 4.4 of the paper. All but the nursery is as in `slow`; with tables and code in fast memory
//! it would be `kg-n`.

use super::Entry;
use crate::plan::{Object, Plan, Space};
use crate::tier::Tier;

/// What there is to know of it.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Optane-C",
    ..Entry::new("slow-copy", "all but the nursery in slow memory", |_, _| {
        Ok(Box::new(SlowCopy))
    })
};

/// Only the nursery in fast memory.
#[derive(Clone, Copy, Debug)]
pub struct SlowCopy;

impl Plan for SlowCopy {
    fn name(&self) -> &str {
        ENTRY.name
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
