//! Which sites of a native program belong in fast memory: pure functions over what was counted.
//!
//! Native objects do not move. A site is in fast memory from birth, as far as there is room: so sites are chosen
//! against a budget of bytes, by their peaks. The last one may be there in part, since live allocation fills memory
//! until it is full.

use crate::Counts;
use crate::knapsack::{self, Item};

/// Write misses per object, or per byte, from which a site is hot: the threshold of CGZ-F1 and CGZ-D1 (Akram, TACO
/// 2021, section 5.3) for the writes that reach memory.
pub const THRESHOLD: f64 = 1.0;

/// A site's benefit in fast memory, and its size there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The benefit to maximize: misses, or nanoseconds saved.
    pub value: u64,
    /// Most bytes alive at once.
    pub peak_bytes: u64,
}

impl Candidate {
    /// A site by its reads and writes that missed all caches.
    pub fn by_misses(counts: &Counts) -> Candidate {
        Candidate {
            value: counts.misses.saturating_add(counts.write_misses),
            peak_bytes: counts.peak_bytes,
        }
    }

    /// A site by the time that its threads wait less if it is in fast memory.
    pub fn by_time(counts: &Counts) -> Candidate {
        Candidate {
            value: counts.slow_ns.saturating_sub(counts.fast_ns),
            peak_bytes: counts.peak_bytes,
        }
    }
}

/// Sites by the time that fast memory saves where the profile knows it, which those made on a model do; else by their misses.
pub fn by_worth(sites: &[Counts]) -> Vec<Candidate> {
    let timed = sites.iter().any(|site| site.slow_ns > 0);
    let of = match timed {
        true => Candidate::by_time,
        false => Candidate::by_misses,
    };
    sites.iter().map(of).collect()
}

/// The sites with the most value per byte until the budget (bytes) is full: sites by number, each with its bytes in
/// fast memory, best first. Sites without value are left out, those of no bytes come first. Only the last one may be
/// there in part.
pub fn hot_sites(sites: &[Candidate], budget: u64) -> Vec<(usize, u64)> {
    let mut left = budget;
    let mut chosen = Vec::new();
    for at in by_density(sites) {
        let bytes = sites[at].peak_bytes.min(left);
        if bytes == 0 && sites[at].peak_bytes > 0 {
            break;
        }
        left -= bytes;
        chosen.push((at, bytes));
    }
    chosen
}

/// The whole sites with the largest sum of values that fit into the budget (bytes), in the order of their numbers, and
/// then the best other one with what is left of the budget. Beyond some thousands of sites the sum may be a little
/// less than the largest: see [`knapsack::solve`].
pub fn knapsack(sites: &[Candidate], budget: u64) -> Vec<(usize, u64)> {
    let items: Vec<Item> = sites
        .iter()
        .map(|site| Item {
            value: site.value,
            weight: site.peak_bytes,
        })
        .collect();
    let whole = knapsack::solve(&items, budget);
    let used: u64 = whole.iter().map(|&at| sites[at].peak_bytes).sum();
    let left = budget - used;
    let mut chosen: Vec<(usize, u64)> =
        whole.iter().map(|&at| (at, sites[at].peak_bytes)).collect();
    let other = by_density(sites)
        .into_iter()
        .find(|at| whole.binary_search(at).is_err());
    if let Some(at) = other.filter(|_| left > 0) {
        chosen.push((at, sites[at].peak_bytes.min(left)));
    }
    chosen
}

/// Sites that are worth something, by value per byte, the most first.
fn by_density(sites: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sites.len()).filter(|&at| sites[at].value > 0).collect();
    let times = |value: u64, bytes: u64| u128::from(value) * u128::from(bytes);
    order.sort_by(|&a, &b| {
        let (one, other) = (&sites[a], &sites[b]);
        // a value per no bytes is more than any other
        let is_free = |site: &Candidate| site.peak_bytes == 0;
        let by_value = times(other.value, one.peak_bytes).cmp(&times(one.value, other.peak_bytes));
        is_free(other)
            .cmp(&is_free(one))
            .then(by_value)
            .then(a.cmp(&b))
    });
    order
}

/// Sites with at least `threshold` write misses per object, by number: what CGZ-F asks of a managed site's survivors.
pub fn cgz_f(sites: &[Counts], threshold: f64) -> Vec<usize> {
    reaching(sites, threshold, |counts| counts.objects)
}

/// Sites with at least `threshold` write misses per byte that was allocated, by number: the same for CGZ-D.
pub fn cgz_d(sites: &[Counts], threshold: f64) -> Vec<usize> {
    reaching(sites, threshold, |counts| counts.bytes)
}

fn reaching(sites: &[Counts], threshold: f64, of: impl Fn(&Counts) -> u64) -> Vec<usize> {
    let hot = |counts: &Counts| {
        of(counts) > 0 && counts.write_misses as f64 >= threshold * of(counts) as f64
    };
    (0..sites.len()).filter(|&at| hot(&sites[at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(all: &[(u64, u64)]) -> Vec<Candidate> {
        let candidate = |&(value, peak_bytes): &(u64, u64)| Candidate { value, peak_bytes };
        all.iter().map(candidate).collect()
    }

    #[test]
    fn the_hottest_sites_fill_the_budget_and_the_last_gets_what_is_left() {
        let sites = candidates(&[(100, 100), (900, 100), (50, 1000), (0, 1), (7, 0)]);
        assert_eq!(hot_sites(&sites, 150), [(4, 0), (1, 100), (0, 50)]);
        assert_eq!(hot_sites(&sites, 200), [(4, 0), (1, 100), (0, 100)]);
        assert_eq!(hot_sites(&sites, 0), [(4, 0)]);
    }

    #[test]
    fn the_knapsack_prefers_two_sites_that_fit_to_a_denser_one_that_wastes_room() {
        let sites = candidates(&[(60, 60), (50, 50), (50, 50)]);
        assert_eq!(knapsack(&sites, 100), [(1, 50), (2, 50)]);
        assert_eq!(knapsack(&sites, 120), [(0, 60), (1, 50), (2, 10)]);
    }

    #[test]
    fn writes_that_reach_memory_make_a_site_hot() {
        let counts = |objects, bytes, write_misses| Counts {
            objects,
            bytes,
            write_misses,
            ..Counts::default()
        };
        let sites = [
            counts(10, 1000, 10),
            counts(10, 8, 9),
            counts(0, 0, 0),
            counts(1, 2000, 2000),
        ];
        assert_eq!(cgz_f(&sites, THRESHOLD), [0, 3]);
        assert_eq!(cgz_d(&sites, THRESHOLD), [1, 3]);
        assert_eq!(cgz_f(&sites, 0.5), [0, 1, 3]);
    }

    #[test]
    fn a_site_is_worth_its_misses_or_the_time_they_cost() {
        let counts = Counts {
            misses: 5,
            write_misses: 2,
            fast_ns: 100,
            slow_ns: 350,
            peak_bytes: 64,
            ..Counts::default()
        };
        assert_eq!(
            (
                Candidate::by_misses(&counts).value,
                Candidate::by_time(&counts).value
            ),
            (7, 250)
        );
        let faster = Counts {
            slow_ns: 90,
            ..counts
        };
        assert_eq!(Candidate::by_time(&faster).value, 0);
        // Sampled sites have no time: then all go by misses.
        let sampled = Counts {
            misses: 7,
            ..Counts::default()
        };
        let values = |sites: &[Counts]| -> Vec<u64> {
            by_worth(sites)
                .iter()
                .map(|candidate| candidate.value)
                .collect()
        };
        assert_eq!(values(&[sampled.clone(), sampled.clone()]), [7, 7]);
        assert_eq!(values(&[sampled, faster]), [0, 0]);
    }

    fn sites() -> impl Strategy<Value = Vec<Candidate>> {
        prop::collection::vec((0u64..40, 0u64..40), 0..9).prop_map(|all| candidates(&all))
    }

    /// The best sum of values of any subset that fits.
    fn best(sites: &[Candidate], budget: u64) -> u64 {
        let sum = |subset: u32| {
            let of = (0..sites.len()).filter(|at| subset >> at & 1 == 1);
            of.fold((0, 0), |(value, bytes), at| {
                (value + sites[at].value, bytes + sites[at].peak_bytes)
            })
        };
        let fitting = (0..1u32 << sites.len())
            .map(sum)
            .filter(|sum| sum.1 <= budget);
        fitting.map(|sum| sum.0).max().unwrap_or(0)
    }

    proptest! {
        /// Byte by byte: each byte of memory goes to the site whose next byte is worth the most.
        #[test]
        fn hot_sites_are_those_of_the_most_valuable_bytes(sites in sites(), budget in 0u64..200) {
            let mut taken = vec![0; sites.len()];
            for _ in 0..budget {
                let open = (0..sites.len()).filter(|&at| taken[at] < sites[at].peak_bytes && sites[at].value > 0);
                // of two alike the first; once begun a site is finished
                let density = |at: usize| sites[at].value as f64 / sites[at].peak_bytes as f64;
                let next = open.max_by(|&a, &b| density(a).total_cmp(&density(b)).then(b.cmp(&a)));
                if let Some(at) = next {
                    taken[at] += 1;
                }
            }
            let mut chosen = vec![0; sites.len()];
            for (at, bytes) in hot_sites(&sites, budget) {
                chosen[at] = bytes;
            }
            prop_assert_eq!(chosen, taken);
        }

        #[test]
        fn the_knapsack_is_the_best_of_all_subsets_and_fills_what_is_left(sites in sites(), budget in 0u64..200) {
            let chosen = knapsack(&sites, budget);
            let used: u64 = chosen.iter().map(|site| site.1).sum();
            prop_assert!(used <= budget);
            let is_whole = |site: &&(usize, u64)| site.1 == sites[site.0].peak_bytes;
            let value: u64 = chosen.iter().filter(is_whole).map(|site| sites[site.0].value).sum();
            prop_assert_eq!(value, best(&sites, budget));
            let parts = chosen.iter().filter(|site| !is_whole(site)).count();
            prop_assert!(parts <= 1);
            let worth: u64 = sites.iter().filter(|site| site.value > 0).map(|site| site.peak_bytes).sum();
            prop_assert_eq!(used, worth.min(budget), "room is left only if no site wants it");
            let mut numbers: Vec<usize> = chosen.iter().map(|site| site.0).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), chosen.len());
        }

        #[test]
        fn huge_numbers_do_not_overflow(all in prop::collection::vec((any::<u64>(), any::<u64>()), 0..8), budget in any::<u64>()) {
            let sites = candidates(&all);
            for chosen in [hot_sites(&sites, budget), knapsack(&sites, budget)] {
                let used: u128 = chosen.iter().map(|site| u128::from(site.1)).sum();
                prop_assert!(used <= u128::from(budget));
            }
        }
    }
}
