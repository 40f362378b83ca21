//! Heat of pages, as HeMem (SOSP 2021) and Johnny Cache (section 4.3) define it: sampled loads and stores, counted per
//! page; a page is hot from a number of either on; when any page reaches the cooling threshold, all counts are halved.
//!
//! Halving costs nothing: a page's counts date from an epoch, and each access to them first applies the halvings since
//! then.

use varve_access::Source;

/// When a page is hot, and when all pages are cooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Hot from this many sampled loads on.
    pub loads: u32,
    /// Hot from this many sampled stores on.
    pub stores: u32,
    /// Counts are halved when the loads or the stores of a page reach this; at most 255.
    pub cool: u32,
}

/// Effect of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Change {
    /// The page was not hot before and is now.
    pub became_hot: bool,
    /// All pages are to be cooled: call [`Heat::cool`].
    pub overheated: bool,
}

/// Heat of the page in each frame.
#[derive(Clone, Debug)]
pub struct Heat {
    thresholds: Thresholds,
    /// Loads in 8 bits, stores in 8 bits, the epoch that both date from in 16 bits.
    pages: Vec<u32>,
    epoch: u16,
    coolings: u64,
}

impl Heat {
    /// No heat in any of `frames` frames.
    pub fn new(frames: u32, thresholds: Thresholds) -> Heat {
        Heat {
            thresholds,
            pages: vec![0; frames as usize],
            epoch: 0,
            coolings: 0,
        }
    }

    /// When pages are hot and cooled.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Counts of the page in `frame`: loads and stores.
    #[inline]
    pub fn counts(&self, frame: u32) -> (u32, u32) {
        let page = self.pages[frame as usize];
        let halvings = u32::from(self.epoch.wrapping_sub((page >> 16) as u16));
        let of = |count: u32| (count & 255).checked_shr(halvings).unwrap_or(0);
        (of(page), of(page >> 8))
    }

    /// Loads and stores together.
    #[inline]
    pub fn total(&self, frame: u32) -> u32 {
        let (loads, stores) = self.counts(frame);
        loads + stores
    }

    /// Is the page in `frame` hot?
    #[inline]
    pub fn is_hot(&self, frame: u32) -> bool {
        self.hot(self.counts(frame))
    }

    /// Is it hot by its stores alone?
    #[inline]
    pub fn is_write_hot(&self, frame: u32) -> bool {
        self.counts(frame).1 >= self.thresholds.stores
    }

    /// Counts a sampled access.
    #[inline]
    pub fn add(&mut self, frame: u32, source: Source) -> Change {
        let (mut loads, mut stores) = self.counts(frame);
        let was_hot = self.hot((loads, stores));
        match source {
            Source::Store => stores = (stores + 1).min(255),
            Source::Fast | Source::Slow => loads = (loads + 1).min(255),
        }
        self.put(frame, loads, stores);
        Change {
            became_hot: !was_hot && self.hot((loads, stores)),
            overheated: loads.max(stores) >= self.thresholds.cool,
        }
    }

    /// Halves all counts.
    pub fn cool(&mut self) {
        if self.epoch == u16::MAX {
            // Before epochs run out, once in 65,535 coolings, the pending halvings are applied to every page.
            for frame in 0..self.pages.len() as u32 {
                let (loads, stores) = self.counts(frame);
                let settled = loads | stores << 8;
                // Untouched memory is read, not written, so that it stays untouched.
                if self.pages[frame as usize] != settled {
                    self.pages[frame as usize] = settled;
                }
            }
            self.epoch = 0;
        }
        self.epoch += 1;
        self.coolings += 1;
    }

    /// The page in `frame` is gone.
    #[inline]
    pub fn clear(&mut self, frame: u32) {
        self.pages[frame as usize] = 0;
    }

    /// The page moved: its heat goes with it.
    #[inline]
    pub fn shift(&mut self, from: u32, to: u32) {
        self.pages[to as usize] = std::mem::take(&mut self.pages[from as usize]);
    }

    /// The page is about to move: its heat is expected in `to` and stays in `from`.
    #[inline]
    pub fn copy(&mut self, from: u32, to: u32) {
        self.pages[to as usize] = self.pages[from as usize];
    }

    /// How often all counts were halved.
    pub fn coolings(&self) -> u64 {
        self.coolings
    }

    /// Frames whose pages are hot. Scans every frame: for reports, not for decisions.
    pub fn hot_frames(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.pages.len() as u32).filter(|&frame| self.is_hot(frame))
    }

    /// Limit of the memory that the counts may use, bytes.
    pub fn bytes(&self) -> u64 {
        4 * self.pages.len() as u64
    }

    #[inline]
    fn hot(&self, (loads, stores): (u32, u32)) -> bool {
        loads >= self.thresholds.loads || stores >= self.thresholds.stores
    }

    #[inline]
    fn put(&mut self, frame: u32, loads: u32, stores: u32) {
        self.pages[frame as usize] = loads | stores << 8 | u32::from(self.epoch) << 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Thresholds = Thresholds {
        loads: 8,
        stores: 4,
        cool: 16,
    };

    proptest! {
        #[test]
        fn it_agrees_with_counts_that_are_halved_one_by_one(
            steps in prop::collection::vec((0u8..12, 0u32..5, 0u32..5), 1..400),
            cool in 5u32..20,
        ) {
            let mut fast = Heat::new(5, Thresholds { cool, ..LIMITS });
            let mut slow = [(0u32, 0u32); 5];
            let hot = |(loads, stores): (u32, u32)| loads >= 8 || stores >= 4;
            for (what, page, other) in steps {
                let (at, to) = (page as usize, other as usize);
                match what {
                    0 => {
                        fast.cool();
                        slow.iter_mut().for_each(|(loads, stores)| {
                            *loads /= 2;
                            *stores /= 2;
                        });
                    }
                    1 => {
                        fast.clear(page);
                        slow[at] = (0, 0);
                    }
                    2 if page != other => {
                        fast.shift(page, other);
                        slow[to] = std::mem::take(&mut slow[at]);
                    }
                    3 => {
                        fast.copy(page, other);
                        slow[to] = slow[at];
                    }
                    _ => {
                        let source = [Source::Fast, Source::Slow, Source::Store][what as usize % 3];
                        let was_hot = hot(slow[at]);
                        match source {
                            Source::Store => slow[at].1 += 1,
                            _ => slow[at].0 += 1,
                        }
                        let expected = Change {
                            became_hot: !was_hot && hot(slow[at]),
                            overheated: slow[at].0 >= cool || slow[at].1 >= cool,
                        };
                        prop_assert_eq!(fast.add(page, source), expected);
                    }
                }
                for (page, counts) in (0..).zip(slow) {
                    prop_assert_eq!(fast.counts(page), counts);
                    prop_assert_eq!(fast.total(page), counts.0 + counts.1);
                    prop_assert_eq!((fast.is_hot(page), fast.is_write_hot(page)), (hot(counts), counts.1 >= 4));
                }
            }
        }
    }

    #[test]
    fn counts_survive_the_end_of_all_epochs() {
        let mut heat = Heat::new(2, LIMITS);
        for _ in 0..200 {
            heat.add(0, Source::Fast);
        }
        (0..65_535).for_each(|_| heat.cool());
        assert_eq!(heat.counts(0), (0, 0));
        for _ in 0..300 {
            heat.add(1, Source::Store);
        }
        assert_eq!(heat.counts(1), (0, 255), "counts stop at 255");
        heat.cool();
        assert_eq!((heat.counts(0), heat.counts(1)), ((0, 0), (0, 127)));
        assert_eq!(heat.coolings(), 65_536);
        assert_eq!(heat.hot_frames().collect::<Vec<_>>(), [1]);
    }
}
