//! `knapsack`: the sites in slow memory are those that take most bytes for a part of all accesses (B2).

use super::{BySite, Entry, Hot};
use varve_sites::classify;
use varve_spec::{Param, Want};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Olson et al., TACO 2018, section 7.1",
    profile: true,
    colours: true,
    params: &[Param::new(
        "capacity",
        Want::Part,
        "0.05",
        "the part of all accesses that slow sites may have together: the paper tries 0.01 to 0.2",
    )],
    ..Entry::new(
        "knapsack",
        "sites in slow memory that take most bytes for a part of all accesses, others in fast memory",
        |v, p| {
            let cold = classify::cold_by_knapsack(p, v.part("capacity"))?;
            Ok(Box::new(BySite::new(ENTRY.name, Hot::AllBut(cold))))
        },
    )
};
