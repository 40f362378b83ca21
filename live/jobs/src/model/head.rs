//! The first part of a program: enough to see how fast it runs.

use varve_access::{Op, Program, Region, Stretch};

/// A program whose threads each end after a number of accesses.
pub struct Head {
    inner: Box<dyn Program>,
    left: Vec<u64>,
}

impl Head {
    /// The first `accesses` of a program, an equal part of each thread.
    pub fn new(inner: Box<dyn Program>, accesses: u64) -> Head {
        let threads = inner.threads().max(1);
        Head {
            left: vec![(accesses / threads as u64).max(1); threads],
            inner,
        }
    }
}

impl Program for Head {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn threads(&self) -> usize {
        self.left.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.inner.regions()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        if self.left[thread] == 0 {
            return false;
        }
        let more = self.inner.fill(thread, now, out);
        let accesses = out.iter().filter(|op| op.kind.is_access()).count() as u64;
        self.left[thread] = self.left[thread].saturating_sub(accesses);
        more
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        self.inner.stretches()
    }

    fn failure(&self) -> Option<String> {
        self.inner.failure()
    }
}
