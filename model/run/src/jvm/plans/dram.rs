//! `dram`: the bound that others are compared with.

use super::{By, LIVE, PlanEntry};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    advised: false,
    live: LIVE,
    ..PlanEntry::new(
        "dram",
        "all in fast memory, of which there is enough: the bound",
        |_| Ok(By::Fast),
    )
};
