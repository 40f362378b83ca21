//! Conflicts in a DRAM cache: pages that share a bin with more pages than it holds at once.
//!
//! Counted over a mapping, and expected by chance, in closed form, to compare with.

use serde::Serialize;

use crate::topology::{NodeFrames, Topology};

/// Conflicts of a mapping, over all cached nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conflicts {
    /// Pages behind a DRAM cache.
    pub pages: u64,
    /// Bins of the cache.
    pub bins: u64,
    /// Bins with at least one page.
    pub bins_used: u64,
    /// Bins by the number of their pages: `[empty, with one, with two, ...]`.
    pub bins_by_pages: Vec<u64>,
    /// Pages in bins with more pages than ways.
    pub pages_in_conflict: u64,
    /// Hot pages.
    pub hot: u64,
    /// Hot pages in bins with more hot pages than ways.
    pub hot_in_conflict: u64,
    /// Hot pages that would have to move to end all conflicts between hot pages.
    pub hot_to_move: u64,
}

impl Conflicts {
    /// Counts over used frames and whether the page in each is hot. Frames of nodes without a cache are left out.
    pub fn count(topology: &Topology, pages: impl IntoIterator<Item = (u32, bool)>) -> Conflicts {
        // One pair (pages, hot pages) per bin of each node, nodes one after the other.
        let mut places = Vec::new();
        let (mut first_frame, mut first_bin) = (0u32, 0usize);
        for node in &topology.nodes {
            places.push((first_frame, node, first_bin));
            first_frame += node.frames;
            first_bin += node.bins.unwrap_or(0) as usize;
        }
        // Zeroed memory costs nothing where it is not touched: only bins with pages are scanned.
        let mut bins = vec![[0u32; 2]; first_bin];
        let mut used: Vec<(usize, u32)> = Vec::new();
        for (frame, hot) in pages {
            let Some(&(first, node, first_bin)) = places
                .iter()
                .find(|(first, node, _)| frame.wrapping_sub(*first) < node.frames)
            else {
                continue;
            };
            if let Some(count) = node.bins {
                let at = first_bin + ((frame - first) % count) as usize;
                let [pages, hots] = &mut bins[at];
                if *pages == 0 {
                    used.push((at, node.ways));
                }
                *pages += 1;
                *hots += u32::from(hot);
            }
        }
        let mut all = Conflicts {
            bins: bins.len() as u64,
            ..Conflicts::default()
        };
        for &(at, ways) in &used {
            let [pages, hot] = bins[at];
            all.add(pages, hot, ways);
        }
        let empty = (bins.len() - used.len()) as u64;
        if all.bins_by_pages.is_empty() && empty > 0 {
            all.bins_by_pages.push(0);
        }
        all.bins_by_pages
            .iter_mut()
            .take(1)
            .for_each(|n| *n = empty);
        all
    }

    fn add(&mut self, pages: u32, hot: u32, ways: u32) {
        let at = pages as usize;
        self.bins_by_pages
            .resize(self.bins_by_pages.len().max(at + 1), 0);
        self.bins_by_pages[at] += 1;
        self.pages += u64::from(pages);
        self.bins_used += u64::from(pages > 0);
        self.hot += u64::from(hot);
        if pages > ways {
            self.pages_in_conflict += u64::from(pages);
        }
        if hot > ways {
            self.hot_in_conflict += u64::from(hot);
            self.hot_to_move += u64::from(hot - ways);
        }
    }

    /// Share of the cache's bins that have a page, 0 to 1.
    pub fn used_share(&self) -> f64 {
        share(self.bins_used, self.bins)
    }

    /// Share of the hot pages that are in conflict with hot pages, 0 to 1.
    pub fn hot_conflict_share(&self) -> f64 {
        share(self.hot_in_conflict, self.hot)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Expected values for pages in frames drawn at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Bins with at least one page.
    pub bins_used: f64,
    /// Pages in bins with more pages than ways.
    pub pages_in_conflict: f64,
    /// Share of the hot pages in bins with more hot pages than ways, 0 to 1.
    pub hot_in_conflict: f64,
}

impl Expected {
    /// For `pages` pages, of which `hot` are hot, in frames of `node` drawn at random without replacement; exact,
    /// also where some bins have a frame more than others. Zero without a cache.
    pub fn by_chance(node: &NodeFrames, pages: u64, hot: u64) -> Expected {
        let mut sum = Expected {
            bins_used: 0.0,
            pages_in_conflict: 0.0,
            hot_in_conflict: 0.0,
        };
        let (Some(bins), frames) = (node.bins, u64::from(node.frames)) else {
            return sum;
        };
        let pages = pages.min(frames);
        let bins = u64::from(bins);
        let (deep, shallow) = (frames % bins, bins - frames % bins);
        for (bins, depth) in [(deep, frames / bins + 1), (shallow, frames / bins)] {
            if bins == 0 || depth == 0 {
                continue;
            }
            sum.bins_used += bins as f64 * (1.0 - fewer(1, depth, pages, frames));
            // A page has company when `ways` of the others are in the other frames of its bin.
            let here = (bins * depth) as f64 / frames as f64;
            let alone = |others: u64| fewer(node.ways, depth - 1, others, frames - 1);
            if pages > 0 {
                sum.pages_in_conflict += pages as f64 * here * (1.0 - alone(pages - 1));
            }
            if hot > 0 {
                sum.hot_in_conflict += here * (1.0 - alone(hot.min(pages) - 1));
            }
        }
        sum
    }
}

/// Probability that at least `ways` of `others` pages in a bin are hot, when each is with probability `hot`: the chance
/// that a hot page meets them (Johnny Cache, sections 3 and 5.2.3).
pub fn meets_hot(others: u32, hot: f64, ways: u32) -> f64 {
    let mut counts = vec![0.0; ways as usize];
    start(&mut counts);
    for _ in 0..others {
        step(&mut counts, |_| hot);
    }
    1.0 - counts.iter().sum::<f64>()
}

/// Probability that fewer than `limit` of `depth` frames are among `drawn` of `frames` frames.
fn fewer(limit: u32, depth: u64, drawn: u64, frames: u64) -> f64 {
    let mut counts = vec![0.0; limit as usize];
    start(&mut counts);
    for seen in 0..depth {
        let left = (frames - seen) as f64;
        step(&mut counts, |already| {
            (drawn.saturating_sub(already as u64) as f64 / left).min(1.0)
        });
    }
    counts.iter().sum()
}

fn start(counts: &mut [f64]) {
    if let Some(none) = counts.first_mut() {
        *none = 1.0;
    }
}

/// One more frame: probabilities of 0, 1, 2, ... hits so far become those after it.
fn step(counts: &mut [f64], hit: impl Fn(usize) -> f64) {
    for already in (0..counts.len()).rev() {
        let p = hit(already);
        if already + 1 < counts.len() {
            counts[already + 1] += counts[already] * p;
        }
        counts[already] *= 1.0 - p;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_own_arithmetic() {
        // Sections 3 and 5.2.1: twice the cache; the one other page of a bin is hot with 5 or 10 %.
        assert!((meets_hot(1, 0.05, 1) - 0.05).abs() < 1e-12);
        assert!((meets_hot(1, 0.10, 1) - 0.10).abs() < 1e-12);
        // Section 5.2.3: ten times the cache, 2 % hot: "a 16 % probability".
        let nine_others = meets_hot(9, 0.02, 1);
        assert!((0.16..0.17).contains(&nine_others), "{nine_others}");
        // A second way takes nearly all of it.
        assert!(meets_hot(9, 0.02, 2) < 0.015);
        assert_eq!(meets_hot(9, 0.02, 0), 1.0);
    }

    #[test]
    fn chance_is_exact_on_a_case_small_enough_to_enumerate() {
        // 7 frames in 3 bins (0: 0 3 6, 1: 1 4, 2: 2 5), every choice of 4 of them, the first 2 chosen hot.
        let node = NodeFrames {
            frames: 7,
            fast: false,
            socket: 0,
            bins: Some(3),
            ways: 1,
            dimms: 0,
        };
        for ways in 1..3 {
            let node = NodeFrames { ways, ..node };
            let topology = Topology {
                page_bytes: 4096,
                nodes: vec![node],
            };
            let (mut cases, mut used, mut pages, mut hot) = (0.0, 0.0, 0.0, 0.0);
            for choice in 0..7u32.pow(4) {
                let frames: Vec<u32> = (0..4).map(|digit| choice / 7u32.pow(digit) % 7).collect();
                if (0..4).any(|i| frames[..i].contains(&frames[i])) {
                    continue;
                }
                let mapping = (0..4).map(|i| (frames[i], i < 2));
                let counted = Conflicts::count(&topology, mapping);
                cases += 1.0;
                used += counted.bins_used as f64;
                pages += counted.pages_in_conflict as f64;
                hot += counted.hot_conflict_share();
            }
            let expected = Expected::by_chance(&node, 4, 2);
            assert!((expected.bins_used - used / cases).abs() < 1e-9);
            assert!((expected.pages_in_conflict - pages / cases).abs() < 1e-9);
            assert!((expected.hot_in_conflict - hot / cases).abs() < 1e-9);
        }
    }

    #[test]
    fn conflicts_are_counted_per_bin_and_ways() {
        let node = NodeFrames {
            frames: 12,
            fast: false,
            socket: 0,
            bins: Some(4),
            ways: 1,
            dimms: 0,
        };
        let plain = NodeFrames { bins: None, ..node };
        let topology = Topology {
            page_bytes: 4096,
            nodes: vec![plain, node],
        };
        // Bin 0: three pages, two hot. Bin 1: two pages, one hot. Bin 2: one hot page. And two pages elsewhere.
        let mapping = [
            (12, true),
            (16, true),
            (20, false),
            (13, true),
            (17, false),
            (14, true),
            (0, true),
            (5, false),
        ];
        let counted = Conflicts::count(&topology, mapping);
        let expected = Conflicts {
            pages: 6,
            bins: 4,
            bins_used: 3,
            bins_by_pages: vec![1, 1, 1, 1],
            pages_in_conflict: 5,
            hot: 4,
            hot_in_conflict: 2,
            hot_to_move: 1,
        };
        assert_eq!(counted, expected);
        assert_eq!(
            (counted.used_share(), counted.hot_conflict_share()),
            (0.75, 0.5)
        );
        let two_ways = NodeFrames { ways: 2, ..node };
        let topology = Topology {
            page_bytes: 4096,
            nodes: vec![plain, two_ways],
        };
        let counted = Conflicts::count(&topology, mapping);
        assert_eq!((counted.pages_in_conflict, counted.hot_in_conflict), (3, 0));
    }
}
