//! `trays`: hot and cold sites on different DIMMs of a machine with one memory (Olson et al., TACO 2018, sections 7.1 and 8.2).

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;
use varve_spec::{Param, Want};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Olson et al., TACO 2018, sections 7.1 and 8.2",
    params: &[Param::new(
        "capacity",
        Want::Part,
        "0.05",
        "the part of all misses that cold sites may have together: the paper tries 0.01 to 0.2",
    )],
    live: LiveSupport::No("no allocator of this machine chooses DIMMs"),
    ..PlanEntry::new(
        "trays",
        "hot sites on few DIMMs and cold ones packed on others, which sleep",
        |values| match values.part("capacity") {
            capacity if capacity > 0.0 => Ok(By::Colours(capacity)),
            _ => Err(values.refuse("capacity", "must be above 0")),
        },
    )
};

#[cfg(test)]
mod tests {
    use super::super::{By, PLANS};

    #[test]
    fn a_capacity_is_a_part_of_all_misses() {
        let capacity = |spec: &str| match PLANS.find(spec).unwrap().by {
            By::Colours(capacity) => capacity,
            other => panic!("{other:?}"),
        };
        assert_eq!(capacity("trays"), 0.05);
        assert_eq!(capacity("trays:capacity=20%"), 0.2);
        for wrong in ["trays:capacity=0", "trays:capacity=2", "trays:cap=1"] {
            let said = PLANS.find(wrong).unwrap_err().to_string();
            assert!(said.contains("`trays`"), "{said}");
        }
    }
}
