//! How much memory each site has over the course of a run, so that the peak of several sites is the most that they have at one
//! time.
//!
//! The course is measured in bytes that come or go, and kept in some hundreds of intervals, which get longer with the run. Of an
//! interval the most of each site is known, and not when in it: the peak of several is exact but for what came and went in one
//! interval.

/// The most intervals.
const MOST: u64 = 512;

/// A site in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    interval: u64,
    /// The most bytes that it had, those with which it entered the interval too.
    most: u64,
    /// What it had when the interval ended.
    last: u64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveBytes {
    /// Bytes that came or went so far.
    turnover: u64,
    /// These per interval are two to this power.
    shift: u32,
    /// The intervals of each site in which its memory changed, in order.
    sites: Vec<Vec<Level>>,
}

impl LiveBytes {
    /// A site now has `live` bytes, `change` more or fewer than before.
    pub fn set(&mut self, site: u32, live: u64, change: u64) {
        self.turnover += change;
        while self.turnover >> self.shift >= MOST {
            self.shift += 1;
            self.sites.iter_mut().for_each(halve);
        }
        let (at, interval) = (site as usize, self.turnover >> self.shift);
        if at >= self.sites.len() {
            self.sites.resize(at + 1, Vec::new());
        }
        let levels = &mut self.sites[at];
        match levels.last_mut() {
            Some(level) if level.interval == interval => {
                (level.most, level.last) = (level.most.max(live), live);
            }
            before => {
                let most = before.map_or(0, |level| level.last).max(live);
                let last = live;
                levels.push(Level {
                    interval,
                    most,
                    last,
                });
            }
        }
    }

    /// The most bytes that each of some groups has at a time, with the group of each site; none if nothing is known of the course.
    pub fn peaks(&self, groups: usize, of: &[u32]) -> Option<Vec<u64>> {
        if self.sites.is_empty() {
            return None;
        }
        let mut members: Vec<Vec<&[Level]>> = vec![Vec::new(); groups];
        for (levels, &group) in self.sites.iter().zip(of) {
            members[group as usize].push(levels);
        }
        let peaks = members.iter().map(|sites| peak(sites)).collect();
        Some(peaks)
    }
}

/// The most bytes that sites have together.
fn peak(sites: &[&[Level]]) -> u64 {
    // By interval, how much more they have from its end on than before it, and how much more in it alone.
    let (mut steps, mut alone) = ([0i64; MOST as usize], [0i64; MOST as usize]);
    for levels in sites {
        let mut before = 0;
        for level in *levels {
            let (at, last) = (level.interval as usize, level.last as i64);
            alone[at] += level.most as i64 - last;
            steps[at] += last - before;
            before = last;
        }
    }
    let mut live = 0;
    let most = steps.iter().zip(&alone).map(|(step, alone)| {
        live += step;
        live + alone
    });
    most.max().map_or(0, |most| most as u64)
}

/// Two intervals become one.
fn halve(levels: &mut Vec<Level>) {
    levels.iter_mut().for_each(|level| level.interval /= 2);
    levels.dedup_by(|later, kept| {
        let same = later.interval == kept.interval;
        if same {
            (kept.most, kept.last) = (kept.most.max(later.most), later.last);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sites_that_follow_each_other_have_the_peak_of_one() {
        let mut live = LiveBytes::default();
        for site in 0..4 {
            live.set(site, 1000, 1000);
            live.set(site, 0, 1000);
        }
        let peaks = live.peaks(2, &[0, 0, 1, 0]).unwrap();
        assert_eq!(peaks, [1000, 1000]);
        assert_eq!(LiveBytes::default().peaks(1, &[0]), None);
    }

    proptest! {
        /// Against the sum at each step: never less, and more by no more than the turnover of an interval.
        #[test]
        fn peaks_are_those_of_the_sums(
            changes in prop::collection::vec((0u32..6, 0u64..5000), 1..3000), of in prop::collection::vec(0u32..2, 6)
        ) {
            let (mut live, mut now, mut peaks) = (LiveBytes::default(), [0u64; 6], [0u64; 2]);
            let mut own = [0u64; 6];
            for (site, bytes) in changes {
                let at = site as usize;
                live.set(site, bytes, bytes.abs_diff(now[at]));
                now[at] = bytes;
                own[at] = own[at].max(bytes);
                for (group, peak) in peaks.iter_mut().enumerate() {
                    let sum = now.iter().zip(&of).filter(|(_, of)| **of as usize == group);
                    *peak = (*peak).max(sum.map(|(bytes, _)| bytes).sum());
                }
            }
            let found = live.peaks(2, &of).unwrap();
            for (group, (found, peak)) in found.into_iter().zip(peaks).enumerate() {
                prop_assert!(found >= peak && found <= peak + (1 << live.shift), "{} {}", found, peak);
                let all: u64 = own.iter().zip(&of).filter(|(_, of)| **of as usize == group).map(|(peak, _)| peak).sum();
                prop_assert!(found <= all);
            }
        }
    }
}
