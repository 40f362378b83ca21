//! `kg-n`: Kingsguard-nursery (A3). New objects in fast memory, survivors in slow memory.

use super::Entry;
use crate::plan::{Object, Plan, Space};
use crate::tier::Tier;

/// What there is to know of it.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Kingsguard-nursery",
    usual: true,
    ..Entry::new(
        "kg-n",
        "the nursery in fast memory, old objects in slow memory",
        |_, _| Ok(Box::new(KgN)),
    )
};

/// The nursery in fast memory, old objects in slow memory.
#[derive(Clone, Copy, Debug)]
pub struct KgN;

impl Plan for KgN {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn place(&self, _: Object) -> Space {
        Space::Old(Tier::SLOW)
    }
}
