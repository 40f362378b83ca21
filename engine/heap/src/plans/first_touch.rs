//! `first-touch`: the default policy of Linux. Memory is fast until there is no more of it, then slow, and pages stay where they are.

use super::Entry;
use crate::plan::{Object, Origin, Plan, Space};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Linux's default policy: set_mempolicy(2), MPOL_DEFAULT",
    usual: true,
    ..Entry::new(
        "first-touch",
        "everything in fast memory until it is full, then in slow memory; nothing moves",
        |_, _| Ok(Box::new(FirstTouch)),
    )
};

/// Fast memory as long as there is some, then slow memory.
#[derive(Clone, Copy, Debug)]
pub struct FirstTouch;

impl Plan for FirstTouch {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn place(&self, object: Object) -> Space {
        match object.from {
            Origin::Old(tier) => Space::Old(tier),
            _ => Space::Old(Tier::FAST),
        }
    }
}
