//! Plans for the memory of native programs: who is in fast memory, if there is only so much of it.

use super::layout::Quotas;
use varve_sites::knapsack::{Item, solve};

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
    Sites(fn(&[Worth], u64) -> Vec<u64>),
    /// Allocation sites, chosen by what this very run shows.
    Truth,
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
}

/// All plans, the simplest first.
pub const PLANS: &[Plan] = &[
    Plan {
        name: "dram",
        about: "all in fast memory, of which there is enough: the bound",
        by: By::Fast,
        real: false,
    },
    Plan {
        name: "slow",
        about: "all in slow memory",
        by: By::Slow,
        real: true,
    },
    Plan {
        name: "first-touch",
        about: "pages in fast memory until it is full (Linux)",
        by: By::Pages("first-touch"),
        real: true,
    },
    Plan {
        name: "interleave",
        about: "pages in turns in both memories (Linux)",
        by: By::Pages("interleave"),
        real: true,
    },
    Plan {
        name: "hotset",
        about: "hot pages move to fast memory while the program runs (HeMem)",
        by: By::Pages("hotset"),
        real: true,
    },
    Plan {
        name: "hot-sites",
        about: "sites with most misses per byte in fast memory, until it is full",
        by: By::Sites(hot_sites),
        real: true,
    },
    Plan {
        name: "knapsack",
        about: "the sites that together have most misses and fit into fast memory",
        by: By::Sites(knapsack),
        real: true,
    },
    Plan {
        name: "cgz-f",
        about: "sites whose objects are written often in fast memory (Crystal Gazer, by frequency)",
        by: By::Sites(by_frequency),
        real: true,
    },
    Plan {
        name: "cgz-d",
        about: "sites whose bytes are written often in fast memory (Crystal Gazer, by density)",
        by: By::Sites(by_density),
        real: true,
    },
    Plan {
        name: "oracle",
        about: "the sites that cost most time in slow memory, by the truth of this very run: a bound",
        by: By::Truth,
        real: false,
    },
];

/// A plan by name.
pub fn plan(name: &str) -> Option<&'static Plan> {
    PLANS.iter().find(|plan| plan.name == name)
}

/// What is known of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// Objects that were allocated.
    pub objects: u64,
    /// The most bytes of them at a time.
    pub peak_bytes: u64,
    /// Loads that missed all caches.
    pub misses: u64,
    /// Stores that missed all caches.
    pub store_misses: u64,
    /// Time that threads wait for its memory if that is slow, less what they wait if it is fast, ns.
    pub costs_ns: f64,
}

/// Sites one after the other, the best first by `value` for each byte, until `budget` bytes are full. The last one has a part.
/// Sites without value have none.
fn by_value_per_byte(sites: &[Worth], budget: u64, value: impl Fn(&Worth) -> f64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..sites.len())
        .filter(|&i| value(&sites[i]) > 0.0)
        .collect();
    let density = |i: usize| value(&sites[i]) / sites[i].peak_bytes.max(1) as f64;
    order.sort_by(|&a, &b| density(b).total_cmp(&density(a)));
    let mut quotas = vec![0; sites.len()];
    let mut left = budget;
    for i in order {
        quotas[i] = sites[i].peak_bytes.min(left);
        left -= quotas[i];
    }
    quotas
}

fn misses(site: &Worth) -> u64 {
    site.misses + site.store_misses
}

fn hot_sites(sites: &[Worth], budget: u64) -> Vec<u64> {
    by_value_per_byte(sites, budget, |site| misses(site) as f64)
}

/// The best whole sites; what is left then goes to the one that is best for it, in part.
fn knapsack(sites: &[Worth], budget: u64) -> Vec<u64> {
    let item = |site: &Worth| Item {
        value: misses(site),
        weight: site.peak_bytes,
    };
    let items: Vec<Item> = sites.iter().map(item).collect();
    let mut quotas = vec![0; sites.len()];
    let mut left = budget;
    for i in solve(&items, budget) {
        quotas[i] = sites[i].peak_bytes;
        left -= quotas[i];
    }
    let rest: Vec<Worth> = sites
        .iter()
        .zip(&quotas)
        .map(|(site, &quota)| match quota {
            0 => *site,
            _ => Worth::default(),
        })
        .collect();
    let part = hot_sites(&rest, left);
    quotas.iter_mut().zip(part).for_each(|(q, p)| *q += p);
    quotas
}

/// Sites whose objects are written more often than objects are on average.
fn by_frequency(sites: &[Worth], budget: u64) -> Vec<u64> {
    above_average(sites, budget, |site| site.objects)
}

/// Sites whose bytes are written more often than bytes are on average.
fn by_density(sites: &[Worth], budget: u64) -> Vec<u64> {
    above_average(sites, budget, |site| site.peak_bytes)
}

fn above_average(sites: &[Worth], budget: u64, of: impl Fn(&Worth) -> u64) -> Vec<u64> {
    let writes: u64 = sites.iter().map(|site| site.store_misses).sum();
    let all: u64 = sites.iter().map(&of).sum();
    let share = |site: &Worth| site.store_misses as f64 / of(site).max(1) as f64;
    let mean = writes as f64 / all.max(1) as f64;
    let value = |site: &Worth| match share(site) > mean {
        true => share(site) * site.peak_bytes as f64,
        false => 0.0,
    };
    by_value_per_byte(sites, budget, value)
}

/// The quotas of a plan that goes by sites; `None` for others.
pub fn quotas(plan: &Plan, known: &[Worth], truth: &[Worth], budget: u64) -> Option<Quotas> {
    let bytes = match plan.by {
        By::Sites(choose) => choose(known, budget),
        By::Truth => by_value_per_byte(truth, budget, |site| site.costs_ns),
        By::Fast | By::Slow | By::Pages(_) => return None,
    };
    Some(Quotas { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(peak_bytes: u64, misses: u64) -> Worth {
        Worth {
            objects: 1,
            peak_bytes,
            misses,
            store_misses: misses / 2,
            costs_ns: misses as f64,
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
        /// No plan gives more than there is, and none gives a site more than it has; more room is never worse.
        #[test]
        fn the_budget_holds(
            all in prop::collection::vec((1u64..5000, 0u64..1000), 0..12), budget in 0u64..20_000
        ) {
            let sites: Vec<Worth> = all.iter().map(|&(bytes, misses)| site(bytes, misses)).collect();
            for plan in PLANS {
                let Some(quotas) = quotas(plan, &sites, &sites, budget) else { continue };
                prop_assert!(quotas.bytes.iter().sum::<u64>() <= budget, "{}", plan.name);
                for (quota, site) in quotas.bytes.iter().zip(&sites) {
                    prop_assert!(*quota <= site.peak_bytes);
                }
            }
        }

        /// A choice in parts is at least as good as the best of whole sites, by trying all.
        #[test]
        fn parts_are_no_worse_than_the_best_of_all_subsets(
            all in prop::collection::vec((1u64..100, 0u64..100), 0..10), budget in 0u64..400
        ) {
            let sites: Vec<Worth> = all.iter().map(|&(bytes, misses)| site(bytes, misses)).collect();
            let value = |quotas: &[u64]| -> f64 {
                let each = quotas.iter().zip(&sites);
                each.map(|(&q, s)| misses(s) as f64 * q as f64 / s.peak_bytes as f64).sum()
            };
            let subset = |bits: u32| -> (u64, u64) {
                let of = (0..sites.len()).filter(|i| bits >> i & 1 == 1);
                of.fold((0, 0), |(b, m), i| (b + sites[i].peak_bytes, m + misses(&sites[i])))
            };
            let best = (0..1u32 << sites.len()).map(subset).filter(|s| s.0 <= budget).map(|s| s.1).max();
            let best = best.unwrap_or(0) as f64;
            prop_assert!(value(&hot_sites(&sites, budget)) >= best - 1e-6);
            prop_assert!(value(&knapsack(&sites, budget)) >= best - 1e-6);
        }
    }
}
