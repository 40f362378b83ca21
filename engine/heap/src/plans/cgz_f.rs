//! `cgz-f`: sites are hot by writes per object (A5, Crystal Gazer).

use super::{BySite, Entry, Hot};
use varve_sites::classify;
use varve_spec::{Param, Want};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Crystal Gazer, CGZ-F1",
    usual: true,
    profile: true,
    params: &[THRESHOLD],
    ..Entry::new(
        "cgz-f",
        "sites whose objects are written to often in fast memory",
        |v, p| {
            let hot = classify::by_frequency(p, v.number(THRESHOLD.key));
            Ok(Box::new(BySite::new(ENTRY.name, Hot::Profiled(hot))))
        },
    )
};

/// From how many writes on a site is hot.
pub(super) const THRESHOLD: Param = Param::new(
    "threshold",
    Want::Number,
    "1",
    "writes per surviving object from which a site is hot (section 5.3)",
);
