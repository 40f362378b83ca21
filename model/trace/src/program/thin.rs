//! A replay that ends in time: the beginning of a run, and then windows that are ever further apart. What lies between is only touched:
//! pages, translations and caches are as if it had run, and no time passes.

use super::stretches::equal;
use crate::phases::{Accessed, INTERVAL, Recent, RunPhases};
use crate::schedule::{NextWindow, Schedule};
use crate::writer::WindowShare;
use varve_access::{Kind, Op};

/// Instructions at the beginning that are replayed whole.
const BEGIN: u64 = 32_000_000;
/// The same at the beginning of another part of the run.
const BEGIN_OF_PART: u64 = 8_000_000;
/// Ratio of a window to the part of it that only warms caches.
const WARMS: u64 = 5;

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
    /// Instructions until a window may open sooner than in `left`.
    closed: u64,
    /// Instructions so far in this part of the run, of all threads.
    done: u64,
    /// Instructions of the next window.
    window: u64,
    /// Windows so far.
    windows: u32,
    /// Instructions that were skipped.
    pub skipped: u64,
    phases: Box<RunPhases>,
    /// What was accessed since this interval or window began.
    accessed: Accessed,
    /// By thread, the lines that it touched last.
    recent: Vec<Recent>,
}

impl Thin {
    pub fn new(threads: usize) -> Thin {
        Thin {
            schedule: Schedule::thinning(),
            pace: Pace::Measures,
            left: BEGIN,
            closed: 0,
            done: 0,
            window: 0,
            windows: 0,
            skipped: 0,
            phases: Box::default(),
            accessed: Accessed::default(),
            recent: (0..threads).map(|_| Recent::default()).collect(),
        }
    }

    /// How many of these ops it does as it does now: one at least.
    pub fn fitting(&mut self, ops: &[Op]) -> usize {
        let most = match self.pace {
            Pace::Skips => self.left.min(INTERVAL - self.accessed.instructions),
            Pace::Measures | Pace::Warms => self.left,
        };
        let mut instructions = 0;
        let over = |op: &Op| {
            instructions += u64::from(op.instructions);
            instructions >= most
        };
        let fitting = ops.iter().position(over).map_or(ops.len(), |at| at + 1);
        self.left = self.left.saturating_sub(instructions);
        self.done += instructions;
        self.accessed.instructions += instructions;
        if self.pace == Pace::Skips {
            self.skipped += instructions;
            self.closed = self.closed.saturating_sub(instructions);
        }
        fitting
    }

    /// An interval that was skipped is over. May the next window open, and is it in a phase that has too few?
    fn interval_ends(&mut self) -> bool {
        let interval = std::mem::take(&mut self.accessed);
        self.phases.passed(&interval) && self.closed == 0
    }

    /// Whether something else begins here; [`Thin::pace`] says what.
    pub fn turns(&mut self) -> bool {
        let full = self.pace == Pace::Skips && self.accessed.instructions >= INTERVAL;
        if full && self.interval_ends() {
            self.left = 0;
        }
        if self.left > 0 {
            return false;
        }
        (self.pace, self.left) = match self.pace {
            Pace::Measures => {
                let window = std::mem::take(&mut self.accessed);
                self.phases.window(self.windows, &window);
                let NextWindow { from, gap, length } = self.schedule.next(self.done, 0);
                (self.window, self.closed) = (length, from);
                self.recent.iter_mut().for_each(Recent::renew);
                (Pace::Skips, gap.max(1))
            }
            Pace::Skips => {
                self.interval_ends();
                (Pace::Warms, (self.window / WARMS).max(1))
            }
            Pace::Warms => {
                self.windows += 1;
                (Pace::Measures, self.window - self.window / WARMS)
            }
        };
        true
    }

    /// Another part of the run begins: windows are close together again.
    pub fn part_begins(&mut self) {
        self.done = 0;
        self.window = BEGIN_OF_PART;
        self.schedule = Schedule::thinning();
        if self.pace == Pace::Skips {
            self.interval_ends();
        }
        self.phases.part_begins();
        (self.pace, self.left) = match self.pace {
            Pace::Measures => (Pace::Measures, BEGIN_OF_PART),
            Pace::Skips => (Pace::Warms, 1),
            Pace::Warms => (Pace::Warms, self.left),
        };
    }

    /// What its windows stand for, from 1 on.
    pub fn shares(&self) -> Vec<WindowShare> {
        let mut shares = Vec::new();
        let mut phases = self.phases.clone();
        phases.stand(self.skipped, self.windows, |phase, instructions| {
            shares.push(WindowShare {
                phase,
                instructions,
            });
        });
        match shares.is_empty() {
            true => equal(self.windows, self.skipped),
            false => shares,
        }
    }

    /// Ops of a thread run.
    pub fn sees(&mut self, thread: usize, ops: &[Op]) {
        // The beginning stands for itself.
        if self.windows == 0 && self.pace == Pace::Measures {
            return;
        }
        let recent = &mut self.recent[thread];
        for op in ops.iter().filter(|op| op.kind.is_access()) {
            let store = stores(op);
            let found = recent.see(op.addr, store);
            self.accessed.add(store, found.fresh);
        }
    }

    /// What a thread touches in ops that are skipped. Marks stay.
    pub fn touches(&mut self, thread: usize, ops: &[Op]) -> Vec<Op> {
        let recent = &mut self.recent[thread];
        let accessed = &mut self.accessed;
        let mut touched = |op: &Op| -> Option<Op> {
            if !op.kind.is_access() {
                let stays = !matches!(op.kind, Kind::Sleep | Kind::Fence);
                return stays.then_some(Op {
                    instructions: 0,
                    ..*op
                });
            }
            let store = stores(op);
            let found = recent.note(op.addr, store);
            accessed.add(store, found.fresh);
            (!found.reported).then(|| Op::new(Kind::Touch, op.addr, u16::from(store), 0))
        };
        ops.iter().filter_map(&mut touched).collect()
    }
}

fn stores(op: &Op) -> bool {
    matches!(op.kind, Kind::Write | Kind::Update | Kind::NtWrite)
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
        /// Whatever ops come: all are done, and windows stand for what was skipped.
        #[test]
        fn windows_stand_for_what_was_skipped(all in prop::collection::vec(0u32..40_000_000, 1..200)) {
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
            let shares = thin.shares();
            let stood: u64 = shares.iter().map(|share| share.instructions).sum();
            let rest = skipped - stood;
            prop_assert!(shares.is_empty() || rest < shares.len() as u64, "{rest}");
        }
    }
}
