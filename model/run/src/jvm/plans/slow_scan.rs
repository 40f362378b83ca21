//! `slow-scan`: the old generation in fast memory, the young one in slow memory.

use super::{LIVE, OUTSIDE, PlanEntry, generations};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Optane-S",
    params: &[OUTSIDE],
    live: LIVE,
    ..PlanEntry::new(
        "slow-scan",
        "the old generation in fast memory, the young one in slow memory",
        |values| Ok(generations(values, false, true)),
    )
};
