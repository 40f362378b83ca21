//! `cgz-d`: sites are hot by writes per byte (A5, Crystal Gazer).

use super::{BySite, Entry, Hot, cgz_f};
use varve_sites::classify;
use varve_spec::Param;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Crystal Gazer, CGZ-D1",
    profile: true,
    params: &[THRESHOLD],
    ..Entry::new(
        "cgz-d",
        "sites whose bytes are written to often in fast memory",
        |v, p| {
            let hot = classify::by_density(p, v.number(THRESHOLD.key));
            Ok(Box::new(BySite::new(ENTRY.name, Hot::Profiled(hot))))
        },
    )
};

const THRESHOLD: Param = Param {
    about: "writes per surviving byte from which a site is hot (section 5.3)",
    ..cgz_f::THRESHOLD
};
