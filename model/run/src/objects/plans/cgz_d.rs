//! `cgz-d`: sites whose bytes are written often (Crystal Gazer, by density).

use super::by_writes::written;
use super::{By, Choose, PlanEntry};
use crate::catalogue::LiveSupport;
use varve_sites::select::{THRESHOLD, cgz_d};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Crystal Gazer, CGZ-D1",
    live: LiveSupport::By("run --live --sites"),
    ..PlanEntry::new(
        "cgz-d",
        "sites whose bytes are written often in fast memory",
        |_| {
            Ok(By::Sites(Choose::new(|sites, budget| {
                written(sites, budget, &cgz_d(sites, THRESHOLD))
            })))
        },
    )
};
