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

    #[test]
    fn the_beginning_is_measured_and_then_ever_less() {
        let mut thin = Thin::new(1);
        let op = Op::read(0, 8, 1000);
        let mut measured = vec![0u64; 12];
        for at in 0..2_000_000u64 {
            assert_eq!(thin.fitting(&[op]), 1);
            if thin.pace == Pace::Measures {
                measured[at.checked_ilog2().map_or(0, |bits| bits.saturating_sub(9)) as usize] += 1;
            }
            thin.turns();
        }
        // By doubling: all, and then less than half, a quarter, ...
        let share = |bits: u32| measured[bits as usize] as f64 / f64::from(1u32 << (9 + bits));
        assert_eq!(share(5), 1.0);
        assert!(share(7) < 0.15 && share(9) < 0.05, "{measured:?}");
        assert!(share(10) > 0.001);
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
        let op = Op::read(0, 8, 1000);
        let run = |thin: &mut Thin, ops: u32| {
            let mut windows = 0;
            for _ in 0..ops {
                thin.fitting(&[op]);
                windows += u32::from(thin.turns() && thin.pace == Pace::Measures);
            }
            windows
        };
        run(&mut thin, 2_000_000);
        assert!(run(&mut thin, 100_000) < 3);
        thin.part_begins();
        assert!(run(&mut thin, 100_000) > 30);
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
