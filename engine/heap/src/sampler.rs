//! Plans that go by how the program runs, and not by its objects alone: their inputs, and the sources of these.
//!
//! ```text
//!   the program reports an interval  -> Heap::interval -> Intervals   may have old objects move
//!   a sampler reads what runs        -> Warmth                        what is hot when a collection begins
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::warm::Warmth;
use varve_pima::Entry;
use varve_pima::Tier;
use varve_pima::{Interval, ReportError};

/// The input of a plan from the running program.
#[derive(Clone, Copy)]
pub enum Sampler<'p> {
    /// Intervals of its work, which it reports itself.
    Intervals(&'p dyn Intervals),
    /// Samples of the running method.
    Stacks(&'p Arc<Warmth>),
}

impl<'p> Sampler<'p> {
    /// The receiver of intervals.
    pub fn intervals(self) -> Option<&'p dyn Intervals> {
        match self {
            Sampler::Intervals(told) => Some(told),
            Sampler::Stacks(_) => None,
        }
    }

    /// The receiver of samples of the running method.
    pub fn stacks(self) -> Option<&'p Arc<Warmth>> {
        match self {
            Sampler::Stacks(warmth) => Some(warmth),
            Sampler::Intervals(_) => None,
        }
    }
}

/// A plan that receives intervals of the program's work, and may have old objects move because of them.
pub trait Intervals {
    /// The program finished an interval. `Some` says that old objects are to move to that memory now: everything is
    /// collected, and [`Intervals::moved`] is called then.
    ///
    /// # Errors
    /// If the report is out of order. Nothing changes then.
    fn interval(
        &mut self,
        interval: Interval,
        fast: FastMemory,
    ) -> Result<Option<Tier>, ReportError>;

    /// `bytes` bytes of old objects were moved; the move ended at `now`.
    fn moved(&mut self, now: Duration, bytes: u64);

    /// Every phase that began, in order.
    fn log(&self) -> &[Entry];

    /// Whether it begins its samples together with other instances.
    fn is_coordinated(&self) -> bool {
        false
    }

    /// Whether it waits for [`Intervals::start`].
    fn is_ready(&self) -> bool {
        false
    }

    /// A sample begins: all instances that sample together are ready.
    fn start(&mut self, now: Duration) {
        let _ = now;
    }
}

/// The state of fast memory for a plan that decides whether old objects move there, in bytes. Without a limit it counts as endless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastMemory {
    /// Free for old objects, after reserving room for the next survivors.
    pub left: u64,
    /// Old objects that are elsewhere.
    pub old: u64,
    /// Those of them that are hot, at most.
    pub hot: u64,
}
