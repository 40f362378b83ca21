//! A program's reports of its work.

use std::time::Duration;

/// The program's report at the end of an interval of its work: for a graph engine, a part of the vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Counts up, over all iterations.
    pub id: u64,
    /// Time to load the interval's part of the graph.
    pub load: Duration,
    /// Time to update its vertices.
    pub update: Duration,
    /// When it ended, by the program's clock.
    pub now: Duration,
}

/// Errors in a report.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ReportError {
    /// Reports overtook each other, or one came twice.
    #[error(
        "pima: interval {id} was reported after interval {last}: number intervals upwards over all iterations"
    )]
    Order {
        /// The interval reported.
        id: u64,
        /// The one before.
        last: u64,
    },
    /// The program's clock went backwards.
    #[error("pima: interval {id} ended at {now:?}, before the one that was reported at {last:?}")]
    Clock {
        /// The interval reported.
        id: u64,
        /// When it ended.
        now: Duration,
        /// When the last one did.
        last: Duration,
    },
}
