//! Parts of a replay, which begin at places that the caller names.

/// A place in a run: how many ops each thread has done before it, by number of the thread. A replay is there once all threads
/// are: they need not run side by side as they did when they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPlace(pub Vec<u64>);

/// A place that a replay has not come to.
struct Ahead {
    place: RunPlace,
    /// Threads that are not there.
    missing: usize,
    /// The thread that came there last; none if all are there from the beginning.
    last: Option<usize>,
}

/// See the module.
pub(super) struct Marks {
    /// In order.
    ahead: Vec<Ahead>,
    /// Ops of each thread so far.
    done: Vec<u64>,
}

impl Marks {
    pub fn new(threads: usize, places: &[RunPlace]) -> Marks {
        let ahead = places.iter().map(|place| Ahead {
            place: place.clone(),
            missing: place.0.iter().filter(|ops| **ops > 0).count(),
            last: None,
        });
        Marks {
            ahead: ahead.collect(),
            done: vec![0; threads],
        }
    }

    /// How many parts begin before the next op of a thread: it is the last that came there.
    pub fn due(&mut self, thread: usize) -> usize {
        let is_due =
            |ahead: &&Ahead| ahead.missing == 0 && ahead.last.is_none_or(|last| last == thread);
        // One after the other: another thread may be at the second place before the last one tells of the first.
        let due = self.ahead.iter().take_while(is_due).count();
        self.ahead.drain(..due);
        due
    }

    /// How many ops a thread has until it is at the next place.
    pub fn left(&self, thread: usize) -> usize {
        let done = self.done[thread];
        let mine = self.ahead.iter().map(|ahead| ahead.place.0[thread]);
        let left = mine.filter(|ops| *ops > done).map(|ops| ops - done);
        left.min().map_or(usize::MAX, |left| left as usize)
    }

    /// A thread has done ops.
    pub fn done(&mut self, thread: usize, ops: usize) {
        let before = self.done[thread];
        let after = before + ops as u64;
        self.done[thread] = after;
        for ahead in &mut self.ahead {
            let place = ahead.place.0[thread];
            if before < place && place <= after {
                ahead.missing -= 1;
                ahead.last = Some(thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One child after the other was recorded, and they are replayed side by side.
    #[test]
    fn a_part_begins_once_all_threads_are_there() {
        let places = [
            RunPlace(vec![100, 0, 0]),
            RunPlace(vec![100, 1000, 10]),
            RunPlace(vec![100, 1000, 900]),
        ];
        let mut marks = Marks::new(3, &places);
        assert_eq!((marks.due(0), marks.left(0), marks.left(1)), (0, 100, 1000));
        marks.done(0, 100);
        assert_eq!((marks.due(1), marks.due(0), marks.due(0)), (0, 1, 0));
        assert_eq!(marks.left(0), usize::MAX);
        // The second child is far ahead.
        marks.done(2, 950);
        marks.done(1, 999);
        assert_eq!((marks.due(2), marks.due(1), marks.left(1)), (0, 0, 1));
        marks.done(1, 1);
        assert_eq!((marks.due(2), marks.due(1)), (0, 2));
    }

    /// Two threads are last, each at one place, and the second tells first.
    #[test]
    fn parts_begin_in_order() {
        let mut marks = Marks::new(2, &[RunPlace(vec![10, 5]), RunPlace(vec![10, 6])]);
        marks.done(1, 5);
        marks.done(0, 10);
        marks.done(1, 1);
        assert_eq!((marks.due(1), marks.due(0), marks.due(1)), (0, 1, 1));
    }

    #[test]
    fn a_part_that_begins_with_the_run_is_due_at_once() {
        assert_eq!(Marks::new(2, &[RunPlace(vec![0, 0])]).due(1), 1);
        assert_eq!(Marks::new(2, &[]).due(0), 0);
    }
}
