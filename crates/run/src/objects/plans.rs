//! Plans for the memory of native programs: who is in fast memory, if there is only so much of it.

use super::colours;
use super::layout::Quotas;
use varve_sites::Counts;
use varve_sites::select::{self, Candidate};
use varve_spec::Param;

/// What a plan goes by.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// All is in fast memory, of which there is enough.
    Fast,
    /// All is in slow memory.
    Slow,
    /// A page policy of this name, on the pages that the program's own allocator fills.
    Pages(&'static str),
    /// Allocation sites, chosen by what is known of them.
    Sites(fn(&[Counts], u64) -> Vec<u64>),
    /// Allocation sites, chosen by what this very run shows.
    Truth,
    /// Allocation sites as colours on the DIMMs of a machine with one memory.
    Colours,
}

/// A plan.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// What it does, in half a line.
    pub about: &'static str,
    /// What it goes by.
    pub by: By,
    /// Whether somebody could do this on a real machine, so that it may be advised.
    pub real: bool,
    /// What there is to set.
    pub params: &'static [Param],
}

/// All plans, the simplest first.
pub const PLANS: &[Plan] = &[
    Plan {
        name: "dram",
        about: "all in fast memory, of which there is enough: the bound",
        by: By::Fast,
        real: false,
        params: &[],
    },
    Plan {
        name: "slow",
        about: "all in slow memory",
        by: By::Slow,
        real: true,
        params: &[],
    },
    Plan {
        name: "first-touch",
        about: "pages in fast memory until it is full (Linux)",
        by: By::Pages("first-touch"),
        real: true,
        params: &[],
    },
    Plan {
        name: "interleave",
        about: "pages in turns in both memories (Linux)",
        by: By::Pages("interleave"),
        real: true,
        params: &[],
    },
    Plan {
        name: "hotset",
        about: "hot pages move to fast memory while the program runs (HeMem)",
        by: By::Pages("hotset"),
        real: true,
        params: &[],
    },
    Plan {
        name: "hot-sites",
        about: "sites that cost most time per byte in slow memory, until fast memory is full",
        by: By::Sites(hot_sites),
        real: true,
        params: &[],
    },
    Plan {
        name: "knapsack",
        about: "the whole sites that together cost most time in slow memory and fit into fast memory",
        by: By::Sites(knapsack),
        real: true,
        params: &[],
    },
    Plan {
        name: "cgz-f",
        about: "sites whose objects are written often in fast memory (Crystal Gazer, by frequency)",
        by: By::Sites(by_frequency),
        real: true,
        params: &[],
    },
    Plan {
        name: "cgz-d",
        about: "sites whose bytes are written often in fast memory (Crystal Gazer, by density)",
        by: By::Sites(by_density),
        real: true,
        params: &[],
    },
    Plan {
        name: "oracle",
        about: "the sites that cost most time in slow memory, by the truth of this very run: a bound",
        by: By::Truth,
        real: false,
        params: &[],
    },
    Plan {
        name: "trays",
        about: "hot sites on few DIMMs and cold ones packed on others, which sleep (Olson et al., by knapsack)",
        by: By::Colours,
        real: true,
        params: colours::PARAMS,
    },
];

/// A plan by name, whatever is set after it.
pub fn plan(name: &str) -> Option<&'static Plan> {
    let (name, _) = varve_spec::split(name);
    PLANS.iter().find(|plan| plan.name == name)
}

/// Quotas of sites by number, each with its bytes.
fn quotas_of(chosen: Vec<(usize, u64)>, sites: usize) -> Vec<u64> {
    let mut quotas = vec![0; sites];
    for (site, bytes) in chosen {
        quotas[site] = bytes;
    }
    quotas
}

fn hot_sites(sites: &[Counts], budget: u64) -> Vec<u64> {
    quotas_of(
        select::hot_sites(&select::by_worth(sites), budget),
        sites.len(),
    )
}

fn knapsack(sites: &[Counts], budget: u64) -> Vec<u64> {
    quotas_of(
        select::knapsack(&select::by_worth(sites), budget),
        sites.len(),
    )
}

fn by_frequency(sites: &[Counts], budget: u64) -> Vec<u64> {
    written(sites, budget, &select::cgz_f(sites, select::THRESHOLD))
}

fn by_density(sites: &[Counts], budget: u64) -> Vec<u64> {
    written(sites, budget, &select::cgz_d(sites, select::THRESHOLD))
}

/// All of the sites that are written, those with most write misses for each byte first, until the budget is full.
fn written(sites: &[Counts], budget: u64, chosen: &[usize]) -> Vec<u64> {
    let of = |&site: &usize| Candidate {
        value: sites[site].write_misses,
        peak_bytes: sites[site].peak_bytes,
    };
    let candidates: Vec<Candidate> = chosen.iter().map(of).collect();
    let fits = select::hot_sites(&candidates, budget);
    let fits = fits.into_iter().map(|(at, bytes)| (chosen[at], bytes));
    quotas_of(fits.collect(), sites.len())
}

fn oracle(sites: &[Counts], budget: u64) -> Vec<u64> {
    let candidates: Vec<Candidate> = sites.iter().map(Candidate::by_time).collect();
    quotas_of(select::hot_sites(&candidates, budget), sites.len())
}

/// The quotas of a plan that goes by sites, by what is `known` of them and by the `truth` of this run; `None` for others.
pub fn quotas(plan: &Plan, known: &[Counts], truth: &[Counts], budget: u64) -> Option<Quotas> {
    let bytes = match plan.by {
        By::Sites(choose) => choose(known, budget),
        By::Truth => oracle(truth, budget),
        By::Fast | By::Slow | By::Pages(_) | By::Colours => return None,
    };
    Some(Quotas { bytes })
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

    #[test]
    fn every_plan_has_a_name_of_its_own() {
        for (i, one) in PLANS.iter().enumerate() {
            assert!(PLANS[..i].iter().all(|other| other.name != one.name));
            assert_eq!(plan(one.name).unwrap().about, one.about);
        }
    }

    #[test]
    fn a_site_that_does_not_fit_has_a_part() {
        let sites = [site(100, 10), site(1000, 900), site(50, 0)];
        assert_eq!(hot_sites(&sites, 500), [0, 500, 0]);
        assert_eq!(hot_sites(&sites, 1100), [100, 1000, 0]);
        // whole sites first
        assert_eq!(knapsack(&sites, 500), [100, 400, 0]);
    }

    proptest! {
        /// No plan gives more than there is, and none gives a site more than it has.
        #[test]
        fn the_budget_holds(
            all in prop::collection::vec((1u64..5000, 0u64..1000), 0..12), budget in 0u64..20_000
        ) {
            let sites: Vec<Counts> = all.iter().map(|&(bytes, misses)| site(bytes, misses)).collect();
            for plan in PLANS {
                let Some(quotas) = quotas(plan, &sites, &sites, budget) else { continue };
                prop_assert!(quotas.bytes.iter().sum::<u64>() <= budget, "{}", plan.name);
                for (quota, site) in quotas.bytes.iter().zip(&sites) {
                    prop_assert!(*quota <= site.peak_bytes);
                }
            }
        }
    }
}
