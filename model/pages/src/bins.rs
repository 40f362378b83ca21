//! Bins of a DRAM cache in order of heat (Johnny Cache, Listing 1).
//!
//! A bin is the place of one page in the cache (of `ways` pages in an N-way cache). Bins with free frames stand in the
//! `avail` list of their heat, the others in its `full` list; within a list the bin that has waited longest comes
//! first. Halving the heat of every bin joins each two lists into one, whatever the number of bins: a bin keeps its
//! heat with the epoch it dates from, and each access to it first applies the halvings since then.

use crate::bitmap::Bitmap;
use crate::lists::Lists;

/// Highest number of heat levels.
pub const MAX_LEVELS: u32 = 1 << 15;

const HEAT: u32 = MAX_LEVELS - 1;
const FULL: u32 = 1 << 15;

/// Bins by heat. Heat saturates at the highest level.
#[derive(Clone, Debug)]
pub struct Bins {
    /// Heat in 15 bits, then whether the bin is full, then the epoch of the heat in 16 bits.
    state: Vec<u32>,
    epoch: u16,
    levels: u32,
    /// `avail` lists first, then `full` lists.
    lists: Lists,
    /// Levels whose `avail` list is empty.
    empty: Bitmap,
    /// Bins from here on were never touched: cold, available, in no list, and before all others.
    untouched: u32,
}

impl Bins {
    /// `bins` cold bins with free frames, and heat from 0 to `levels - 1` (at most [`MAX_LEVELS`] levels).
    pub fn new(bins: u32, levels: u32) -> Bins {
        let levels = levels.clamp(1, MAX_LEVELS);
        let mut empty = Bitmap::new(levels as usize);
        (0..levels as usize).for_each(|level| empty.insert(level));
        Bins {
            state: vec![0; bins as usize],
            epoch: 0,
            levels,
            lists: Lists::new(bins as usize, 2 * levels as usize),
            empty,
            untouched: 0,
        }
    }

    /// Number of bins.
    pub fn len(&self) -> u32 {
        self.state.len() as u32
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    /// Heat of `bin`.
    #[inline]
    pub fn heat(&self, bin: u32) -> u32 {
        let state = self.state[bin as usize];
        let halvings = u32::from(self.epoch.wrapping_sub((state >> 16) as u16));
        (state & HEAT).checked_shr(halvings).unwrap_or(0)
    }

    /// Has `bin` no free frame?
    #[inline]
    pub fn is_full(&self, bin: u32) -> bool {
        self.state[bin as usize] & FULL != 0
    }

    /// The coldest bin with a free frame; among equals, the one that has waited longest.
    #[inline]
    pub fn coldest(&self) -> Option<u32> {
        if self.untouched < self.len() {
            return Some(self.untouched);
        }
        let level = self.empty.first_free(0)?;
        self.lists.front(level)
    }

    /// Was `bin` never touched? Such bins are taken one after the other.
    #[inline]
    pub fn is_untouched(&self, bin: u32) -> bool {
        bin >= self.untouched
    }

    /// Gives `bin` a new heat and sets whether it is full; it waits from now.
    #[inline]
    pub fn set(&mut self, bin: u32, heat: u32, full: bool) {
        if bin < self.untouched {
            let (level, was_full) = (self.heat(bin), self.is_full(bin));
            self.lists.remove(self.list(level, was_full), bin);
            if !was_full && self.lists.is_empty(level as usize) {
                self.empty.insert(level as usize);
            }
        } else {
            // Only `coldest` leads to untouched bins, one after the other.
            debug_assert_eq!(bin, self.untouched);
            self.untouched = bin + 1;
        }
        let level = heat.min(self.levels - 1);
        self.state[bin as usize] =
            level | if full { FULL } else { 0 } | u32::from(self.epoch) << 16;
        self.lists.push_back(self.list(level, full), bin);
        if !full {
            self.empty.remove(level as usize);
        }
    }

    /// No bin has a free frame from now on, and all are cold. For bins none of which was ever touched.
    pub fn fill(&mut self) {
        while self.untouched < self.len() {
            self.set(self.untouched, 0, true);
        }
    }

    /// Halves the heat of every bin, rounding down. Takes time by the number of levels, not of bins.
    pub fn cool(&mut self) {
        if self.epoch == u16::MAX {
            self.settle();
        }
        self.epoch += 1;
        let levels = self.levels as usize;
        for full in [0, levels] {
            for level in 0..levels.div_ceil(2) {
                self.lists.append(full + level, full + 2 * level);
                if 2 * level + 1 < levels {
                    self.lists.append(full + level, full + 2 * level + 1);
                }
            }
        }
        for level in 0..levels {
            match self.lists.is_empty(level) {
                true => self.empty.insert(level),
                false => self.empty.remove(level),
            }
        }
    }

    /// Applies the pending halvings to each bin, before epochs run out: once in 65,535 coolings.
    fn settle(&mut self) {
        for bin in 0..self.untouched {
            let heat = self.heat(bin);
            let state = &mut self.state[bin as usize];
            *state = heat | *state & FULL;
        }
        self.epoch = 0;
    }

    /// Bins with at least `heat`, hottest first, at most `limit`.
    pub fn hottest(&self, heat: u32, limit: usize) -> Vec<u32> {
        let levels = (heat..self.levels).rev().map(|level| level as usize);
        levels
            .flat_map(|level| {
                let full = level + self.levels as usize;
                self.lists.iter(level).chain(self.lists.iter(full))
            })
            .take(limit)
            .collect()
    }

    /// How many bins have each heat, from 0 to the highest that occurs.
    pub fn histogram(&self) -> Vec<u32> {
        let mut bins = vec![self.len() - self.untouched];
        for bin in 0..self.untouched {
            let heat = self.heat(bin) as usize;
            bins.resize(bins.len().max(heat + 1), 0);
            bins[heat] += 1;
        }
        bins
    }

    /// Limit of the memory that they may use, bytes.
    pub fn bytes(&self) -> u64 {
        4 * self.state.len() as u64 + self.lists.bytes() + self.empty.bytes()
    }

    #[inline]
    fn list(&self, level: u32, full: bool) -> usize {
        (level + if full { self.levels } else { 0 }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Bins;
    use proptest::prelude::*;

    /// The obvious way: every bin in one line, oldest first.
    struct Slow {
        line: Vec<(u32, u32, bool)>,
        levels: u32,
    }

    impl Slow {
        fn coldest(&self) -> Option<u32> {
            let avail = self.line.iter().filter(|(_, _, full)| !full);
            // `min_by_key` keeps the first of equals: the one that has waited longest.
            avail
                .min_by_key(|(_, heat, _)| *heat)
                .map(|&(bin, _, _)| bin)
        }

        fn set(&mut self, bin: u32, heat: u32, full: bool) {
            self.line.retain(|&(b, _, _)| b != bin);
            self.line.push((bin, heat.min(self.levels - 1), full));
        }

        /// Lists are joined pairwise, so within a new level the colder half comes first.
        fn cool(&mut self) {
            self.line.sort_by_key(|&(_, heat, _)| heat);
            self.line.iter_mut().for_each(|(_, heat, _)| *heat /= 2);
        }
    }

    fn step() -> impl Strategy<Value = (u8, prop::sample::Index, u32, bool)> {
        (
            0u8..12,
            any::<prop::sample::Index>(),
            0u32..20,
            any::<bool>(),
        )
    }

    proptest! {
        #[test]
        fn they_agree_with_a_line_of_bins(
            count in 1u32..9,
            levels in 1u32..14,
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let mut fast = Bins::new(count, levels);
            let mut slow = Slow { line: (0..count).map(|b| (b, 0, false)).collect(), levels };
            let mut touched = 0;
            for (what, bin, heat, full) in steps {
                match what {
                    0 => {
                        fast.cool();
                        slow.cool();
                    }
                    1..6 => {
                        if let Some(bin) = fast.coldest() {
                            touched = touched.max(bin + 1);
                            fast.set(bin, heat, full);
                            slow.set(bin, heat, full);
                        }
                    }
                    _ if touched > 0 => {
                        let bin = bin.index(touched as usize) as u32;
                        fast.set(bin, heat, full);
                        slow.set(bin, heat, full);
                    }
                    _ => {}
                }
                prop_assert_eq!(fast.coldest(), slow.coldest());
                for &(bin, heat, full) in &slow.line {
                    prop_assert_eq!((fast.heat(bin), fast.is_full(bin)), (heat, full));
                }
                let hottest = slow.line.iter().filter(|b| b.1 >= 2).count();
                if touched == count {
                    prop_assert_eq!(fast.hottest(2, usize::MAX).len(), hottest);
                }
                prop_assert_eq!(fast.histogram().iter().sum::<u32>(), count);
            }
        }
    }

    #[test]
    fn epochs_may_run_out_without_anyone_noticing() {
        let mut bins = Bins::new(2, 64);
        bins.set(0, 40, false);
        bins.set(1, 3, false);
        for _ in 0..65_535 {
            bins.cool();
        }
        bins.set(0, 40, false);
        assert_eq!((bins.heat(0), bins.heat(1)), (40, 0));
        bins.cool();
        assert_eq!((bins.heat(0), bins.heat(1)), (20, 0));
        assert_eq!(bins.coldest(), Some(1));
        assert_eq!(bins.hottest(20, 9), [0]);
    }
}
