//! `arenas`: what another layout does, apart from placement.

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    advised: false,
    live: LiveSupport::No(
        "it shows what the allocator of `run --live --sites` does beside placement",
    ),
    ..PlanEntry::new(
        "arenas",
        "all in fast memory, objects anew in arenas by size: the layout's own effect",
        |_| Ok(By::Arenas),
    )
};
