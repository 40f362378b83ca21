//! A running count of how a process's pages share bins, updated page by page.

use super::bins::Bins;
use super::conflicts::{Conflicts, Histogram, LEVELS};

/// Loads of every bin and the histogram of them, kept in step.
pub struct Tally {
    bins: Bins,
    loads: Vec<u16>,
    histogram: Histogram,
    pages: u64,
}

impl Tally {
    /// No page counted yet. Memory is touched only where pages are.
    pub fn new(bins: Bins) -> Tally {
        Tally {
            bins,
            loads: vec![0; bins.sets as usize],
            histogram: [0; LEVELS],
            pages: 0,
        }
    }

    /// One more page in `bin`.
    pub fn add(&mut self, bin: u32) {
        let load = &mut self.loads[bin as usize];
        let old = *load;
        *load = old.saturating_add(1);
        self.move_bin(old, old.saturating_add(1));
        self.pages += 1;
    }

    /// One page fewer in `bin`.
    pub fn remove(&mut self, bin: u32) {
        let load = &mut self.loads[bin as usize];
        let old = *load;
        if old == 0 {
            return;
        }
        *load = old - 1;
        self.move_bin(old, old - 1);
        self.pages -= 1;
    }

    fn move_bin(&mut self, from: u16, to: u16) {
        let level = |load: u16| (load as usize).min(LEVELS - 1);
        if from > 0 {
            self.histogram[level(from)] -= 1;
        }
        if to > 0 {
            self.histogram[level(to)] += 1;
        }
    }

    /// Pages counted now.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The counts now.
    pub fn conflicts(&self) -> Conflicts {
        Conflicts::from_histogram(&self.histogram, self.pages, self.bins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_running_count_is_that_of_counting_anew(steps in proptest::collection::vec((0u32..8, any::<bool>()), 0..300)) {
            let bins = Bins { sets: 8, ways: 2 };
            let mut tally = Tally::new(bins);
            let mut pages: Vec<u32> = Vec::new();
            for (bin, add) in steps {
                if add {
                    tally.add(bin);
                    pages.push(bin);
                } else {
                    // A page that is not there is not taken out.
                    tally.remove(bin);
                    if let Some(at) = pages.iter().position(|&b| b == bin) {
                        pages.swap_remove(at);
                    }
                }
                prop_assert_eq!(tally.pages(), pages.len() as u64);
                prop_assert_eq!(tally.conflicts(), Conflicts::of_bins(pages.iter().copied(), bins));
            }
        }
    }
}
