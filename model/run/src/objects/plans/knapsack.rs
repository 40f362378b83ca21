//! `knapsack`: the whole sites with the largest total benefit (Olson et al.).

use super::{By, Choose, PlanEntry, quotas_of};
use crate::catalogue::LiveSupport;
use varve_sites::select;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Olson et al., TACO 2018",
    live: LiveSupport::By("run --live --sites"),
    ..PlanEntry::new(
        "knapsack",
        "the whole sites that together cost most time in slow memory and fit into fast memory",
        |_| {
            Ok(By::Sites(Choose::new(|sites, budget| {
                let chosen = select::knapsack(&select::by_worth(sites), budget);
                quotas_of(chosen, sites.len())
            })))
        },
    )
};
