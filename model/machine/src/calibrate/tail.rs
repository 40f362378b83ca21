//! How long single writes of PM take at most, by the size of the region that is written again and again.

use super::bench::{Bench, MeasuredMemory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Measurement};
use crate::Machine;

/// Regions, bytes. On DIMMs that are not interleaved a region is one stretch of media.
const REGIONS: [u64; 5] = [256, 4 << 10, 64 << 10, 256 << 10, 4 << 20];

/// Virtual time in which a small region is written some 50,000 times, ns.
const WINDOW_NS: u64 = 6_000_000;

pub(super) fn all(machine: &Machine) -> Vec<Measurement> {
    if !MeasuredMemory::of(machine).contains(&MeasuredMemory::PmDimm) {
        return Vec::new();
    }
    let m = machine.clone();
    vec![Measurement::new("overwrite/pm-dimm", move || longest(&m))]
}

/// One thread writes blocks of 256 B non-temporally, a fence after each, over and over: the longest that a block takes.
fn longest(machine: &Machine) -> Curve {
    let mut curve = Curve::new("overwrite/pm-dimm", "region, B", "ns");
    let bench = Bench::new(machine).one_dimm().window(WINDOW_NS);
    for region in REGIONS {
        let p = Pattern::new(How::NtStore, Order::Sequential, 1, 256, region);
        let done = bench.alone(p.fenced().timed(), MeasuredMemory::PmDimm);
        curve.push(region as f64, done.block_ns(1.0).map_or(0.0, f64::from));
    }
    curve
}
