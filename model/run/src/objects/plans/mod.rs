//! Plans for the memory of native programs. Each is one file here, with its `ENTRY`; page policies are plans too.

mod arenas;
mod by_writes;
mod cgz_d;
mod cgz_f;
mod dram;
mod hints;
mod hot_sites;
mod knapsack;
mod oracle;
mod slow;
mod trays;

use super::layout::Quotas;
use crate::Error;
use crate::catalogue::{Catalogue, Chosen, Entry};
use std::fmt;
use std::sync::Arc;
use varve_sites::Counts;
use varve_sites::select::{self, Candidate};

/// Placement rule of a plan.
#[derive(Clone, Debug)]
pub enum By {
    /// All is in fast memory, of which there is enough.
    Fast,
    /// All is in slow memory.
    Slow,
    /// All is in fast memory, but laid out anew.
    Arenas,
    /// A page policy, `name:key=value,...`, on the pages that the program's own allocator fills.
    Pages(String),
    /// Allocation sites, chosen by their known counts.
    Sites(Choose),
    /// Allocation sites, chosen by their counts in this very run.
    Truth(Choose),
    /// Allocation sites as colours on the DIMMs of a machine with one memory: cold ones have at most this part of all misses.
    Colours(f64),
    /// What the program itself called hot or cold.
    Hints,
}

/// Chooses sites: from their counts and a budget, bytes, the fast memory that each may take, bytes.
#[derive(Clone)]
pub struct Choose(Arc<Chooses>);

type Chooses = dyn Fn(&[Counts], u64) -> Vec<u64> + Send + Sync;

impl fmt::Debug for Choose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choose")
    }
}

impl Choose {
    fn new(choose: impl Fn(&[Counts], u64) -> Vec<u64> + Send + Sync + 'static) -> Choose {
        Choose(Arc::new(choose))
    }

    /// The fast memory that each site may take, bytes, if all of them may take `budget`.
    pub fn quotas(&self, sites: &[Counts], budget: u64) -> Quotas {
        let bytes = (self.0)(sites, budget);
        Quotas { bytes }
    }
}

impl By {
    /// Whether it divides a budget of fast memory among sites.
    pub fn is_by_site(&self) -> bool {
        matches!(self, By::Sites(_) | By::Truth(_))
    }

    /// The quotas of a plan that goes by sites, by their `known` counts and their `truth` in this run; `None` for
    /// others.
    pub fn quotas(&self, known: &[Counts], truth: &[Counts], budget: u64) -> Option<Quotas> {
        match self {
            By::Sites(choose) => Some(choose.quotas(known, budget)),
            By::Truth(choose) => Some(choose.quotas(truth, budget)),
            By::Fast | By::Slow | By::Arenas | By::Pages(_) | By::Colours(_) | By::Hints => None,
        }
    }
}

/// The plan of this machine's programs where none is named.
pub const USUAL: &str = "hot-sites";

/// A plan that chooses sites, as placing objects on this machine wants it.
///
/// # Errors
/// There is no such plan, or it does not place by sites.
pub fn site_plan(spec: &str) -> Result<Plan, Error> {
    let plan = PLANS.find(spec)?;
    match plan.by.is_by_site() {
        true => Ok(plan),
        false => Err(Error::Asked(format!(
            "{spec}: does not go by allocation sites, which is how objects are placed here: take {USUAL} or knapsack"
        ))),
    }
}

/// All plans for native programs.
pub const PLANS: Catalogue<By> = Catalogue {
    kind: "plan for native programs",
    before: &[dram::ENTRY, slow::ENTRY],
    after: &[
        hot_sites::ENTRY,
        knapsack::ENTRY,
        cgz_f::ENTRY,
        cgz_d::ENTRY,
        oracle::ENTRY,
        hints::ENTRY,
        arenas::ENTRY,
        trays::ENTRY,
    ],
    pages: By::Pages,
};

/// A plan that was named.
pub type Plan = Chosen<By>;

type PlanEntry = Entry<By>;

/// Quotas of sites by number, each with its bytes.
fn quotas_of(chosen: Vec<(usize, u64)>, sites: usize) -> Vec<u64> {
    let mut quotas = vec![0; sites];
    for (site, bytes) in chosen {
        quotas[site] = bytes;
    }
    quotas
}

/// The candidates with the highest benefit per byte, until the budget is full.
fn densest(candidates: &[Candidate], budget: u64) -> Vec<u64> {
    quotas_of(select::hot_sites(candidates, budget), candidates.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(peak_bytes: u64, misses: u64) -> Counts {
        Counts {
            objects: 1,
            bytes: peak_bytes,
            peak_bytes,
            misses,
            write_misses: misses / 2,
            slow_ns: 2 * misses,
            fast_ns: misses,
            ..Counts::default()
        }
    }

    fn chosen(plan: &str, sites: &[Counts], budget: u64) -> Vec<u64> {
        let by = PLANS.find(plan).unwrap().by;
        by.quotas(sites, sites, budget).unwrap().bytes
    }

    #[test]
    fn every_plan_has_a_name_of_its_own() {
        let names = PLANS.names();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
            assert_eq!(PLANS.find(name).unwrap().name, *name);
        }
    }

    #[test]
    fn a_page_policy_keeps_its_parameters_and_refuses_others() {
        let plan = PLANS.find("hotset:sample-period=50").unwrap();
        assert!(matches!(&plan.by, By::Pages(spec) if spec == "hotset:sample-period=50"));
        let error = |spec: &str| PLANS.find(spec).unwrap_err().to_string();
        assert!(error("hotset:bogus=1").contains("no parameter `bogus`"));
        assert!(error("hotset:cool=x").contains("cool=x"));
        assert!(error("knapsak").contains("did you mean `knapsack`?"));
        assert!(error("dram:x=1").contains("no parameter `x`"));
        // It is about the bins of a cache, which such a machine has not.
        assert!(error("static").contains("no plan for native programs"));
    }

    #[test]
    fn a_site_that_does_not_fit_has_a_part() {
        let sites = [site(100, 10), site(1000, 900), site(50, 0)];
        assert_eq!(chosen("hot-sites", &sites, 500), [0, 500, 0]);
        assert_eq!(chosen("hot-sites", &sites, 1100), [100, 1000, 0]);
        // whole sites first
        assert_eq!(chosen("knapsack", &sites, 500), [100, 400, 0]);
    }

    proptest! {
        /// No plan gives more than there is, and none gives a site more than it has.
        #[test]
        fn the_budget_holds(
            all in prop::collection::vec((1u64..5000, 0u64..1000), 0..12), budget in 0u64..20_000
        ) {
            let sites: Vec<Counts> = all.iter().map(|&(bytes, misses)| site(bytes, misses)).collect();
            for entry in PLANS.own() {
                let by = PLANS.find(entry.name).unwrap().by;
                let Some(quotas) = by.quotas(&sites, &sites, budget) else { continue };
                prop_assert!(quotas.bytes.iter().sum::<u64>() <= budget, "{}", entry.name);
                for (quota, site) in quotas.bytes.iter().zip(&sites) {
                    prop_assert!(*quota <= site.peak_bytes);
                }
            }
        }
    }
}
