//! `kg-n`: Kingsguard-nursery (A3). New objects in fast memory, survivors in slow memory.

use crate::plan::{Object, Plan, Space, Tier};

/// The nursery in fast memory, old objects in slow memory.
#[derive(Clone, Copy, Debug)]
pub struct KgN;

impl Plan for KgN {
    fn name(&self) -> &str {
        "kg-n"
    }

    fn place(&self, _: Object) -> Space {
        Space::Old(Tier::SLOW)
    }
}
