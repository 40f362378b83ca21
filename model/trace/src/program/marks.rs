//! Parts of a replay, which begin at places that the caller names.

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
    /// Those that have not begun, in order.
    places: Vec<RunPlace>,
    /// Ops of each thread so far.
    done: Vec<u64>,
}

impl Marks {
    pub fn new(threads: usize, places: &[RunPlace]) -> Marks {
        Marks {
            done: vec![0; threads],
            places: places.to_vec(),
        }
    }

    /// How many parts begin before the next op of a thread.
    pub fn due(&mut self, thread: usize) -> usize {
        let before = self.places.len();
        let done = self.done[thread];
        self.places
            .retain(|place| place.thread != thread || place.ops > done);
        before - self.places.len()
    }

    /// How many ops a thread has until the next part.
    pub fn left(&self, thread: usize) -> usize {
        let mine = self.places.iter().filter(|place| place.thread == thread);
        let left = mine.map(|place| (place.ops - self.done[thread]) as usize);
        left.min().unwrap_or(usize::MAX)
    }

    /// A thread has done ops.
    pub fn done(&mut self, thread: usize, ops: usize) {
        self.done[thread] += ops as u64;
    }
}
