//! Memory that is read and written in turn by ordinary stores, on this socket and on another: what databases and services do.

use super::bench::{Bench, MeasuredMemory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Effort, Measurement};
use crate::Machine;

/// Threads, as in figure 17 of the Optane study.
const THREADS: usize = 4;

/// One thread's region: all caches are far smaller.
const REGION: u64 = 256 << 20;

/// Caches are full of written lines after half of it, ns.
const WINDOW_NS: u64 = 20_000_000;

pub(super) fn all(machine: &Machine, effort: Effort) -> Vec<Measurement> {
    let pm = |m: &MeasuredMemory| matches!(m, MeasuredMemory::Pm | MeasuredMemory::RemotePm);
    MeasuredMemory::of(machine)
        .into_iter()
        .filter(pm)
        .map(|memory| {
            let m = machine.clone();
            let id = format!("traffic/{}", memory.id());
            Measurement::new(id, move || by_ratio(&m, memory, effort))
        })
        .collect()
}

/// Reads and writes of memory together in GB/s, by reads for each write.
fn by_ratio(machine: &Machine, memory: MeasuredMemory, effort: Effort) -> Curve {
    let id = format!("traffic/{}", memory.id());
    let mut curve = Curve::new(id, "reads to a write", "GB/s");
    let bench = Bench::new(machine).prefetching(machine).window(WINDOW_NS);
    let ratios: &[u8] = match effort {
        Effort::Quick => &[1, 4],
        Effort::Full => &[1, 2, 3, 4],
    };
    for &reads in ratios {
        let how = How::Traffic(reads);
        let p = Pattern::new(how, Order::Sequential, THREADS, 256, REGION);
        let lines = bench.alone(p, memory).gbps();
        curve.push(
            f64::from(reads),
            lines * f64::from(reads + 1) / f64::from(reads),
        );
    }
    curve
}
