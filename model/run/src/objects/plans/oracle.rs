//! `oracle`: sites by their counts in this very run, which are not known before it.

use super::{By, Choose, PlanEntry, densest};
use crate::catalogue::LiveSupport;
use varve_sites::select::Candidate;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    advised: false,
    // On a machine the profile is the truth.
    live: LiveSupport::By("run --live --sites"),
    ..PlanEntry::new(
        "oracle",
        "the sites that cost most time in slow memory, by the truth of this very run: a bound of plans by site",
        |_| {
            Ok(By::Truth(Choose::new(|sites, budget| {
                let by_time: Vec<Candidate> = sites.iter().map(Candidate::by_time).collect();
                densest(&by_time, budget)
            })))
        },
    )
};
