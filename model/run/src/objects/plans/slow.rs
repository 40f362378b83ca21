//! `slow`: no fast memory at all.

use super::{By, PlanEntry};
use crate::catalogue::Live;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    live: Live::No("numactl --membind does it"),
    ..PlanEntry::new("slow", "all in slow memory", |_| Ok(By::Slow))
};
