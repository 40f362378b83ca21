//! Every placement plan by name. Each is one file here, with its [`Entry`].
//!
//! ```
//! let plan = varve_heap::plans::by_name("pima:alpha=2,hold-off=10s", None)?;
//! assert_eq!(plan.plan.name(), "pima");
//! let error = varve_heap::plans::by_name("kg-m", None).err().unwrap();
//! assert!(error.to_string().contains("did you mean `kg-n`?"));
//! # Ok::<(), varve_heap::plans::PlanError>(())
//! ```

mod by_site;
pub mod cgz_d;
pub mod cgz_f;
pub mod cgz_pima;
pub mod dram;
mod entry;
pub mod first_touch;
mod fixed;
pub mod hints;
pub mod hints_pima;
pub mod hot_sites;
pub mod kg_n;
pub mod kg_w;
pub mod knapsack;
pub mod pima;
pub mod sampled;
pub mod slow;
pub mod slow_copy;
pub mod slow_scan;

pub use by_site::{BySite, Hot};
pub use entry::{CODE, Chosen, Entry, Make, PlanError};
pub use fixed::Fixed;

use entry::KIND;
use varve_sites::Profile;

/// All plans, in the order of the papers.
const ENTRIES: &[Entry] = &[
    dram::ENTRY,
    slow::ENTRY,
    first_touch::ENTRY,
    slow_scan::ENTRY,
    slow_copy::ENTRY,
    kg_n::ENTRY,
    kg_w::ENTRY,
    cgz_f::ENTRY,
    cgz_d::ENTRY,
    hot_sites::ENTRY,
    knapsack::ENTRY,
    sampled::ENTRY,
    hints::ENTRY,
    pima::ENTRY,
    hints_pima::ENTRY,
    cgz_pima::ENTRY,
];

/// All plans, in the order of the papers.
pub fn plans() -> &'static [Entry] {
    ENTRIES
}

/// The entry of a plan, by `name` or `name:key=value,...`.
///
/// # Errors
/// If there is none; the nearest name is suggested.
pub fn entry(spec: &str) -> Result<&'static Entry, PlanError> {
    Ok(varve_spec::find(KIND, spec, plans(), |entry| entry.name)?)
}

/// Makes the plan that `name` or `name:key=value,...` says, with the profile of the program's allocation sites if
/// there is one.
///
/// # Errors
/// If the name, a parameter or its value is wrong, or a profile is needed.
pub fn by_name(spec: &str, profile: Option<&Profile>) -> Result<Chosen, PlanError> {
    entry(spec)?.make(varve_spec::split(spec).1, profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Object, Origin, Site, Space};
    use crate::sampler::Sampler;
    use varve_pima::Tier;
    use varve_sites::Key;

    #[test]
    fn every_plan_is_found_by_its_name_and_knows_it() {
        let profile = Profile::default();
        for entry in plans() {
            let made = by_name(entry.name, Some(&profile)).unwrap();
            assert_eq!(made.plan.name(), entry.name);
            let told = made.plan.sampler().and_then(Sampler::intervals);
            assert_eq!(told.is_some(), entry.intervals);
            assert!((1..=2).contains(&made.plan.tiers()), "{}", entry.name);
            assert_eq!(by_name(entry.name, None).is_err(), entry.profile);
            for param in entry.params.iter().chain([&CODE]) {
                let spec = format!("{}:{}={}", entry.name, param.key, param.default);
                assert!(by_name(&spec, Some(&profile)).is_ok(), "{spec}");
                let wrong = format!("{}:{}=?", entry.name, param.key);
                let error = by_name(&wrong, Some(&profile)).err().unwrap().to_string();
                assert!(
                    error.contains(&format!("`{}=?`: must be", param.key)),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let says = |spec: &str| by_name(spec, None).err().unwrap().to_string();
        assert!(says("kgn").contains("no heap plan is called `kgn`"));
        assert!(says("kgn").ends_with("(did you mean `kg-n`?)"));
        assert!(says("pmia").ends_with("(did you mean `pima`?)"));
        assert!(!says("immortal-objects").contains("did you mean"));
        assert!(says("cgz-f").contains("needs a site profile"));
        assert!(says("kg-n:alpha=2").contains("no parameter `alpha`; it takes code"));
        assert!(says("pima:alpha=2,alpha=2").contains("given twice"));
        assert!(says("pima:alpha=0.5").contains("must be at least 1"));
        assert!(says("pima:intervals=0").contains("must be a whole number from 1 on"));
        assert!(says("pima:hold-off=50").contains("`hold-off=50` has no unit: write 50s or 50ms"));
        assert!(
            says("knapsack:capacity=five")
                .contains("must be a part from 0 to 1, such as 0.05 or 5%")
        );
        let profiled = |spec: &str| by_name(spec, Some(&Profile::default()));
        assert!(profiled("knapsack:capacity=5%").is_ok());
        for wrong in ["101%", "1.01"] {
            let error = profiled(&format!("knapsack:capacity={wrong}"))
                .err()
                .unwrap();
            assert!(error.to_string().contains("must be a part"), "{error}");
        }
        for wrong in ["0%", "0"] {
            let error = profiled(&format!("knapsack:capacity={wrong}"))
                .err()
                .unwrap();
            assert!(
                error.to_string().contains("above 0 and at most 1"),
                "{error}"
            );
        }
    }

    #[test]
    fn code_is_where_the_user_wants_it() {
        let code = |spec| by_name(spec, None).unwrap().code;
        assert_eq!(code("dram"), Tier::FAST);
        assert_eq!(code("slow"), Tier::SLOW);
        assert_eq!(code("slow:code=fast"), Tier::FAST);
        assert_eq!(code("kg-n"), Tier::FAST);
        assert_eq!(code("kg-n:code=slow"), Tier::SLOW);
    }

    /// The tables of systems in the papers.
    #[test]
    fn plans_place_as_their_paper_says() {
        let key = Key::default();
        let object = |from, hot, written| Object {
            from,
            large: false,
            hot,
            written,
            colour: 0,
        };
        let (fast, slow) = (Space::Old(Tier::FAST), Space::Old(Tier::SLOW));
        let profile = Profile::default();
        for (name, nursery, cold, hot) in [
            ("dram", Tier::FAST, fast, fast),
            ("slow", Tier::SLOW, slow, slow),
            ("first-touch", Tier::FAST, fast, fast),
            ("slow-scan", Tier::SLOW, fast, fast),
            ("slow-copy", Tier::FAST, slow, slow),
            ("kg-n", Tier::FAST, slow, slow),
            ("kg-w", Tier::FAST, Space::Observer, Space::Observer),
            ("cgz-f", Tier::FAST, slow, fast),
            ("cgz-d", Tier::FAST, slow, fast),
            ("hot-sites", Tier::FAST, slow, fast),
            ("knapsack", Tier::FAST, slow, fast),
            ("sampled", Tier::FAST, slow, fast),
            ("hints", Tier::FAST, slow, fast),
            ("pima", Tier::FAST, slow, slow),
            ("hints+pima", Tier::FAST, slow, slow),
            ("cgz+pima", Tier::FAST, slow, slow),
        ] {
            let plan = by_name(name, Some(&profile)).unwrap().plan;
            assert_eq!(plan.nursery(), nursery, "{name}");
            let survivors =
                [false, true].map(|hot| plan.place(object(Origin::Nursery, hot, false)));
            assert_eq!(survivors, [cold, hot], "{name}");
            let hinted = [false, true].map(|hinted| plan.is_hot(Site { key: &key, hinted }));
            let unknown = name == "knapsack";
            assert_eq!(
                hinted,
                [unknown, unknown || name.starts_with("hints")],
                "{name}"
            );
        }
        let kg_w = by_name("kg-w", None).unwrap().plan;
        let sorted =
            [false, true].map(|written| kg_w.place(object(Origin::Observer, false, written)));
        assert_eq!(sorted, [slow, fast]);
        let first_touch = by_name("first-touch", None).unwrap().plan;
        let stays = [Tier::FAST, Tier::SLOW]
            .map(|tier| first_touch.place(object(Origin::Old(tier), false, false)));
        assert_eq!(stays, [fast, slow]);
    }
}
