//! A replay that ends in time: the beginning of a run, and then windows that are ever further apart. What lies between is only touched:
//! pages, translations and caches are as if it had run, and no time passes.

use crate::schedule::Schedule;
use varve_access::{Kind, Op};

/// Instructions at the beginning that are replayed whole.
const BEGIN: u64 = 32_000_000;
/// The same at the beginning of another part of the run.
const BEGIN_OF_PART: u64 = 8_000_000;
/// Ratio of a window to the part of it that only warms caches.
const WARMS: u64 = 5;
/// Lines of a thread that are not touched again when they were just touched: fewer than a second level holds.
const LINES: usize = 4096;

/// What the replay does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It is measured.
    Measures,
    /// It only touches.
    Skips,
    /// It runs, and warms caches.
    Warms,
}

/// See the module.
pub(super) struct Thin {
    schedule: Schedule,
    pub pace: Pace,
    /// Instructions that it goes on so.
    left: u64,
    /// Instructions so far in this part of the run, of all threads.
    done: u64,
    /// Instructions of the next window.
    window: u64,
    /// Instructions that were skipped before each window, and after the last one.
    pub gaps: Vec<u64>,
    /// By thread, the lines that it touched last, while it skips.
    lines: Vec<Vec<u64>>,
}

impl Thin {
    pub fn new(threads: usize) -> Thin {
        Thin {
            schedule: Schedule::thinning(),
            pace: Pace::Measures,
            left: BEGIN,
            done: 0,
            window: 0,
            gaps: vec![0],
            lines: vec![Vec::new(); threads],
        }
    }

    /// How many of these ops it does as it does now: one at least.
    pub fn fitting(&mut self, ops: &[Op]) -> usize {
        let mut instructions = 0;
        let over = |op: &Op| {
            instructions += u64::from(op.instructions);
            instructions >= self.left
        };
        let fitting = ops.iter().position(over).map_or(ops.len(), |at| at + 1);
        self.left = self.left.saturating_sub(instructions);
        self.done += instructions;
        if let (Pace::Skips, Some(gap)) = (self.pace, self.gaps.last_mut()) {
            *gap += instructions;
        }
        fitting
    }

    /// Whether something else begins here; [`Thin::pace`] says what.
    pub fn turns(&mut self) -> bool {
        if self.left > 0 {
            return false;
        }
        (self.pace, self.left) = match self.pace {
            Pace::Measures => {
                let (gap, window) = self.schedule.next(self.done);
                self.window = window;
                self.lines.iter_mut().for_each(Vec::clear);
                (Pace::Skips, gap.max(1))
            }
            Pace::Skips => (Pace::Warms, (self.window / WARMS).max(1)),
            Pace::Warms => {
                self.gaps.push(0);
                (Pace::Measures, self.window - self.window / WARMS)
            }
        };
        true
    }

    /// Another part of the run begins: windows are close together again.
    pub fn part_begins(&mut self) {
        self.done = 0;
        self.window = BEGIN_OF_PART;
        (self.pace, self.left) = match self.pace {
            Pace::Measures => (Pace::Measures, BEGIN_OF_PART),
            Pace::Skips => (Pace::Warms, 1),
            Pace::Warms => (Pace::Warms, self.left),
        };
    }

    /// What a thread touches in ops that are skipped. Marks stay.
    pub fn touches(&mut self, thread: usize, ops: &[Op]) -> Vec<Op> {
        let lines = &mut self.lines[thread];
        lines.resize(LINES, 0);
        let mut touched = |op: &Op| -> Option<Op> {
            if !op.kind.is_access() {
                let stays = !matches!(op.kind, Kind::Sleep | Kind::Fence);
                return stays.then_some(Op {
                    instructions: 0,
                    ..*op
                });
            }
            let store = matches!(op.kind, Kind::Write | Kind::Update | Kind::NtWrite);
            let line = op.addr & !63 | u64::from(store);
            let last = &mut lines[(op.addr >> 6) as usize % LINES];
            // A line that was stored to is not touched again when it is read.
            if *last == line || *last == line | 1 {
                return None;
            }
            *last = line;
            Some(Op::new(Kind::Touch, op.addr, u16::from(store), 0))
        };
        ops.iter().filter_map(&mut touched).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Instructions of an op in these tests.
    const STEP: u64 = 1000;

    /// How much of these instructions is measured, and in how many windows that begin in them.
    fn run(thin: &mut Thin, instructions: u64) -> (f64, u32) {
        let op = Op::read(0, 8, STEP as u32);
        let (mut measured, mut windows) = (0u64, 0);
        for _ in 0..instructions / STEP {
            assert_eq!(thin.fitting(&[op]), 1);
            measured += u64::from(thin.pace == Pace::Measures);
            windows += u32::from(thin.turns() && thin.pace == Pace::Measures);
        }
        (measured as f64 / (instructions / STEP) as f64, windows)
    }

    #[test]
    fn the_beginning_is_measured_and_then_ever_less() {
        let mut thin = Thin::new(1);
        assert_eq!(run(&mut thin, BEGIN), (1.0, 0));
        let doublings: Vec<_> = (0..7).map(|n| run(&mut thin, BEGIN << n)).collect();
        // Each doubling has windows, some sixteen; of each the share is some half of the one's before.
        assert!(
            doublings
                .iter()
                .all(|(_, windows)| (8..=32).contains(windows)),
            "{doublings:?}"
        );
        let shares = doublings.iter().map(|(share, _)| share);
        assert!(
            shares
                .clone()
                .zip(shares.clone().skip(1))
                .all(|(share, next)| next < share),
            "{doublings:?}"
        );
        assert!(
            doublings[2].0 < 0.1 && doublings[6].0 < 0.01,
            "{doublings:?}"
        );
    }

    #[test]
    fn lines_that_are_touched_over_and_over_are_touched_once() {
        let mut thin = Thin::new(2);
        let ops = [
            Op::read(64, 8, 1),
            Op::read(72, 8, 1),
            Op::write(80, 8, 1),
            Op::read(64, 8, 1),
            Op::mark(Kind::Barrier, 3),
        ];
        let touches = thin.touches(1, &ops);
        assert_eq!(
            touches,
            [
                Op::new(Kind::Touch, 64, 0, 0),
                Op::new(Kind::Touch, 80, 1, 0),
                Op::mark(Kind::Barrier, 3),
            ]
        );
    }

    #[test]
    fn another_part_begins_with_many_windows() {
        let mut thin = Thin::new(1);
        run(&mut thin, BEGIN << 7);
        let before = run(&mut thin, BEGIN);
        thin.part_begins();
        let after = run(&mut thin, BEGIN);
        assert!(before.1 < 3 && after.1 > 16, "{before:?} {after:?}");
        // The part's own beginning is measured whole.
        assert!(
            after.0 > BEGIN_OF_PART as f64 / BEGIN as f64 * 0.9,
            "{before:?} {after:?}"
        );
    }

    proptest! {
        /// Whatever ops come: all are done, and gaps are what was skipped.
        #[test]
        fn gaps_are_what_was_skipped(all in prop::collection::vec(0u32..40_000_000, 1..200)) {
            let mut thin = Thin::new(1);
            let ops: Vec<Op> = all.iter().map(|instructions| Op::read(0, 8, *instructions)).collect();
            let (mut rest, mut skipped) = (&ops[..], 0);
            while !rest.is_empty() {
                let pace = thin.pace;
                let (now, later) = rest.split_at(thin.fitting(rest));
                prop_assert!(!now.is_empty());
                if pace == Pace::Skips {
                    skipped += now.iter().map(|op| u64::from(op.instructions)).sum::<u64>();
                }
                thin.turns();
                rest = later;
            }
            prop_assert_eq!(thin.gaps.iter().sum::<u64>(), skipped);
        }
    }
}
