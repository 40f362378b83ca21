//! How sure a profile from samples is. Pure functions.
//!
//! [`doubtful`] says for which sites the samples leave open which memory they belong in. [`draw`] and [`agreement`] answer
//! how many samples it takes: they draw samples from exact counts, and compare where memory goes.

use crate::Counts;
use crate::select::Candidate;

/// How many events there may be on average where `count` were seen: limits of which the true number is outside once in
/// twenty times, if events are independent of each other (Anscombe, Biometrika 1948: the root of such a number varies by a
/// half, whatever its size).
pub fn limits(count: f64) -> (f64, f64) {
    const HALF: f64 = 1.96 / 2.0;
    let root = (count + 0.375).sqrt();
    (
        (root - HALF).max(0.0).powi(2).min(count),
        (root + HALF).powi(2),
    )
}

/// The number of independent events in a site's samples: each use of a page is one, and so is each followed object that stands
/// for unsampled ones.
fn events(counts: &Counts) -> f64 {
    if counts.uses == 0 {
        return 0.0;
    }
    let unseen = 1.0 - counts.samples as f64 / counts.objects.max(counts.samples).max(1) as f64;
    let variance = 1.0 / counts.uses as f64 + unseen / counts.samples.max(1) as f64;
    1.0 / variance
}

/// For each site: would its place change if its value were as far off as its samples allow? `place` gives each site's bytes in
/// fast memory. A site is in fast memory if at least half of it is.
///
/// Places are found anew for each limit of each site. Sites that nothing was sampled of are in no doubt.
pub fn doubtful(counts: &[Counts], place: impl Fn(&[Candidate]) -> Vec<u64>) -> Vec<bool> {
    let mut sites: Vec<Candidate> = counts.iter().map(Candidate::by_misses).collect();
    let is_fast = |fast: &[u64], site: usize| {
        let peak = counts[site].peak_bytes;
        peak > 0 && fast.get(site).copied().unwrap_or(0) >= peak.div_ceil(2)
    };
    let usual = place(&sites);
    let sum = |of: fn(&Counts) -> u64| counts.iter().map(|c| of(c) as f64).sum::<f64>();
    let each = sum(|c| c.misses.saturating_add(c.write_misses)) / sum(|c| c.uses).max(1.0);
    let mut doubts = vec![false; counts.len()];
    for site in (0..counts.len()).filter(|&site| counts[site].samples > 0) {
        let (value, events) = (sites[site].value, events(&counts[site]));
        let (low, high) = limits(events);
        let scale = match events > 0.0 {
            true => value as f64 / events,
            false => each,
        };
        doubts[site] = [low, high].into_iter().any(|limit| {
            sites[site].value = (limit * scale) as u64;
            is_fast(&place(&sites), site) != is_fast(&usual, site)
        });
        sites[site].value = value;
    }
    doubts
}

/// Simulates samples of exact counts: each miss is sampled with probability `rate` (0 to 1), and the sampled number is
/// divided by it. The same seed draws the same samples.
pub fn draw(exact: &[Counts], rate: f64, seed: u64) -> Vec<Counts> {
    let mut random = Random(seed);
    let mut draw = |counts: &Counts| {
        let misses = random.of(counts.misses, rate);
        let write_misses = random.of(counts.write_misses, rate);
        let scaled = |count: u64| (count as f64 / rate).round() as u64;
        Counts {
            misses: scaled(misses),
            write_misses: scaled(write_misses),
            samples: counts.objects,
            uses: misses + write_misses,
            ..counts.clone()
        }
    };
    exact.iter().map(&mut draw).collect()
}

/// The share of all sites' peaks (0 to 1) that two placements, each in bytes of fast memory, have in the same memory.
pub fn agreement(sites: &[Counts], one: &[u64], other: &[u64]) -> f64 {
    let (mut same, mut all) = (0.0, 0.0);
    for (site, counts) in sites.iter().enumerate() {
        let fast = |of: &[u64]| of.get(site).copied().unwrap_or(0).min(counts.peak_bytes);
        same += (counts.peak_bytes - fast(one).abs_diff(fast(other))) as f64;
        all += counts.peak_bytes as f64;
    }
    if all > 0.0 { same / all } else { 1.0 }
}

/// Random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    /// From 0 to 1, without 0.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON
    }

    /// The number of sampled events out of `count`, each with probability `rate`; draws the gap to the next sample.
    fn of(&mut self, count: u64, rate: f64) -> u64 {
        if rate >= 1.0 {
            return count;
        }
        let not = (-rate).ln_1p();
        let (mut at, mut seen) = (0u64, 0);
        loop {
            at = at
                .saturating_add((self.next().min(1.0).ln() / not) as u64)
                .saturating_add(1);
            if at > count {
                return seen;
            }
            seen += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{hot_sites, knapsack};

    fn places(chosen: Vec<(usize, u64)>, sites: usize) -> Vec<u64> {
        let mut bytes = vec![0; sites];
        for (site, fast) in chosen {
            bytes[site] = fast;
        }
        bytes
    }

    fn by_misses(counts: &[Counts]) -> Vec<Candidate> {
        counts.iter().map(Candidate::by_misses).collect()
    }

    /// Sites as programs have them: few have most of the misses, sizes differ a thousandfold.
    fn program(sites: u64) -> Vec<Counts> {
        let mut random = Random(7);
        let site = |number: u64| Counts {
            objects: 10,
            peak_bytes: 4096 << (random.next() * 10.0) as u32,
            misses: 3_000_000 / (number + 1),
            write_misses: 1_000_000 / (number + 1),
            ..Counts::default()
        };
        (0..sites).map(site).collect()
    }

    #[test]
    fn limits_hold_what_was_seen_and_are_narrow_for_many() {
        for count in [0.0, 1.0, 10.0, 1e6] {
            let (low, high) = limits(count);
            assert!(low <= count && count < high, "{low} {count} {high}");
        }
        assert!(limits(0.0).1 < 4.0);
        let (low, high) = limits(10_000.0);
        assert!(low > 9_700.0 && high < 10_300.0);
    }

    /// Draws of a known mean: about one in twenty has limits that leave it out.
    #[test]
    fn limits_leave_the_truth_out_once_in_twenty_times() {
        let mut random = Random(1);
        let outside = (0..4000).filter(|_| {
            let (low, high) = limits(random.of(2_000, 0.01) as f64);
            !(low..=high).contains(&20.0)
        });
        let share = outside.count() as f64 / 4000.0;
        assert!((0.02..0.08).contains(&share), "{share}");
    }

    #[test]
    fn a_site_at_the_border_is_in_doubt_and_others_are_not() {
        let site = |misses, uses| Counts {
            objects: 1,
            samples: 1,
            peak_bytes: 100,
            misses,
            uses,
            ..Counts::default()
        };
        let budget = |sites: &[Candidate]| places(hot_sites(sites, 200), sites.len());
        let few = [site(9000, 90), site(110, 11), site(100, 10), site(1, 1)];
        assert_eq!(doubtful(&few, budget), [false, true, true, false]);
        let many = [
            site(9000, 900_000),
            site(110, 11_000),
            site(100, 10_000),
            site(1, 100),
        ];
        assert_eq!(doubtful(&many, budget), [false; 4]);
        // Memory that was sampled and never used may have been missed; a site without samples is not judged.
        let unused = [site(9000, 90), site(200, 2), site(0, 0), Counts::default()];
        assert_eq!(doubtful(&unused, budget), [false, false, true, false]);
    }

    #[test]
    fn of_a_site_with_few_of_its_objects_sampled_less_is_known() {
        let some = |samples| Counts {
            objects: 1000,
            samples,
            uses: 10_000,
            ..Counts::default()
        };
        assert!(events(&some(4)) < 5.0);
        assert!((events(&some(1000)) - 10_000.0).abs() < 1.0);
    }

    #[test]
    fn draws_are_right_on_average_and_whole_at_a_rate_of_one() {
        let exact = program(40);
        let same = draw(&exact, 1.0, 3);
        assert_eq!(by_misses(&same), by_misses(&exact));
        assert_eq!(draw(&exact, 0.01, 3), draw(&exact, 0.01, 3));
        let sum = |counts: &[Counts]| counts.iter().map(|c| c.misses as f64).sum::<f64>();
        let ratio = sum(&draw(&exact, 0.001, 5)) / sum(&exact);
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }

    /// More samples, more bytes in the memory where exact counts have them, up to all.
    #[test]
    fn placements_agree_more_the_more_samples_there_are() {
        let exact = program(200);
        let peak: u64 = exact.iter().map(|c| c.peak_bytes).sum();
        for plan in [hot_sites, knapsack] {
            let place =
                |counts: &[Counts]| places(plan(&by_misses(counts), peak / 4), counts.len());
            let truth = place(&exact);
            let agreed = |rate: f64| {
                let draws =
                    (0..5).map(|seed| agreement(&exact, &truth, &place(&draw(&exact, rate, seed))));
                draws.sum::<f64>() / 5.0
            };
            let rates = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0].map(agreed);
            for pair in rates.windows(2) {
                assert!(pair[1] >= pair[0] - 0.02, "{rates:?}");
            }
            assert!(rates[0] < 0.95 && rates[3] >= 0.95, "{rates:?}");
            assert_eq!(rates[6], 1.0);
        }
    }

    #[test]
    fn agreement_counts_bytes_on_both_sides() {
        let sites = [100, 300].map(|peak_bytes| Counts {
            peak_bytes,
            ..Counts::default()
        });
        assert_eq!(agreement(&sites, &[100, 0], &[100, 0]), 1.0);
        assert_eq!(agreement(&sites, &[100, 0], &[0, 100]), 0.5);
        assert_eq!(agreement(&[], &[], &[]), 1.0);
    }
}
