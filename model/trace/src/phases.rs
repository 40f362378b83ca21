//! The phases of a run, and the windows of it that stand for them.
//!
//! Intervals of a run are of one phase if they access memory alike, wherever in the run they are: as many lines that were not accessed
//! just before, as many loads, as many stores. SimPoint (Sherwood et al., ASPLOS 2002) goes by the code that runs; what follows from it
//! for memory is counted here. Phases are found while the program runs, so that a window can be opened in a phase that has too few
//! (phase-guided small-sample simulation, Kihm et al., ISPASS 2007), and each window stands for what lies around it *of its phase*.
//!
//! Pure. This file is compiled into the QEMU plugin too, so it uses nothing but `core`; all zero is an empty value of each type.

#![allow(dead_code)] // the programs that include this file use their own parts of it

/// Instructions of an interval.
pub const INTERVAL: u64 = 500_000;
/// An interval that is shorter tells too little to be of a phase.
const SHORT: u64 = INTERVAL / 4;
/// Phases of a run, at most. What would be another one is of the phase that is most like it.
const PHASES: usize = 32;
/// Windows whose phases are known, at most: the usual ones of a run are some hundred. Where there are more, all count equally.
pub const WINDOWS: usize = 4096;
/// The most by which an interval differs from its phase, in the units of [`Accessed::signature`]. An assumption, as the number of phases
/// is: of a half, a third and a quarter of a power of two, this had the least error on six programs (xz, sort, gcc, python3, sqlite3,
/// and one that takes turns).
const ALIKE: u64 = 128;
/// Lines of [`Recent`]: fewer than a second level of cache holds.
const RECENT: usize = 4096;

/// What a part of a run accessed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Accessed {
    /// Its length.
    pub instructions: u64,
    /// Accesses that were counted.
    pub accesses: u64,
    /// Those that store.
    pub stores: u64,
    /// Those of lines that were not accessed just before.
    pub fresh: u64,
}

impl Accessed {
    /// An access.
    #[inline(always)]
    pub fn add(&mut self, store: bool, fresh: bool) {
        self.accesses += 1;
        self.stores += u64::from(store);
        self.fresh += u64::from(fresh);
    }

    /// What makes phases differ: the logarithm to base 2 of fresh lines per 1000 instructions (and one), and four times the loads and
    /// stores per instruction, each times 256. So twice the misses weigh as much as one access more in four instructions.
    fn signature(&self) -> [u64; 3] {
        let all = self.instructions.max(1);
        let fresh = log2(1000 * self.fresh + all) - log2(all);
        [fresh, 1024 * self.accesses / all, 1024 * self.stores / all]
    }
}

/// The logarithm to base 2, times 256, straight between powers of two.
fn log2(number: u64) -> u64 {
    let whole = 63 - u64::from((number | 1).leading_zeros());
    let rest = match whole {
        0..8 => number << (8 - whole),
        _ => number >> (whole - 8),
    };
    256 * whole + (rest & 255)
}

/// The lines that a thread accessed last, in a small direct-mapped filter.
#[repr(C)]
pub struct Recent {
    /// A line, with bit 0 where it was stored to; bits 1 to 5 are the generation in which it was reported.
    lines: [u64; RECENT],
    generation: u64,
}

/// Bits of a generation, and how many there are.
const GENERATION: u64 = 0x3e;
const GENERATIONS: u64 = 32;

/// What an access found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The line was not accessed just before; one that was stored to counts as read too.
    pub fresh: bool,
    /// It was, and has been since [`Recent::renew`].
    pub reported: bool,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            lines: [0; RECENT],
            generation: 0,
        }
    }
}

impl Recent {
    /// An access of a thread whose lines are reported.
    #[inline(always)]
    pub fn note(&mut self, address: u64, store: bool) -> Found {
        self.access(address, store, self.generation)
    }

    /// An access of one whose lines are not.
    #[inline(always)]
    pub fn see(&mut self, address: u64, store: bool) -> Found {
        self.access(
            address,
            store,
            (self.generation + GENERATIONS - 1) % GENERATIONS,
        )
    }

    #[inline(always)]
    fn access(&mut self, address: u64, store: bool, generation: u64) -> Found {
        let line = address & !63 | u64::from(store);
        let entry = &mut self.lines[(address >> 6) as usize % RECENT];
        let (known, generation) = (*entry & !GENERATION, generation << 1);
        let fresh = known != line && known != line | 1;
        let reported = !fresh && *entry & GENERATION == generation;
        if !reported {
            *entry = if fresh { line } else { known } | generation;
        }
        Found { fresh, reported }
    }

    /// All lines are to be reported again.
    pub fn renew(&mut self) {
        self.generation = (self.generation + 1) % GENERATIONS;
        // An entry that is as old as that would look like a new one.
        if self.generation == 0 {
            self.lines.fill(0);
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct RunPhase {
    /// Sums of the signatures of its intervals.
    sums: [u64; 3],
    intervals: u64,
    /// Instructions of its intervals and windows.
    instructions: u64,
    windows: u64,
    /// Its last window.
    last: u32,
    /// Instructions since then that no window stands for yet.
    pending: u64,
}

/// The phases of a run, and what its windows stand for.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct RunPhases {
    count: u32,
    all: [RunPhase; PHASES],
    instructions: u64,
    windows: u64,
    /// By window from 1 on, instructions outside of windows that it stands for.
    stands: [u64; WINDOWS],
    /// Its phase, from 1 on; 0 if that is not known.
    of: [u8; WINDOWS],
}

impl Default for RunPhases {
    fn default() -> RunPhases {
        RunPhases {
            count: 0,
            all: [RunPhase::default(); PHASES],
            instructions: 0,
            windows: 0,
            stands: [0; WINDOWS],
            of: [0; WINDOWS],
        }
    }
}

impl RunPhases {
    /// An interval outside of windows is over. Does its phase have too few windows: none, or one fewer than its share?
    pub fn passed(&mut self, interval: &Accessed) -> bool {
        // What is short goes to all windows in the end.
        if interval.instructions < SHORT {
            return false;
        }
        let number = self.phase_of(interval);
        let phase = &mut self.all[number];
        phase.pending += interval.instructions;
        let share = u128::from(phase.instructions) * u128::from(self.windows);
        phase.windows == 0 || share >= u128::from(phase.windows + 1) * u128::from(self.instructions)
    }

    /// A window is over. Only the first of its number counts, and one that is short has no phase.
    pub fn window(&mut self, number: u32, window: &Accessed) {
        let at = number as usize;
        if !(1..WINDOWS).contains(&at) || self.of[at] != 0 || window.instructions < SHORT {
            return;
        }
        let of = self.phase_of(window);
        let phase = &mut self.all[of];
        let pending = core::mem::take(&mut phase.pending);
        let before = if phase.windows > 0 { pending / 2 } else { 0 };
        self.stands[phase.last as usize] += before;
        self.stands[at] += pending - before;
        self.of[at] = of as u8 + 1;
        (phase.windows, phase.last) = (phase.windows + 1, number);
        self.windows += 1;
    }

    /// What comes is another part of the run: windows of what came before do not stand for it.
    pub fn part_begins(&mut self) {
        self.settle();
        for phase in &mut self.all {
            (phase.windows, phase.instructions) = (0, 0);
        }
        (self.windows, self.instructions) = (0, 0);
    }

    /// The run is over, in which `passed` instructions were in no window. Of each window: its phase, from 1 on, or 0 if that is not
    /// known; and the instructions outside of windows that it stands for. Nothing if no window has a phase, or there are too many.
    pub fn stand(&mut self, passed: u64, windows: u32, mut each: impl FnMut(u32, u64)) {
        self.settle();
        let all: u64 = self.stands.iter().sum();
        let windows = windows as usize;
        if all == 0 || windows >= WINDOWS {
            return;
        }
        // Intervals that are short, and phases without a window, are divided as the rest is.
        let scaled = |sum: u64| (u128::from(sum) * u128::from(passed) / u128::from(all)) as u64;
        let mut sum = 0;
        for at in 1..=windows {
            let before = scaled(sum);
            sum += self.stands[at];
            each(u32::from(self.of[at]), scaled(sum) - before);
        }
    }

    /// What no window stands for yet is of the last one of its phase.
    fn settle(&mut self) {
        for phase in self.all.iter_mut().filter(|phase| phase.windows > 0) {
            self.stands[phase.last as usize] += core::mem::take(&mut phase.pending);
        }
    }

    /// The phase of an interval: the one that it is most like, or a new one. It is counted in it.
    fn phase_of(&mut self, interval: &Accessed) -> usize {
        let signature = interval.signature();
        let count = self.count as usize;
        let far = |phase: &RunPhase| -> u64 {
            let mean = phase.sums.iter().map(|sum| sum / phase.intervals.max(1));
            mean.zip(signature).map(|(a, b)| a.abs_diff(b)).sum()
        };
        let (mut number, mut nearest) = (count, u64::MAX);
        for (at, phase) in self.all[..count].iter().enumerate() {
            let far = far(phase);
            if far < nearest {
                (number, nearest) = (at, far);
            }
        }
        if nearest > ALIKE && count < PHASES {
            number = count;
            self.count += 1;
        }
        let phase = &mut self.all[number];
        for (sum, part) in phase.sums.iter_mut().zip(signature) {
            *sum += part;
        }
        phase.intervals += 1;
        phase.instructions += interval.instructions;
        self.instructions += interval.instructions;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An interval with this many fresh lines per 1000 instructions.
    fn interval(fresh: u64) -> Accessed {
        Accessed {
            instructions: INTERVAL,
            accesses: INTERVAL / 3,
            stores: INTERVAL / 10,
            fresh: fresh * INTERVAL / 1000,
        }
    }

    /// Phase and share of each window.
    fn stand(mut phases: RunPhases, passed: u64, windows: u32) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        phases.stand(passed, windows, |phase, stands| all.push((phase, stands)));
        all
    }

    #[test]
    fn logarithms_are_straight_between_powers_of_two() {
        let powers = [1, 2, 4, 1 << 20, 1 << 40].map(log2);
        assert_eq!(powers, [0, 256, 512, 20 * 256, 40 * 256]);
        assert_eq!([3, 6, 3 << 30].map(log2), [384, 640, 31 * 256 + 128]);
        assert!((1..100_000).all(|n| log2(n) <= log2(n + 1)));
    }

    #[test]
    fn windows_stand_for_what_is_like_them() {
        let mut phases = RunPhases::default();
        // Both phases are new, and each has a window when it comes.
        assert!(phases.passed(&interval(1)));
        phases.window(1, &interval(1));
        for _ in 0..8 {
            assert!(phases.passed(&interval(30)), "it has no window");
            phases.passed(&interval(1));
        }
        phases.window(2, &interval(30));
        let all = stand(phases, 17 * INTERVAL, 2);
        assert_eq!(all, [(1, 9 * INTERVAL), (2, 8 * INTERVAL)]);
    }

    #[test]
    fn what_is_between_two_windows_of_a_phase_is_half_of_each() {
        let mut phases = RunPhases::default();
        phases.window(1, &interval(5));
        for _ in 0..4 {
            phases.passed(&interval(5));
        }
        phases.window(2, &interval(5));
        // Another thread had its part of the window, too.
        phases.window(2, &interval(50));
        phases.passed(&interval(5));
        let all = stand(phases, 5 * INTERVAL, 2);
        assert_eq!(all, [(1, 2 * INTERVAL), (1, 3 * INTERVAL)]);
    }

    #[test]
    fn lines_are_fresh_once_and_reported_again() {
        let mut recent = Recent::default();
        let found = |fresh, reported| Found { fresh, reported };
        assert_eq!(recent.note(64, false), found(true, false));
        assert_eq!(recent.note(72, false), found(false, true));
        assert_eq!(recent.note(64, true), found(true, false), "stored to");
        assert_eq!(recent.note(64, false), found(false, true));
        recent.renew();
        // In a window it is seen, and reported after it all the same.
        assert!(!recent.see(64, false).fresh);
        assert_eq!(recent.note(64, false), found(false, false));
        assert_eq!(recent.note(64, true), found(false, true));
        for _ in 0..GENERATIONS {
            recent.renew();
        }
        assert!(!recent.note(64, false).reported);
    }

    #[test]
    fn more_windows_than_are_known_count_equally() {
        let mut phases = RunPhases::default();
        for window in 1..=WINDOWS as u32 {
            phases.passed(&interval(5));
            phases.window(window, &interval(5));
        }
        let passed = WINDOWS as u64 * INTERVAL;
        assert_eq!(stand(phases.clone(), passed, WINDOWS as u32), []);
        assert_eq!(stand(phases, passed, 9).len(), 9);
    }

    proptest! {
        /// Whatever a run accesses: what windows stand for is all that was in none.
        #[test]
        fn nothing_is_lost(run in prop::collection::vec((0u64..200, 0u8..10), 1..300), rest in 0u64..1_000_000) {
            let (mut phases, mut passed, mut windows) = (RunPhases::default(), 0, 0);
            for (fresh, kind) in run {
                match kind {
                    0 => {
                        windows += 1;
                        phases.window(windows, &interval(fresh));
                    }
                    1 => phases.part_begins(),
                    _ => {
                        phases.passed(&interval(fresh));
                        passed += INTERVAL;
                    }
                }
            }
            let all = stand(phases, passed + rest, windows);
            if !all.is_empty() {
                prop_assert_eq!(all.len(), windows as usize);
                prop_assert_eq!(all.iter().map(|of| of.1).sum::<u64>(), passed + rest);
            }
        }

        /// Two equal halves of a run, one of each of two phases in any order, are told by a window of each.
        #[test]
        fn shares_are_those_of_the_phases(order in Just([[1u64; 50], [60; 50]].concat()).prop_shuffle()) {
            let mut phases = RunPhases::default();
            let mut windows = 0;
            for fresh in order {
                if phases.passed(&interval(fresh)) {
                    windows += 1;
                    phases.window(windows, &interval(fresh));
                }
            }
            let all = stand(phases, 100 * INTERVAL, windows);
            let of = |phase| all.iter().filter(|of| of.0 == phase).map(|of| of.1).sum::<u64>();
            prop_assert_eq!((of(1), of(2)), (50 * INTERVAL, 50 * INTERVAL));
        }
    }
}
