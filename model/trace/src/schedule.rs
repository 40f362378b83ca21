//! Which parts of a run are recorded: windows of its work, which is counted in instructions. Pure: nothing here knows of a program or a clock.

use std::time::Duration;
use varve_access::random::Rng;

/// An amount of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Instructions of all threads together.
    Work(u64),
    /// Time while it is recorded.
    Time(Duration),
}

/// Part of a run that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// Windows all over the run that are this share of it together, above 0 and below 1.
    Sample(f64),
    /// All of its first instructions, of this number, and then windows that are ever further apart: of a run that is ten times as long,
    /// hardly more is recorded.
    Thinning(u64),
    /// One window.
    Window {
        /// Part of the run before it.
        skip: Amount,
        /// How long it is; none: to the end.
        length: Option<Amount>,
    },
}

/// The shortest window, and the longest: in the one, warming takes most; in the other, a run is few windows.
const SHORTEST: u64 = 200_000;
const LONGEST: u64 = 10_000_000;
/// Windows that a run has by the time that they grow.
const MANY: f64 = 32.0;

/// Windows of a run of which ever less is recorded: instructions of each, and windows by the time that the run is twice as long.
const EACH: u64 = 500_000;
const BY_DOUBLING: f64 = 16.0;

/// A window that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextWindow {
    /// Instructions until it may open, where the program is in a phase that has too few windows.
    pub from: u64,
    /// Instructions until it opens wherever the program is.
    pub gap: u64,
    /// How long it is.
    pub length: u64,
}

/// Draws where windows of a sample lie, one after the other: each in a stretch of its own, so that they are spread evenly, and
/// anywhere in that, so that they do not go in step with the program; sooner, if the phase of the program has too few.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The share of the run that is recorded; none: ever less.
    share: Option<f64>,
    /// Where the stretch of the last window ends, in instructions of the program.
    end: u64,
    random: Rng,
}

impl Schedule {
    /// A schedule for a share of a run.
    pub fn new(share: f64) -> Schedule {
        Schedule::of(Some(share.clamp(1e-6, 0.999_999)))
    }

    /// A schedule of which ever less is recorded.
    pub fn thinning() -> Schedule {
        Schedule::of(None)
    }

    fn of(share: Option<f64>) -> Schedule {
        Schedule {
            share,
            end: 0,
            random: Rng::from_state(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// After `done` instructions of the program, of which `recorded` are recorded: the next window. Where several threads had a part of
    /// the last one, its stretch is as much longer.
    pub fn next(&mut self, done: u64, recorded: u64) -> NextWindow {
        let stood = self
            .share
            .map_or(self.end, |share| (recorded as f64 / share) as u64);
        let begin = stood.max(done);
        let (length, stretch) = match self.share {
            Some(share) => {
                let length = (begin as f64 * share / MANY) as u64;
                let length = length.clamp(SHORTEST, LONGEST);
                (length, length as f64 / share)
            }
            None => (EACH, begin as f64 * (2f64.powf(1.0 / BY_DOUBLING) - 1.0)),
        };
        let free = (stretch as u64).saturating_sub(length);
        self.end = begin + free + length;
        let from = begin - done;
        NextWindow {
            from,
            gap: from + (free as f64 * self.draw()) as u64,
            length,
        }
    }

    /// A number from 0 to 1.
    fn draw(&mut self) -> f64 {
        self.random.bits() as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any share, the recorded part comes to it in the end, and a run of many windows has some in each of its
        /// tenths.
        #[test]
        fn windows_are_the_share_that_was_asked_for(ppm in 1_000u32..100_000, early: bool, threads in 1u64..8) {
            let share = f64::from(ppm) / 1e6;
            let mut schedule = Schedule::new(share);
            let (mut done, mut recorded, mut last, mut starts) = (0u64, 0u64, 0, Vec::new());
            while starts.len() < 400 {
                let NextWindow { from, gap, length } = schedule.next(done, recorded);
                // Each of the threads has its part of a window.
                let length = threads * length;
                prop_assert!((threads * SHORTEST..=threads * LONGEST).contains(&length) && from <= gap);
                // It may open at any time from the beginning of its stretch on.
                let gap = if early { from } else { gap };
                starts.push(done + gap);
                done += gap + length;
                recorded += length;
                last = length;
            }
            // The run is within the stretch of the last window.
            let ahead = recorded as f64 / share - done as f64;
            prop_assert!((-1.0..=last as f64 / share + 1.0).contains(&ahead), "{ahead}");
            prop_assert!(starts.windows(2).all(|pair| pair[0] + SHORTEST <= pair[1]));
            for tenth in 5..10 {
                let (from, to) = (done / 10 * tenth, done / 10 * (tenth + 1));
                prop_assert!(starts.iter().any(|start| (from..to).contains(start)));
            }
        }

        /// However much was recorded whole: each doubling of the run has some sixteen windows more.
        #[test]
        fn of_a_longer_run_less_is_recorded(whole in 50_000_000u64..2_000_000_000, early: bool) {
            let mut schedule = Schedule::thinning();
            let (mut done, mut windows) = (whole, 0);
            while done < whole << 8 {
                let NextWindow { from, gap, length } = schedule.next(done, 0);
                prop_assert_eq!(length, EACH);
                done += length + if early { from } else { gap };
                windows += 1;
            }
            prop_assert!((122..=132).contains(&windows), "{}", windows);
        }
    }
}
