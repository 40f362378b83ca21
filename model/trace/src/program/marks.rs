//! Phases of a replay, which begin at places that the caller names.

use varve_access::{Kind, Op};

/// A place in a run: where a thread has done a number of its ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// Number of the thread.
    pub thread: usize,
    /// Its ops before that.
    pub ops: u64,
}

/// See the module.
pub(super) struct Marks {
    /// By phase, from the first that has a mark on.
    places: Vec<RunPlace>,
    /// Ops of each thread so far.
    done: Vec<u64>,
    /// Which phases have begun.
    begun: Vec<bool>,
}

impl Marks {
    pub fn new(threads: usize, places: Vec<RunPlace>) -> Marks {
        Marks {
            done: vec![0; threads],
            begun: vec![false; places.len()],
            places,
        }
    }

    /// Adds the marks that are due before the next op of a thread, and returns how many ops it has until the next one.
    pub fn due(&mut self, thread: usize, out: &mut Vec<Op>) -> usize {
        let mut left = usize::MAX;
        for (number, place) in self.places.iter().enumerate() {
            if place.thread != thread || self.begun[number] {
                continue;
            }
            match place.ops.checked_sub(self.done[thread]) {
                Some(ops) if ops > 0 => left = left.min(ops as usize),
                _ => {
                    self.begun[number] = true;
                    out.push(Op::mark(Kind::Phase, number as u64 + 1));
                }
            }
        }
        left
    }

    /// A thread has done ops.
    pub fn done(&mut self, thread: usize, ops: usize) {
        self.done[thread] += ops as u64;
    }
}
