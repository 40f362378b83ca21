//! `slow`: no fast memory at all.

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    live: LiveSupport::No("numactl --membind does it"),
    ..PlanEntry::new("slow", "all in slow memory", |_| Ok(By::Slow))
};
