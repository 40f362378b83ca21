//! `slow`: all in slow memory.

use super::{LIVE, OUTSIDE, PlanEntry, generations};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Optane-only",
    params: &[OUTSIDE],
    live: LIVE,
    ..PlanEntry::new("slow", "all in slow memory", |values| {
        Ok(generations(values, false, false))
    })
};
