//! `slow-copy`: another name of kg-n.

use super::{LIVE, OUTSIDE, PlanEntry, generations};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Optane-C",
    params: &[OUTSIDE],
    live: LIVE,
    alias: Some("kg-n"),
    ..PlanEntry::new("slow-copy", "another name of kg-n", |values| {
        Ok(generations(values, true, false))
    })
};
