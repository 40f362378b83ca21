//! The classic curves of a memory system, measured on the model the way published studies measured real machines:
//! idle latency by pattern and memory, loaded latency, bandwidth by threads and access size, read/write mixes, other
//! sockets' memory, the longest writes.
//!
//! [`curves`] measures, [`published`] gives published curves of the same machine, [`table`] puts both side by side.
//! Everything here is plain data, so that curves of a live machine can stand in the same table.

mod bandwidth;
mod bench;
mod interference;
mod latency;
mod loaded;
mod pattern;
mod plan;
mod published;
mod remote;
pub mod sweep;
mod table;
mod tail;
mod traffic;

pub use bench::{Bench, MeasuredMemory};
pub use pattern::{How, Order, Pattern};
pub use plan::{Effort, Plan, Room};
pub use published::{PublishedCurve, published};
pub use table::{CurveErrors, Row, summaries, table};

use crate::Machine;
use serde::{Deserialize, Serialize};

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Place on the curve's axis; the number of the point on an axis of names.
    pub x: f64,
    /// The same in words, such as `24`, `4KiB` or `DRAM read, random`.
    pub at: String,
    /// Measured value, in the curve's unit.
    pub value: f64,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name by which published figures refer to it, such as `threads/pm/ntstore`.
    pub id: String,
    /// Quantity on the axis, with its unit, such as `threads` or `access size, B`.
    pub axis: String,
    /// Unit of the values: `ns` or `GB/s`.
    pub unit: String,
    /// The points, by ascending `x`.
    pub points: Vec<Point>,
}

impl Curve {
    /// An empty curve.
    pub fn new(id: impl Into<String>, axis: &str, unit: &str) -> Curve {
        Curve {
            id: id.into(),
            axis: axis.into(),
            unit: unit.into(),
            points: Vec::new(),
        }
    }

    /// Appends a point of an axis of numbers.
    pub fn push(&mut self, x: f64, value: f64) {
        self.points.push(Point {
            x,
            at: format!("{x}"),
            value,
        });
    }

    /// Appends a point of an axis of names.
    pub fn push_named(&mut self, at: impl Into<String>, value: f64) {
        self.points.push(Point {
            x: self.points.len() as f64,
            at: at.into(),
            value,
        });
    }

    /// The value at a point of that name.
    pub fn named(&self, at: &str) -> Option<f64> {
        self.points.iter().find(|p| p.at == at).map(|p| p.value)
    }

    /// The value at `x` on a straight line between the neighbouring points; `None` outside of the curve.
    pub fn at(&self, x: f64) -> Option<f64> {
        let after = self.points.iter().position(|p| p.x >= x)?;
        let b = &self.points[after];
        if b.x == x || after == 0 {
            return (b.x == x).then_some(b.value);
        }
        let a = &self.points[after - 1];
        Some(a.value + (b.value - a.value) * (x - a.x) / (b.x - a.x))
    }
}

/// A curve that can be measured.
pub struct Measurement {
    /// Id of the curve.
    pub id: String,
    measure: Box<dyn Fn() -> Curve>,
}

impl Measurement {
    fn new(id: impl Into<String>, measure: impl Fn() -> Curve + 'static) -> Measurement {
        Measurement {
            id: id.into(),
            measure: Box::new(measure),
        }
    }

    /// Measures it. Deterministic.
    pub fn run(&self) -> Curve {
        (self.measure)()
    }
}

/// Every curve that `machine` has the memory for, to be measured one by one: so that progress can be shown between them.
pub fn measurements(machine: &Machine, effort: Effort) -> Vec<Measurement> {
    let mut all = planned(machine, &Plan::published(effort));
    all.insert(1, latency::access(machine));
    all.extend(interference::all(machine, effort));
    all.extend(remote::all(machine, effort));
    all.extend(traffic::all(machine, effort));
    all.extend(tail::all(machine));
    all
}

/// The curves that a [`Plan`] names, at its points and under its conditions.
pub fn planned(machine: &Machine, plan: &Plan) -> Vec<Measurement> {
    let mut all = latency::all(machine, plan);
    all.extend(bandwidth::all(machine, plan));
    all.extend(loaded::all(machine, plan));
    all
}

/// Measures every curve that `machine` has the memory for.
pub fn curves(machine: &Machine, effort: Effort) -> Vec<Curve> {
    measurements(machine, effort)
        .iter()
        .map(Measurement::run)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_straight_line_between_its_points() {
        let mut c = Curve::new("c", "threads", "GB/s");
        c.push(1.0, 10.0);
        c.push(3.0, 30.0);
        assert_eq!(c.at(1.0), Some(10.0));
        assert_eq!(c.at(2.0), Some(20.0));
        assert_eq!(c.at(3.0), Some(30.0));
        assert_eq!(c.at(0.5), None);
        assert_eq!(c.at(3.5), None);
    }
}
