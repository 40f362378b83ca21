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
