//! Which allocation sites are hot, from a profile: pure functions, one per heuristic.
//!
//! All but the knapsack judge the accesses to objects that survived the nursery, after they did: where survivors go
//! is all that a plan decides, and accesses before that are served by the nursery's memory in any case.

use std::collections::HashSet;

use crate::knapsack::{self, Item};
use crate::{Counts, Key, Profile};

/// Writes per object from which a site is hot, in CGZ-F1 (Akram, TACO 2021, section 5.3: "thresholds of one").
pub const FREQUENCY: f64 = 1.0;
/// Writes per byte from which a site is hot, in CGZ-D1 (the same).
pub const DENSITY: f64 = 1.0;
/// The part of all objects, those that are accessed most, that counts as hot (the same section: "the hotness ratio
/// of 20 %").
pub const HOT_OBJECTS: f64 = 0.20;
/// The part of a site's objects that has to be hot ("homogeneity-threshold ... 1 %").
pub const HOMOGENEITY: f64 = 0.01;

/// Sites with at least `threshold` writes per surviving object: CGZ-F.
pub fn by_frequency(profile: &Profile, threshold: f64) -> HashSet<Key> {
    keys(profile, |c| reaches(c.old_writes, c.survivors, threshold))
}

/// Sites with at least `threshold` writes per surviving byte: CGZ-D.
pub fn by_density(profile: &Profile, threshold: f64) -> HashSet<Key> {
    keys(profile, |c| {
        reaches(c.old_writes, c.survived_bytes, threshold)
    })
}

/// Sites of which at least the part `homogeneity` of the objects is among the part `top` of all objects that is
/// accessed most. Objects that are never accessed are not hot.
pub fn by_hot_objects(profile: &Profile, top: f64, homogeneity: f64) -> HashSet<Key> {
    let mut all: Vec<u64> = Vec::new();
    for counts in profile.sites.iter().map(|site| site.counts.accesses()) {
        all.resize(all.len().max(counts.len()), 0);
        all.iter_mut()
            .zip(counts)
            .for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }
    let shares = hot_shares(&all, top);
    keys(profile, |c| {
        let accesses = c.accesses();
        let hot: f64 = accesses
            .iter()
            .zip(&shares)
            .map(|(&n, share)| n as f64 * share)
            .sum();
        hot > 0.0 && hot >= homogeneity * c.survivors as f64
    })
}

/// For each bucket of accesses, the part of its objects that is hot. All above a border are, and where the border
/// falls into a bucket, whose objects cannot be told apart, a part.
fn hot_shares(all: &[u64], top: f64) -> Vec<f64> {
    let mut left = (top * all.iter().map(|&n| n as f64).sum::<f64>()).max(0.0);
    let mut shares = vec![0.0; all.len()];
    for bucket in (1..all.len()).rev() {
        let objects = all[bucket] as f64;
        if objects > 0.0 {
            shares[bucket] = (left / objects).min(1.0);
            left = (left - objects).max(0.0);
        }
    }
    shares
}

/// Why cold sites cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum KnapsackError {
    /// Of nothing, or of more than all.
    #[error(
        "a capacity of {0}: it is a part of all accesses, above 0 and at most 1, such as 0.05 or 5%"
    )]
    Capacity(f64),
    /// The sums mean nothing.
    #[error(
        "the profile's {what} add up to more than can be counted (2^64): one of its sites has a wrong count; make the profile anew with `varve profile`"
    )]
    Overflow {
        /// Of which counts.
        what: &'static str,
    },
}

/// The *cold* sites: those with the most bytes that together get at most the part `capacity` of all accesses (Olson
/// et al., TACO 2018, section 7.1: a 0/1 knapsack of bytes by accesses).
///
/// # Errors
/// A capacity that is not above 0 and at most 1, and counts that overflow.
pub fn cold_by_knapsack(profile: &Profile, capacity: f64) -> Result<HashSet<Key>, KnapsackError> {
    // Written so that NaN is refused too.
    if !(capacity > 0.0 && capacity <= 1.0) {
        return Err(KnapsackError::Capacity(capacity));
    }
    let overflow = |what| KnapsackError::Overflow { what };
    let (mut items, mut bytes, mut accesses) = (Vec::new(), 0u64, 0u64);
    for Counts {
        bytes: value,
        reads,
        writes,
        ..
    } in profile.sites.iter().map(|s| &s.counts)
    {
        let weight = reads.checked_add(*writes).ok_or(overflow("accesses"))?;
        accesses = accesses.checked_add(weight).ok_or(overflow("accesses"))?;
        bytes = bytes.checked_add(*value).ok_or(overflow("bytes"))?;
        items.push(Item {
            value: *value,
            weight,
        });
    }
    let capacity = (capacity * accesses as f64).floor() as u64;
    let cold = knapsack::solve(&items, capacity);
    Ok(cold
        .into_iter()
        .map(|i| profile.sites[i].key.clone())
        .collect())
}

fn keys(profile: &Profile, is_hot: impl Fn(&Counts) -> bool) -> HashSet<Key> {
    let hot = profile.sites.iter().filter(|site| is_hot(&site.counts));
    hot.map(|site| site.key.clone()).collect()
}

/// Whether `count` per each of `of` is at least `threshold`. Of nothing, nothing is hot.
fn reaches(count: u64, of: u64, threshold: f64) -> bool {
    of > 0 && count as f64 >= threshold * of as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SiteProfile;
    use crate::tests::{profile, site};
    use proptest::prelude::*;

    fn names(keys: &HashSet<Key>) -> Vec<&str> {
        let mut names: Vec<&str> = keys.iter().map(|key| &key.function[..]).collect();
        names.sort_unstable();
        names
    }

    fn written(function: &str, survivors: u64, each: u64, old_writes: u64) -> SiteProfile {
        let counts = Counts {
            objects: survivors,
            survivors,
            bytes: survivors * each,
            survived_bytes: survivors * each,
            writes: old_writes,
            old_writes,
            ..Counts::default()
        };
        site(function, counts)
    }

    #[test]
    fn a_capacity_of_nothing_and_counts_that_overflow_are_refused() {
        let counts = |reads, writes, bytes| Counts {
            reads,
            writes,
            bytes,
            ..Counts::default()
        };
        let says = |all: &[Counts], capacity| {
            let sites = all.iter().enumerate();
            let profile = profile(sites.map(|(i, c)| site(&i.to_string(), c.clone())));
            cold_by_knapsack(&profile, capacity)
                .unwrap_err()
                .to_string()
        };
        for capacity in [0.0, -0.1, 1.01, f64::NAN] {
            assert!(says(&[], capacity).contains("above 0 and at most 1"));
        }
        let wrong = |all: &[Counts]| says(all, 0.05);
        assert!(wrong(&[counts(u64::MAX, 1, 0)]).contains("accesses add up to more"));
        let half = u64::MAX / 2 + 1;
        assert!(wrong(&[counts(half, 0, 0), counts(0, half, 0)]).contains("accesses"));
        assert!(wrong(&[counts(0, 0, half), counts(0, 0, half)]).contains("profile's bytes"));
    }

    #[test]
    fn frequency_is_by_object_and_density_by_byte() {
        let profile = profile([
            written("counter", 100, 16, 5000),
            written("vertex", 1000, 32, 1000),
            written("buffer", 2, 65536, 9000),
            written("text", 1000, 64, 999),
            written("dead", 0, 64, 0),
        ]);
        assert_eq!(
            names(&by_frequency(&profile, FREQUENCY)),
            ["buffer", "counter", "vertex"]
        );
        assert_eq!(names(&by_density(&profile, DENSITY)), ["counter"]);
    }

    #[test]
    fn a_few_hot_objects_make_a_site_hot() {
        let accessed = |function, accesses: &[u64]| {
            let survivors = accesses.iter().sum();
            let accesses = accesses.to_vec();
            site(
                function,
                Counts {
                    objects: survivors,
                    survivors,
                    accesses,
                    ..Counts::default()
                },
            )
        };
        let profile = profile([
            accessed("cold", &[700, 50]),
            accessed("one in a hundred", &[99, 0, 0, 0, 0, 1]),
            accessed("one in two hundred", &[199, 0, 0, 0, 0, 1]),
            accessed("hot", &[0, 0, 0, 100]),
        ]);
        assert_eq!(
            names(&by_hot_objects(&profile, HOT_OBJECTS, HOMOGENEITY)),
            ["cold", "hot", "one in a hundred"],
            "there is room for all that were ever accessed"
        );
        assert_eq!(
            names(&by_hot_objects(&profile, 0.05, HOMOGENEITY)),
            ["hot", "one in a hundred"]
        );
    }

    proptest! {
        /// Against a list of all objects, sorted.
        #[test]
        fn hot_objects_are_those_at_the_top_of_a_list(
            sites in prop::collection::vec(prop::collection::vec(0u64..6, 0..6), 1..6), top in 0.0f64..1.0, homogeneity in 0.0f64..0.5
        ) {
            let profile = profile(sites.iter().enumerate().map(|(number, accesses)| {
                let survivors = accesses.iter().sum();
                let accesses = accesses.clone();
                site(&number.to_string(), Counts { objects: survivors, survivors, accesses, ..Counts::default() })
            }));
            let mut objects: Vec<(usize, usize)> = Vec::new();
            for (number, accesses) in sites.iter().enumerate() {
                for (bucket, &n) in accesses.iter().enumerate() {
                    objects.extend((0..n).map(|_| (bucket, number)));
                }
            }
            objects.sort_by(|a, b| b.cmp(a));
            let room = top * objects.len() as f64;
            // The heat of the last object that still fits, whole or in part.
            let border = objects.get(room.ceil() as usize - usize::from(room > 0.0)).map_or(0, |o| o.0);
            let above = objects.iter().filter(|o| o.0 > border).count() as f64;
            let at = objects.iter().filter(|o| o.0 == border).count() as f64;
            let mut expected = Vec::new();
            for (number, accesses) in sites.iter().enumerate() {
                let mut hot = 0.0;
                for &(bucket, of) in &objects {
                    if of == number && bucket > 0 && bucket >= border {
                        hot += if bucket > border { 1.0 } else { (room - above) / at };
                    }
                }
                let survivors: u64 = accesses.iter().sum();
                let margin = hot - homogeneity * survivors as f64;
                prop_assume!(margin.abs() > 1e-9 || hot == 0.0);
                if hot > 1e-12 && margin > 0.0 {
                    expected.push(number.to_string());
                }
            }
            expected.sort_unstable();
            let hot = by_hot_objects(&profile, top, homogeneity);
            prop_assert_eq!(names(&hot), expected);
        }

        /// Against every subset.
        #[test]
        fn the_knapsack_is_the_best_of_all_subsets(
            sites in prop::collection::vec((0u64..50, 0u64..50), 0..9), capacity in 0.001f64..1.0
        ) {
            let profile = profile(sites.iter().enumerate().map(|(number, &(bytes, reads))| {
                site(&number.to_string(), Counts { objects: 1, bytes, reads, ..Counts::default() })
            }));
            let total: u64 = sites.iter().map(|s| s.1).sum();
            let room = (capacity * total as f64).floor() as u64;
            let sum = |subset: u32| {
                let of = (0..sites.len()).filter(|i| subset >> i & 1 == 1);
                of.fold((0, 0), |(bytes, reads), i| (bytes + sites[i].0, reads + sites[i].1))
            };
            let best = (0..1u32 << sites.len()).map(sum).filter(|s| s.1 <= room).map(|s| s.0).max();
            let cold = cold_by_knapsack(&profile, capacity).unwrap();
            let chosen = cold.iter().fold(0, |set, key| set | 1 << key.function.parse::<u32>().unwrap());
            prop_assert!(sum(chosen).1 <= room);
            prop_assert_eq!(Some(sum(chosen).0), best);
        }

        /// However many accesses there are, the capacity holds.
        #[test]
        fn a_large_knapsack_is_never_too_full(
            sites in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40), 0..40), capacity in 0.001f64..1.0
        ) {
            let profile = profile(sites.iter().enumerate().map(|(number, &(bytes, reads))| {
                site(&number.to_string(), Counts { objects: 1, bytes, reads, ..Counts::default() })
            }));
            let total: u64 = sites.iter().map(|s| s.1).sum();
            let cold = cold_by_knapsack(&profile, capacity).unwrap();
            let reads: u64 = cold.iter().map(|key| sites[key.function.parse::<usize>().unwrap()].1).sum();
            prop_assert!(reads as f64 <= capacity * total as f64);
        }
    }
}
