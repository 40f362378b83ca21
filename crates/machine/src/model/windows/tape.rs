//! Waits that were noted, and are repeated.

use crate::model::time::Ps;

/// Waits that a tape keeps at most: a window or some of a busy instance. An assumption: with half or twice as many, runs are as long
/// to within their spread.
const KEPT: usize = 256;
/// How far a tape is searched for a request of one kind.
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
    /// Notes the wait of a request.
    pub fn note(&mut self, kind: Kind, wait: i64) {
        match self.waits.get_mut(self.noted) {
            Some(old) => *old = (kind, wait),
            None => self.waits.push((kind, wait)),
        }
        self.noted = (self.noted + 1) % KEPT;
    }

    /// The next wait of a kind: those of other kinds before it are passed over, so that what came together comes together again.
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

/// Requests over which the work between two is taken.
const OVER: usize = 32;
/// Phases that are told apart.
const PHASES: usize = 8;

/// What a thread is about, as far as memory feels it: how many instructions it does from one request to the next. Time would not
/// do, since that is more where memory is busy.
#[derive(Clone, Default)]
struct Pace {
    last: [u64; OVER],
    next: usize,
}

impl Pace {
    /// The thread asks again, after so many instructions in all. Returns its phase: another one for each factor of four.
    fn phase(&mut self, instructions: u64) -> usize {
        let then = std::mem::replace(&mut self.last[self.next], instructions);
        self.next = (self.next + 1) % OVER;
        let work = instructions.saturating_sub(then) / OVER as u64;
        (work.max(1).ilog2() as usize / 2).min(PHASES - 1)
    }
}

/// Tapes of what an instance is about at a time.
#[derive(Default)]
pub struct Tapes {
    tapes: [Tape; PHASES],
    paces: Vec<Pace>,
    phase: usize,
}

impl Tapes {
    /// A thread asks for something, after so many instructions.
    pub fn come(&mut self, thread: usize, instructions: u64) {
        if thread >= self.paces.len() {
            self.paces.resize_with(thread + 1, Pace::default);
        }
        self.phase = self.paces[thread].phase(instructions);
    }

    /// Notes the wait of a request.
    pub fn note(&mut self, kind: Kind, wait: Ps, alone: Ps) {
        self.tapes[self.phase].note(kind, wait as i64 - alone as i64);
    }

    /// The next wait of a kind in the phase; if there was none, in the phase that is most like it. None if no request of the kind was ever
    /// noted, or all are far from where the tapes are.
    pub fn repeat(&mut self, kind: Kind) -> Option<i64> {
        let here = self.phase;
        if let Some(wait) = self.tapes[here].repeat(kind) {
            return Some(wait);
        }
        let others = (1..PHASES).flat_map(|d| [here.checked_sub(d), Some(here + d)]);
        others
            .flatten()
            .filter(|&phase| phase < PHASES)
            .find_map(|phase| self.tapes[phase].repeat(kind))
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
        assert_eq!(tape.repeat(1), Some(910), "writes go on where reads are");
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
    fn a_phase_repeats_its_own_waits() {
        let mut tapes = Tapes::default();
        let mut instructions = 0;
        // Works a while, and collects a while: the pace is known after some requests.
        for (step, wait) in [(1000, 5), (4, 70), (1000, 6), (4, 80)] {
            for i in 0..100 {
                instructions += step;
                tapes.come(0, instructions);
                if i >= OVER {
                    tapes.note(0, wait, 0);
                }
            }
        }
        for (step, own) in [(4, 70..=80), (1000, 5..=6)] {
            for i in 0..100 {
                instructions += step;
                tapes.come(0, instructions);
                let wait = tapes.repeat(0).unwrap();
                assert!(i < OVER || own.contains(&wait), "{wait} for {own:?}");
            }
        }
        assert_eq!(tapes.repeat(1), None);
    }
}
