//! `dram`: the bound that others are compared with.

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    advised: false,
    live: LiveSupport::No("it needs no placing: run the program without varve"),
    ..PlanEntry::new(
        "dram",
        "all in fast memory, of which there is enough: the bound",
        |_| Ok(By::Fast),
    )
};
