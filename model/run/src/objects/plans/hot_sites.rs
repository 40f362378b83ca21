//! `hot-sites`: sites by the benefit of each of their bytes in fast memory (Olson et al.).

use super::{By, Choose, PlanEntry, densest};
use crate::catalogue::LiveSupport;
use varve_sites::select;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Olson et al., TACO 2018",
    live: LiveSupport::By("run --live --sites"),
    ..PlanEntry::new(
        "hot-sites",
        "sites that cost most time per byte in slow memory, until fast memory is full",
        |_| {
            Ok(By::Sites(Choose::new(|sites, budget| {
                densest(&select::by_worth(sites), budget)
            })))
        },
    )
};
