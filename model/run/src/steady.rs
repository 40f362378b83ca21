//! The steady state of a recorded run: the part in which a program does the same all the time, after its start-up. A service spends
//! months in it, and a recording some seconds.
//!
//! It is found by what is accessed, as SimPoint (Sherwood et al., ASPLOS 2002) finds phases by the code that runs. The run is divided
//! into intervals. Two parts of it are alike if they spread their loads and stores in the same way over the regions of memory. The
//! steady state is the longest part
//!
//! - all of whose eighths are like the whole of it;
//! - in which hardly a page is accessed for the first time;
//! - that follows a start-up, in which pages are accessed for the first time;
//! - after which little comes: what a program does when it ends.
//!
//! A run without such a part has no steady state that is known.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use varve_machine::model::Outcome;
use varve_trace::{RunIntervals, RunPlace, TraceReader};

/// Pages that may be accessed for the first time in it, as a share of all.
const NEW_PAGES: f64 = 0.02;
/// Its parts.
const PARTS: usize = 8;
/// The least windows that it has, where the run is known by windows.
const WINDOWS: usize = 5;
/// The most by which a part may differ from the whole: the share of accesses that go elsewhere.
const DIFFERENT: f64 = 0.2;
/// An interval at the edge that differs by more is not of it.
const EDGE: f64 = 0.5;
/// The least share of the run's intervals that it has.
const LEAST: f64 = 0.1;
/// The most that may come after it, as a share of the run's intervals.
const AFTER: f64 = 0.25;
/// A start-up that is shorter, as a share of the run's intervals, is none.
const NO_START: f64 = 0.02;
/// Intervals of the start-up that may have no new page, as a share.
const QUIET: f64 = 0.5;

/// The steady state of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyPart {
    /// Where it begins.
    pub begin: RunPlace,
    /// Where it ends; none if that is the end of the run.
    pub end: Option<RunPlace>,
    /// Accesses before it, as a share of the run's.
    pub before: f64,
    /// Accesses in it, as a share of the run's.
    pub share: f64,
    /// Pages that were accessed before it, as a share of all.
    pub pages_before: f64,
}

/// What is known of the steady state of a run beside its measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyRun {
    /// How long the whole run took, s.
    pub whole_seconds: f64,
    /// Accesses before the steady state, as a share of the run's, 0 to 1.
    pub before: f64,
    /// Accesses in it, as a share of the run's, 0 to 1.
    pub share: f64,
    /// Pages that were accessed before it, as a share of all, 0 to 1.
    pub pages_before: f64,
}

impl SteadyPart {
    /// Where a replay has its phases: start-up, this, and the end.
    pub(crate) fn places(&self) -> Vec<RunPlace> {
        [Some(&self.begin), self.end.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// What is known of it beside the measurements of a replay with these phases.
    pub(crate) fn run(&self, outcome: &Outcome) -> SteadyRun {
        SteadyRun {
            whole_seconds: outcome.ns as f64 / 1e9,
            before: self.before,
            share: self.share,
            pages_before: self.pages_before,
        }
    }
}

/// Makes the steady state the last phase of a replay that has the phases of [`SteadyPart::places`], and returns its number; none if the
/// replay did not come to it.
pub(crate) fn ends_with(outcome: &mut Outcome) -> Option<usize> {
    let steady = outcome.phases.iter().position(|phase| phase.number == 1)?;
    outcome.phases.truncate(steady + 1);
    Some(steady)
}

/// The course of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// It is too short to tell, or only a part of a run.
    Unknown,
    /// It is steady from the beginning on.
    Even,
    /// A start-up, and then this.
    Steady(SteadyPart),
    /// What it accesses changes to the end, or it takes new memory all the time.
    Changing,
}

impl Course {
    /// The course of a recorded run. A replay says where a trace is damaged, and goes as far.
    pub fn of(reader: &TraceReader) -> Course {
        RunIntervals::read(reader).map_or(Course::Unknown, |intervals| course(&intervals))
    }

    /// The part of the run that is measured, if it is not the whole.
    pub fn steady(&self) -> Option<&SteadyPart> {
        match self {
            Course::Steady(part) => Some(part),
            Course::Unknown | Course::Even | Course::Changing => None,
        }
    }
}

/// The course of a run.
pub fn course(intervals: &RunIntervals) -> Course {
    let all = intervals.all.len();
    if all == 0 {
        return Course::Unknown;
    }
    let sums = Sums::of(intervals);
    let Some(part) = longest(&sums) else {
        return Course::Changing;
    };
    let part = sums.without_edges(part);
    // Intervals that begin at one place are of one window.
    let mut windows = intervals.begins[part.clone()].to_vec();
    windows.dedup();
    if windows.len() < WINDOWS {
        return Course::Changing;
    }
    if part.start as f64 <= NO_START * all as f64 {
        return Course::Even;
    }
    let accesses = |part: Range<usize>| sums.accesses(part) / sums.accesses(0..all);
    Course::Steady(SteadyPart {
        begin: intervals.begins[part.start].clone(),
        end: intervals.begins.get(part.end).cloned(),
        before: accesses(0..part.start),
        share: accesses(part.clone()),
        pages_before: sums.new_pages(0..part.start) / sums.new_pages(0..all),
    })
}

/// The longest part that is a steady state.
fn longest(sums: &Sums) -> Option<Range<usize>> {
    let all = sums.len();
    let least = ((all as f64 * LEAST) as usize).max(PARTS);
    let first_end = all - (all as f64 * AFTER) as usize;
    let mut best: Option<Range<usize>> = None;
    for start in 0..all.saturating_sub(least) {
        if !sums.is_start_up(start) {
            continue;
        }
        for end in (first_end.max(start + least)..=all).rev() {
            if best.as_ref().is_some_and(|best| best.len() >= end - start) {
                break;
            }
            if sums.is_alike(start..end) {
                best = Some(start..end);
            }
        }
    }
    best
}

/// Sums over the intervals before each, so that those of a part are differences.
struct Sums {
    /// By interval, accesses of each region: loads and stores.
    regions: Vec<Vec<f64>>,
    new_pages: Vec<f64>,
}

impl Sums {
    fn of(intervals: &RunIntervals) -> Sums {
        let mut sums = Sums {
            regions: vec![vec![0.0; 2 * intervals.regions]],
            new_pages: vec![0.0],
        };
        for (at, interval) in intervals.all.iter().enumerate() {
            let mut regions = sums.regions[at].clone();
            for (region, accesses) in &interval.regions {
                for (kind, count) in accesses.iter().enumerate() {
                    regions[2 * *region as usize + kind] += f64::from(*count);
                }
            }
            sums.regions.push(regions);
            sums.new_pages
                .push(sums.new_pages[at] + interval.new_pages as f64);
        }
        sums
    }

    fn len(&self) -> usize {
        self.new_pages.len() - 1
    }

    fn new_pages(&self, part: Range<usize>) -> f64 {
        self.new_pages[part.end] - self.new_pages[part.start]
    }

    fn accesses(&self, part: Range<usize>) -> f64 {
        self.of_regions(part).sum()
    }

    fn of_regions(&self, part: Range<usize>) -> impl Iterator<Item = f64> {
        let (from, to) = (&self.regions[part.start], &self.regions[part.end]);
        from.iter().zip(to).map(|(from, to)| to - from)
    }

    /// The share of the accesses that go elsewhere in one part than in another.
    fn difference(&self, one: Range<usize>, other: Range<usize>) -> f64 {
        let (sum, others) = (
            self.accesses(one.clone()).max(1.0),
            self.accesses(other.clone()).max(1.0),
        );
        let each = self.of_regions(one).zip(self.of_regions(other));
        each.map(|(a, b)| (a / sum - b / others).abs()).sum::<f64>() / 2.0
    }

    /// Whether what comes before an interval may be a start-up: pages are accessed for the first time in most of it, and hardly one
    /// after it.
    fn is_start_up(&self, end: usize) -> bool {
        let all = self.new_pages(0..self.len());
        let quiet = (0..end).filter(|&at| self.new_pages(at..at + 1) < 1e-4 * all);
        self.new_pages(end..self.len()) <= NEW_PAGES * all
            && quiet.count() as f64 <= QUIET * end as f64
    }

    /// Whether all eighths of a part are like the whole.
    fn is_alike(&self, part: Range<usize>) -> bool {
        let bound = |number: usize| part.start + part.len() * number / PARTS;
        let alike = |number: usize| {
            self.difference(bound(number)..bound(number + 1), part.clone()) <= DIFFERENT
        };
        // The first and the last one differ most often.
        [0, PARTS - 1].into_iter().all(alike) && (1..PARTS - 1).all(alike)
    }

    /// A part without intervals at its edges that are not like it.
    fn without_edges(&self, part: Range<usize>) -> Range<usize> {
        let unlike = |at: &usize| self.difference(*at..at + 1, part.clone()) > EDGE;
        // Where all are unlike the whole, phases take turns, and none of them is the edge.
        let most = part.len() / PARTS;
        let start = part.clone().take(most).take_while(unlike).count() + part.start;
        let end = part.end - part.clone().rev().take(most).take_while(unlike).count();
        // What is before and after it may reach into the first and the last one.
        let before = usize::from(start > 0);
        let after = usize::from(end < self.len());
        start + before..end - after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use varve_trace::Interval;

    /// Intervals by what each accesses: new pages, and loads by region.
    fn run(all: &[(u64, &[u32])]) -> RunIntervals {
        let interval = |(new_pages, regions): &(u64, &[u32])| Interval {
            new_pages: *new_pages,
            accesses: 1000 * regions.len() as u64,
            regions: regions
                .iter()
                .map(|region| (*region, [1000, *region]))
                .collect(),
        };
        let begin = |number| RunPlace(vec![1000 * number as u64]);
        RunIntervals {
            begins: (0..all.len()).map(begin).collect(),
            all: all.iter().map(interval).collect(),
            regions: 64,
        }
    }

    fn times(count: usize, what: (u64, &[u32])) -> Vec<(u64, &[u32])> {
        vec![what; count]
    }

    fn steady(all: &[(u64, &[u32])]) -> Course {
        course(&run(all))
    }

    fn places(course: Course) -> (u64, Option<u64>) {
        match course {
            Course::Steady(part) => (part.begin.0[0] / 1000, part.end.map(|end| end.0[0] / 1000)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_follows_the_first_touches_is_steady() {
        let run = [times(60, (1000, &[1])), times(60, (0, &[2, 3]))].concat();
        let course = steady(&run);
        let Course::Steady(part) = &course else {
            panic!("{course:?}")
        };
        assert!((0.6..0.7).contains(&part.share), "{part:?}");
        assert_eq!(part.pages_before, 1.0);
        assert_eq!(places(course), (61, None));
    }

    #[test]
    fn what_a_program_does_at_its_end_is_not_steady() {
        let run = [
            times(30, (1000, &[1])),
            times(80, (0, &[2, 3])),
            times(10, (0, &[1, 4])),
        ]
        .concat();
        assert_eq!(places(steady(&run)), (31, Some(109)));
    }

    #[test]
    fn phases_that_return_are_one_steady_state() {
        let turns: Vec<_> = (0..40)
            .flat_map(|_| [(0, &[2u32, 3][..]), (0, &[4, 5])])
            .collect();
        let one_by_one = [times(40, (1000, &[1])), turns.clone()].concat();
        let turns: Vec<_> = turns
            .chunks(2)
            .flat_map(|pair| [pair[0], pair[0], pair[1], pair[1]])
            .collect();
        let longer = [times(40, (1000, &[1])), turns].concat();
        assert!(matches!(steady(&longer), Course::Steady(_)));
        let run = one_by_one;
        let (begin, end) = places(steady(&run));
        assert!((41..43).contains(&begin) && end.is_none(), "{begin}");
    }

    #[test]
    fn hot_memory_that_changes_once_is_no_steady_state() {
        let run = [
            times(20, (1000, &[1])),
            times(50, (0, &[2, 3])),
            times(50, (0, &[4, 5])),
        ]
        .concat();
        assert_eq!(steady(&run), Course::Changing);
    }

    #[test]
    fn a_program_that_always_takes_new_memory_has_none() {
        assert_eq!(steady(&times(120, (100, &[1, 2]))), Course::Changing);
    }

    #[test]
    fn a_program_that_begins_at_once_is_even() {
        let run = [times(1, (1000, &[1])), times(120, (0, &[1, 2]))].concat();
        assert_eq!(steady(&run), Course::Even);
        assert_eq!(steady(&[]), Course::Unknown);
    }

    proptest! {
        /// Whatever a run accesses: what is called steady is a part of it, with the share that it says.
        #[test]
        fn the_steady_state_is_a_part(all in prop::collection::vec((0u64..100, prop::collection::vec(0u32..64, 1..4)), 0..140)) {
            let all: Vec<(u64, &[u32])> = all.iter().map(|(pages, regions)| (*pages, &regions[..])).collect();
            if let Course::Steady(part) = steady(&all) {
                prop_assert!(part.share > 0.0 && part.before > 0.0 && part.before + part.share <= 1.0 + 1e-9);
                prop_assert!(part.end.is_none_or(|end| end.0[0] > part.begin.0[0]));
            }
        }
    }
}
