//! The program reports the end of an interval of its work, and old objects move if the plan says so.

use std::time::Duration;

use crate::heap::Heap;
use crate::instances::Seat;
use crate::mutator::Mutator;
use crate::observer::Observer;
use crate::plan::Places;
use crate::roots::Roots;
use crate::stats::{Cause, Kind};
use varve_pima::Tier;
use varve_pima::{Interval, ReportError};

impl<P: Places, O: Observer> Heap<P, O> {
    /// Tells the plan that the program finished an interval of its work, and moves old objects if the plan says so.
    /// `now` gives the time after that, by the same clock as the report's. Gives the memory that objects moved to.
    ///
    /// # Errors
    /// If the report is out of order.
    pub fn interval(
        &mut self,
        mutator: &mut Mutator,
        interval: Interval,
        roots: &mut dyn Roots,
        now: impl FnOnce() -> Duration,
    ) -> Result<Option<Tier>, ReportError> {
        let fast = self.fast_memory();
        let Some(told) = self.plan.plan_mut().intervals_mut() else {
            return Ok(None);
        };
        let to = told.interval(interval, fast)?;
        if let Some(to) = to {
            let moved = |heap: &Self| heap.stats.moved[usize::from(to.0)];
            let before = moved(self);
            self.collect_for(mutator, Kind::Full, Cause::Moving, roots);
            let bytes = moved(self) - before;
            if let Some(told) = self.plan.plan_mut().intervals_mut() {
                told.moved(now(), bytes);
            }
        }
        if let Some(told) = self.plan.plan_mut().intervals_mut()
            && told.is_ready()
            && self.seat.as_mut().is_none_or(Seat::may_start)
        {
            told.start(interval.now);
        }
        Ok(to)
    }
}
