//! Loaded latency: the latency of one chase while other cores read at a limited rate.

use super::bandwidth::bench;
use super::bench::MeasuredMemory;
use super::pattern::{How, Order, Pattern};
use super::{Curve, Measurement, Plan};
use crate::Machine;

/// Instructions between two loads of the threads that make the load, from idle to all out.
const PACES: [u32; 14] = [
    20_000, 5000, 2000, 1000, 700, 500, 350, 250, 180, 120, 80, 50, 25, 2,
];

pub(super) fn all(machine: &Machine, plan: &Plan) -> Vec<Measurement> {
    let mut out: Vec<Measurement> = Vec::new();
    for memory in MeasuredMemory::of(machine) {
        if matches!(memory, MeasuredMemory::PmDimm | MeasuredMemory::Cached) {
            continue;
        }
        let (m, step) = (machine.clone(), plan.pace_step);
        let id = format!("loaded/{}", memory.id());
        out.push(Measurement::new(id, move || loaded(&m, memory, step)));
    }
    out
}

/// One thread chases random lines; all other cores read sequentially, more and more often.
fn loaded(machine: &Machine, memory: MeasuredMemory, step: usize) -> Curve {
    let mut curve = Curve::new(format!("loaded/{}", memory.id()), "bandwidth, GB/s", "ns");
    let bench = bench(machine, memory).prefetching(machine);
    let threads = (bench.cores() - 1).max(1);
    for &pace in PACES.iter().step_by(step).chain(&[2]) {
        // So few pages that their translations are known after the warm-up.
        let chase = Pattern::new(How::Chase, Order::Random, 1, 64, 128 << 20);
        let load = Pattern::new(How::Read, Order::Sequential, threads, 256, 64 << 20).paced(pace);
        let done = bench.run(vec![(chase, memory), (load, memory)]);
        let x = done[0].gbps() + done[1].gbps();
        // Past saturation more pressure gives no more bandwidth: the curve ends where it turns back.
        let ns = done[0].ns_per_access();
        if ns.is_finite() && curve.points.last().is_none_or(|p| x > p.x) {
            curve.push(x, ns);
        }
    }
    curve
}
