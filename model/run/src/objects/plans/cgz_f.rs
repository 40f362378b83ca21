//! `cgz-f`: sites whose objects are written often (Crystal Gazer, by frequency).

use super::by_writes::written;
use super::{By, Choose, PlanEntry};
use crate::catalogue::LiveSupport;
use varve_sites::select::{THRESHOLD, cgz_f};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: Crystal Gazer, CGZ-F1",
    live: LiveSupport::By("run --live --sites"),
    ..PlanEntry::new(
        "cgz-f",
        "sites whose objects are written often in fast memory",
        |_| {
            Ok(By::Sites(Choose::new(|sites, budget| {
                written(sites, budget, &cgz_f(sites, THRESHOLD))
            })))
        },
    )
};
