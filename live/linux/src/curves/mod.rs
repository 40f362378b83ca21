//! The classic curves of a memory system, measured on this machine: idle latency by pattern and memory, loaded latency,
//! bandwidth by threads, access size and share of reads. Ids and points are those of the curves of the model, so that
//! both can stand in one table.

mod free;
mod measure;
mod pair;
mod pattern;
mod plan;

pub use measure::measure;
pub use pair::{PairMode, side_by_side};
pub use plan::{Effort, MeasuredNode, Plan};

use serde::{Deserialize, Serialize};

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LivePoint {
    /// Place on the curve's axis; the number of the point on an axis of names.
    pub x: f64,
    /// The same in words.
    pub at: String,
    /// Median of the runs, in the curve's unit.
    pub median: f64,
    /// Least of the runs.
    pub least: f64,
    /// Most of the runs.
    pub most: f64,
}

impl LivePoint {
    /// How far the runs are apart, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        (self.most - self.least) / self.median * 100.0
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveCurve {
    /// Name, such as `threads/dram/ntstore`.
    pub id: String,
    /// The quantity of the axis, with its unit.
    pub axis: String,
    /// Unit of the values: `ns` or `GB/s`.
    pub unit: String,
    /// The points, by ascending `x`.
    pub points: Vec<LivePoint>,
}
