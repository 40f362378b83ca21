//! `kg-n`: the young generation in fast memory, the old one in slow memory (Kingsguard-nursery).

use super::{LIVE, OUTSIDE, PlanEntry, generations};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Kingsguard-nursery",
    params: &[OUTSIDE],
    live: LIVE,
    ..PlanEntry::new(
        "kg-n",
        "the young generation in fast memory, the old one in slow memory",
        |values| Ok(generations(values, true, false)),
    )
};
