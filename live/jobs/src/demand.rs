//! A program's demands on memory, by threads and on either memory: measured by `profile`, read by the policies.

use crate::kinds::Memory;
use serde::{Deserialize, Serialize};

/// A program alone on the machine, with a number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Threads.
    pub threads: u32,
    /// How long it took, s.
    pub seconds: f64,
    /// GB/s read from memory; `None` where it could not be measured.
    pub read_gbps: Option<f64>,
    /// GB/s written to memory.
    pub write_gbps: Option<f64>,
    /// GB/s read and written together, where no counter separates the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_gbps: Option<f64>,
}

/// One program's demands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Its name.
    pub name: String,
    /// Memory that it uses, bytes.
    pub bytes: u64,
    /// With all of it in fast, and with all of it in slow memory; by rising threads. Empty where it was not measured.
    pub curves: [Vec<Point>; 2],
    /// With its own memory placed, where its file says how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartialDemand>,
    /// Missing measurements, and why.
    pub missing: Vec<String>,
}

/// A program that is in fast memory in part, by a placement of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartialDemand {
    /// Fast memory that this takes, bytes.
    pub fast_bytes: u64,
    /// By rising threads, as [`Demand::curves`].
    pub curve: Vec<Point>,
}

impl Demand {
    /// The points on a memory.
    pub fn curve(&self, memory: Memory) -> &[Point] {
        &self.curves[memory.index()]
    }

    /// The point with this number of threads, if it was measured.
    pub fn point(&self, memory: Memory, threads: u32) -> Option<&Point> {
        self.curve(memory).iter().find(|p| p.threads == threads)
    }

    /// How long it takes, s, as [`seconds`] reads its curve. `None` where nothing was measured on that memory.
    pub fn seconds(&self, memory: Memory, threads: u32) -> Option<f64> {
        seconds(self.curve(memory), threads)
    }

    /// The same in fast memory in part.
    pub fn seconds_in_part(&self, threads: u32) -> Option<f64> {
        seconds(&self.part.as_ref()?.curve, threads)
    }

    /// Its slowdown in slow memory, with this number of threads.
    pub fn slowdown(&self, threads: u32) -> Option<f64> {
        let fast = self.seconds(Memory::Fast, threads)?;
        Some(self.seconds(Memory::Slow, threads)? / fast).filter(|r| r.is_finite())
    }
    /// Its slowdown in fast memory in part, against all in fast memory, with this number of threads.
    pub fn slowdown_in_part(&self, threads: u32) -> Option<f64> {
        let fast = self.seconds(Memory::Fast, threads)?;
        Some(self.seconds_in_part(threads)? / fast).filter(|r| r.is_finite())
    }
}

/// A program's time in seconds with this number of threads: as measured, on a straight line between measured points, and as with the most
/// threads measured beyond them. `None` where nothing was measured.
pub fn seconds(curve: &[Point], threads: u32) -> Option<f64> {
    let after = curve.partition_point(|p| p.threads < threads);
    match (
        after.checked_sub(1).and_then(|i| curve.get(i)),
        curve.get(after),
    ) {
        (_, Some(p)) if p.threads == threads => Some(p.seconds),
        (Some(a), Some(b)) => {
            let share = f64::from(threads - a.threads) / f64::from(b.threads - a.threads);
            Some(a.seconds + share * (b.seconds - a.seconds))
        }
        (Some(p), None) | (None, Some(p)) => Some(p.seconds),
        (None, None) => None,
    }
}
