//! Recorded waits, which are repeated.

use crate::model::time::Ps;

/// Waits that a tape keeps at most: a window or some of a busy instance. An assumption: with half or twice as many, runs are as long
/// to within their spread.
const KEPT: usize = 256;
/// How far a tape is searched for a request of one kind. An assumption: one in sixty of all that a program asks for.
const SEARCHED: usize = 64;

/// Requests to one memory, near or far, of one kind (read, or how it is written).
pub type Kind = u16;

/// The last waits of all kinds, in the order in which they were. A wait may be less than nothing: the order in which a memory that is
/// alone serves the kinds is not that of a busy one.
#[derive(Default)]
pub struct Tape {
    waits: Vec<(Kind, i64)>,
    noted: usize,
    /// Where the requests of each kind are.
    at: Vec<usize>,
}

impl Tape {
    /// Records the wait of a request.
    pub fn note(&mut self, kind: Kind, wait: i64) {
        match self.waits.get_mut(self.noted) {
            Some(old) => *old = (kind, wait),
            None => self.waits.push((kind, wait)),
        }
        self.noted = (self.noted + 1) % KEPT;
    }

    /// The next wait of a kind. Waits recorded together are replayed together.
    pub fn repeat(&mut self, kind: Kind) -> Option<i64> {
        let number = usize::from(kind);
        if number >= self.at.len() {
            self.at.resize(number + 1, 0);
        }
        let at = &mut self.at[number];
        for _ in 0..self.waits.len().min(SEARCHED) {
            *at += 1;
            if *at >= self.waits.len() {
                *at = 0;
            }
            let (of, wait) = self.waits[*at];
            if of == kind {
                return Some(wait);
            }
        }
        None
    }
}

/// Requests over which the work between two is taken. An assumption: shorter than a window, longer than a run of neighbours.
const OVER: usize = 32;
/// Phases, the last from some 16,000 instructions between two requests on.
const PHASES: usize = 8;

/// Intensity of a thread's memory accesses: the instructions from one request to the next. Time would not do, since
/// that is more where memory is busy.
#[derive(Clone, Default)]
struct Pace {
    last: [u64; OVER],
    next: usize,
    /// When it asked last, and its phase then.
    asked: Option<(Ps, usize)>,
}

impl Pace {
    /// The thread sends another request, after `instructions` instructions in all. Returns its phase: another one for
    /// each factor of four.
    fn phase(&mut self, instructions: u64) -> usize {
        let then = std::mem::replace(&mut self.last[self.next], instructions);
        self.next = (self.next + 1) % OVER;
        let work = instructions.saturating_sub(then) / OVER as u64;
        (work.max(1).ilog2() as usize / 2).min(PHASES - 1)
    }
}

/// Time from request to request, the late ones more.
#[derive(Clone, Copy, Default)]
struct Speed {
    time: f64,
    requests: f64,
}

/// Weight of older times at each window's end, and the part of an error that is corrected there. Assumptions: together
/// some twenty windows.
const REMAINS: f64 = 0.95;
const MENDED: f64 = 0.2;
/// The factor of waits lies between this and its inverse.
const LEAST: f64 = 0.5;

/// Tapes by phase of an instance.
pub struct Tapes {
    tapes: [Tape; PHASES],
    /// How fast it is in windows, and between them, in each phase.
    speeds: [[Speed; 2]; PHASES],
    /// Factor of the waits. Out of step with the requests, they would hold the instance up too long or not long enough.
    factor: f64,
    paces: Vec<Pace>,
    phase: usize,
}

impl Tapes {
    /// Tapes without any wait.
    pub fn new() -> Tapes {
        Tapes {
            tapes: Default::default(),
            speeds: Default::default(),
            factor: 1.0,
            paces: Vec::new(),
            phase: 0,
        }
    }

    /// A thread sends a request at `now`, in a window or not, after `instructions` instructions.
    pub fn come(&mut self, thread: usize, instructions: u64, now: Ps, window: bool) {
        if thread >= self.paces.len() {
            self.paces.resize_with(thread + 1, Pace::default);
        }
        let pace = &mut self.paces[thread];
        self.phase = pace.phase(instructions);
        if let Some((last, phase)) = pace.asked.replace((now, self.phase)) {
            let speed = &mut self.speeds[phase][usize::from(window)];
            speed.time += now.saturating_sub(last) as f64;
            speed.requests += 1.0;
        }
    }

    /// A window has ended: the instance is to be as fast between windows as in them, by and large.
    pub fn settle(&mut self) {
        let (mut in_windows, mut between) = (0.0, 0.0);
        for [b, w] in &mut self.speeds {
            if w.requests >= 1.0 {
                in_windows += b.requests * w.time / w.requests;
                between += b.time;
            }
            for speed in [b, w] {
                speed.time *= REMAINS;
                speed.requests *= REMAINS;
            }
        }
        if between > 0.0 && in_windows > 0.0 {
            let off: f64 = in_windows / between;
            self.factor = (self.factor * off.powf(MENDED)).clamp(LEAST, 1.0 / LEAST);
        }
    }

    /// Records the wait of a request.
    pub fn note(&mut self, kind: Kind, wait: Ps, alone: Ps) {
        self.tapes[self.phase].note(kind, wait as i64 - alone as i64);
    }

    /// The next wait of a kind in the phase; if there was none, in the phase that is most like it. `None` if no wait of
    /// the kind was ever recorded, or all are far from where the tapes are.
    pub fn repeat(&mut self, kind: Kind) -> Option<i64> {
        let here = self.phase;
        let wait = self.tapes[here].repeat(kind).or_else(|| {
            let others = (1..PHASES).flat_map(|d| [here.checked_sub(d), Some(here + d)]);
            let mut others = others.flatten().filter(|&phase| phase < PHASES);
            others.find_map(|phase| self.tapes[phase].repeat(kind))
        })?;
        Some((wait as f64 * self.factor) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_together_comes_together_again() {
        let mut tape = Tape::default();
        for wait in [1, 2, 90, 91, 3] {
            tape.note(0, wait);
            tape.note(1, 10 * wait);
        }
        let reads: Vec<_> = (0..3).map(|_| tape.repeat(0).unwrap()).collect();
        assert_eq!(reads, [2, 90, 91]);
        let writes: Vec<_> = (0..3).map(|_| tape.repeat(1).unwrap()).collect();
        assert_eq!(writes, [10, 20, 900]);
        assert_eq!(tape.repeat(7), None, "no such request was noted");
    }

    #[test]
    fn the_oldest_waits_go() {
        let mut tape = Tape::default();
        (0..KEPT as i64 + 100).for_each(|wait| tape.note(0, wait));
        let all: Vec<_> = (0..KEPT).map(|_| tape.repeat(0).unwrap()).collect();
        assert_eq!(all.iter().min(), Some(&100));
        assert_eq!(all.iter().max(), Some(&(KEPT as i64 + 99)));
    }

    #[test]
    fn waits_are_scaled_until_the_speed_is_that_of_windows() {
        let mut tapes = Tapes::new();
        let (mut now, mut seen) = (0, 0);
        for round in 0..60 {
            let in_window = |i: i32| i < 50;
            for i in 0..250 {
                tapes.come(0, 40 * seen, now, in_window(i));
                // Between windows, a wait costs twice as much as in them.
                now += match in_window(i) {
                    true => {
                        tapes.note(0, 100, 0);
                        200
                    }
                    false => 100 + 2 * tapes.repeat(0).unwrap() as u64,
                };
                seen += 1;
            }
            tapes.settle();
            assert!(
                round < 40 || (tapes.factor - 0.5).abs() < 0.05,
                "{}",
                tapes.factor
            );
        }
    }

    #[test]
    fn a_phase_repeats_its_own_waits() {
        let mut tapes = Tapes::new();
        let mut instructions = 0;
        // Works a while, and collects a while: the pace is known after some requests.
        for (step, wait) in [(1000, 5), (4, 70), (1000, 6), (4, 80)] {
            for i in 0..100 {
                instructions += step;
                tapes.come(0, instructions, 0, true);
                if i >= OVER {
                    tapes.note(0, wait, 0);
                }
            }
        }
        for (step, own) in [(4, 70..=80), (1000, 5..=6)] {
            for i in 0..100 {
                instructions += step;
                tapes.come(0, instructions, 0, true);
                let wait = tapes.repeat(0).unwrap();
                assert!(i < OVER || own.contains(&wait), "{wait} for {own:?}");
            }
        }
        assert_eq!(tapes.repeat(1), None);
    }
}
