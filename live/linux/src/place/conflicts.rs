//! Conflict counts of a set of pages, and what chance would give.

use super::bins::Bins;

/// Loads of 63 and more are counted together in a [`Histogram`].
pub const LEVELS: usize = 64;

/// Number of bins by load: entry `l` counts the bins that hold `l` pages; entry 0 is unused; the last entry
/// counts the bins at 63 and more, and [`Conflicts`] takes their pages from the total.
pub type Histogram = [u64; LEVELS];

/// How the pages of a program share the bins of a DRAM cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
// The shim is built without dependencies.
#[cfg_attr(
    not(varve_live_shim),
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Conflicts {
    /// Pages counted, 4 KiB each.
    pub pages: u64,
    /// Bins that hold at least one of them.
    pub bins_used: u64,
    /// Pages in bins that hold more pages than they have ways: each of these can evict another.
    pub sharing: u64,
    /// Pages beyond what their bins hold, summed over bins: the smallest number that would have to leave.
    pub excess: u64,
    /// Pages in the fullest bin (63 stands for 63 and more).
    pub fullest: u64,
    /// `sharing` expected if every page had a frame drawn at random.
    pub random_sharing: f64,
    /// `excess` expected if every page had a frame drawn at random.
    pub random_excess: f64,
    /// The least `excess` that any placement of this many pages can have.
    pub least_excess: u64,
}

impl Conflicts {
    /// Derives the counts from the number of bins at each load.
    pub fn from_histogram(histogram: &Histogram, pages: u64, bins: Bins) -> Conflicts {
        let ways = u64::from(bins.ways);
        let top = LEVELS as u64 - 1;
        let mut c = Conflicts {
            pages,
            ..Conflicts::default()
        };
        let mut below_top = 0;
        for (load, &count) in histogram.iter().enumerate().skip(1) {
            let load = load as u64;
            c.bins_used += count;
            if count > 0 {
                c.fullest = load;
            }
            if load == top {
                let pages_at_top = pages - below_top;
                // With 63 ways and more the fullest bins are not told apart; they count as holding their ways.
                if load > ways {
                    c.sharing += pages_at_top;
                    c.excess += pages_at_top - count * ways;
                }
                continue;
            }
            below_top += load * count;
            if load > ways {
                c.sharing += load * count;
                c.excess += (load - ways) * count;
            }
        }
        let (sharing, excess) = expected_random(pages, bins);
        c.random_sharing = sharing;
        c.random_excess = excess;
        c.least_excess = pages.saturating_sub(u64::from(bins.sets) * ways);
        c
    }

    /// Share of the pages that the cache holds at once, 0 to 1: also the share of accesses that it answers if all pages are used
    /// alike. Placing makes it as large as it can be; the pages that share a bin become more at that, where all bins come into use.
    pub fn held(&self) -> f64 {
        Conflicts::part(self.pages - self.excess, self.pages)
    }

    /// The largest share that any placement of this many pages can have.
    pub fn most_held(&self) -> f64 {
        Conflicts::part(self.pages - self.least_excess, self.pages)
    }

    fn part(some: u64, all: u64) -> f64 {
        match all {
            0 => 1.0,
            _ => some as f64 / all as f64,
        }
    }

    /// Counts the pages whose bins are given, one entry per page.
    pub fn of_bins(page_bins: impl IntoIterator<Item = u32>, bins: Bins) -> Conflicts {
        let mut loads = vec![0u32; bins.sets as usize];
        let mut pages = 0;
        for bin in page_bins {
            loads[bin as usize] += 1;
            pages += 1;
        }
        let mut histogram = [0u64; LEVELS];
        for &load in &loads {
            histogram[(load as usize).min(LEVELS - 1)] += 1;
        }
        Conflicts::from_histogram(&histogram, pages, bins)
    }
}

/// Expected `(sharing, excess)` when `pages` frames are drawn at random: the load of a bin is then binomial.
pub fn expected_random(pages: u64, bins: Bins) -> (f64, f64) {
    let n = pages as f64;
    if pages == 0 {
        return (0.0, 0.0);
    }
    let sets = f64::from(bins.sets);
    let p = 1.0 / sets;
    let q = 1.0 - p;
    if q <= 0.0 {
        let over = n > f64::from(bins.ways);
        return if over {
            (n, n - f64::from(bins.ways))
        } else {
            (0.0, 0.0)
        };
    }
    // P(load = k), from k = 0 up, in logarithms because q^n underflows for large loads.
    let mut log_pk = n * q.ln();
    let ways = u64::from(bins.ways);
    let mut pages_within = 0.0; // E[load; load <= ways]
    let mut missing = 0.0; // E[max(0, ways - load)]
    for k in 0..=ways.min(pages) {
        let pk = log_pk.exp();
        pages_within += k as f64 * pk;
        missing += (ways - k) as f64 * pk;
        log_pk += ((n - k as f64) / (k as f64 + 1.0)).ln() + (p / q).ln();
    }
    let mean = n * p;
    let sharing = sets * (mean - pages_within).max(0.0);
    let excess = sets * (mean - ways as f64 + missing).max(0.0);
    (sharing, excess)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that is asked for any page of a program, again and again: each set keeps the last pages that were asked for.
    fn hits(page_bins: &[u32], bins: Bins) -> f64 {
        let mut sets = vec![Vec::<usize>::new(); bins.sets as usize];
        let (mut state, mut hits) = (1u64, 0);
        let asked = 400_000;
        for n in 0..2 * asked {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let page = (state >> 16) as usize % page_bins.len();
            let set = &mut sets[page_bins[page] as usize];
            match set.iter().position(|p| *p == page) {
                Some(at) => {
                    set.remove(at);
                    hits += u32::from(n >= asked);
                }
                None if set.len() == bins.ways as usize => {
                    set.remove(0);
                }
                None => {}
            }
            set.push(page);
        }
        f64::from(hits) / f64::from(asked)
    }

    #[test]
    fn what_the_cache_holds_is_what_it_answers_when_pages_are_used_alike() {
        for ways in [1, 2] {
            let bins = Bins { sets: 400, ways };
            let even: Vec<u32> = (0..1000 * ways).map(|page| page % 400).collect();
            // Half of the bins have all pages: more of them share a bin where pages are spread evenly, and more are held.
            let crowded: Vec<u32> = even.iter().map(|bin| bin % 200).collect();
            for placed in [even, crowded] {
                let c = Conflicts::of_bins(placed.iter().copied(), bins);
                let hits = hits(&placed, bins);
                assert!((c.held() - hits).abs() < 0.01, "{c:?} {hits}");
                assert!(c.held() <= c.most_held());
            }
        }
    }
}
