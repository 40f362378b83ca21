//! `hints`: memory to which the program itself gave a color (`varve.h`).

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Olson et al., TACO 2018, section 4.1",
    live: LiveSupport::By("run --live --plan hints"),
    ..PlanEntry::new(
        "hints",
        "what the program itself calls hot in fast memory (varve.h), all else in slow memory; on DIMMs its cold memory apart",
        |_| Ok(By::Hints),
    )
};
