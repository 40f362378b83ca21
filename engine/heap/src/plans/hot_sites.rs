//! `hot-sites`: sites are hot by how many of their objects are among those accessed most (A6).

use super::{BySite, Entry, Hot};
use varve_sites::classify;
use varve_spec::{Param, Want};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021, section 5.3",
    profile: true,
    colours: true,
    params: &[
        Param::new(
            "top",
            Want::Part,
            "0.2",
            "the part of all objects that is hot (section 5.3)",
        ),
        Param::new(
            "homogeneity",
            Want::Part,
            "0.01",
            "the part of a site's objects that has to be hot (section 5.3)",
        ),
    ],
    ..Entry::new(
        "hot-sites",
        "sites with some of the objects that are accessed most in fast memory",
        |v, p| {
            let hot = classify::by_hot_objects(p, v.part("top"), v.part("homogeneity"));
            Ok(Box::new(BySite::new(ENTRY.name, Hot::Profiled(hot))))
        },
    )
};
