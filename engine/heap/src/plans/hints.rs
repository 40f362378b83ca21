//! `hints`: sites are hot if the programmer marked them (A7).

use super::{BySite, Entry, Hot};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: criticality hints",
    colours: true,
    ..Entry::new(
        "hints",
        "sites that the programmer marked as critical in fast memory",
        |_, _| Ok(Box::new(BySite::new(ENTRY.name, Hot::Hinted))),
    )
};
