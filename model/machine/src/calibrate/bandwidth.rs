//! Bandwidth by threads, by access size, and by the share of reads.

use super::bench::{Bench, MeasuredMemory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Measurement, Plan};
use crate::Machine;

/// Accesses that are measured, with their names in ids.
const HOWS: [(How, &str); 3] = [
    (How::Read, "read"),
    (How::NtStore, "ntstore"),
    (How::StoreClwb, "clwb"),
];

pub(super) fn all(machine: &Machine, plan: &Plan) -> Vec<Measurement> {
    let mut out: Vec<Measurement> = Vec::new();
    let memories = MeasuredMemory::of(machine);
    for memory in memories {
        if matches!(
            memory,
            MeasuredMemory::RemoteDram | MeasuredMemory::RemotePm
        ) {
            continue;
        }
        for (how, name) in HOWS {
            let (m, p) = (machine.clone(), plan.clone());
            let id = format!("threads/{}/{name}", memory.id());
            let measure = move || by_threads(&m, memory, how, name, &p);
            out.push(Measurement::new(id, measure));
        }
        for (how, name) in HOWS {
            let (m, p) = (machine.clone(), plan.clone());
            let id = format!("size/{}/{name}", memory.id());
            let measure = move || by_size(&m, memory, how, name, &p);
            out.push(Measurement::new(id, measure));
        }
        let (m, p) = (machine.clone(), plan.clone());
        let id = format!("mix/{}", memory.id());
        out.push(Measurement::new(id, move || by_mix(&m, memory, &p)));
    }
    out
}

/// Slow memory takes longer until it is in a steady state.
pub(super) fn bench(machine: &Machine, memory: MeasuredMemory) -> Bench {
    match memory {
        MeasuredMemory::PmDimm => Bench::new(machine).one_dimm().window(400_000),
        MeasuredMemory::Pm | MeasuredMemory::Cached | MeasuredMemory::Cxl => {
            Bench::new(machine).window(200_000)
        }
        _ => Bench::new(machine).window(60_000),
    }
}

/// The same under the conditions of `plan`.
fn planned(machine: &Machine, memory: MeasuredMemory, plan: &Plan) -> Bench {
    let bench = bench(machine, memory);
    match plan.prefetch {
        true => bench.prefetching(machine),
        false => bench,
    }
}

/// Sequential blocks of 256 B, one more thread at a time.
fn by_threads(
    machine: &Machine,
    memory: MeasuredMemory,
    how: How,
    name: &str,
    plan: &Plan,
) -> Curve {
    let mut curve = Curve::new(format!("threads/{}/{name}", memory.id()), "threads", "GB/s");
    let bench = planned(machine, memory, plan);
    for &threads in plan.threads.iter().filter(|&&n| n <= bench.cores()) {
        let p = Pattern::new(how, Order::Sequential, threads, 256, plan.room.of(threads));
        curve.push(threads as f64, bench.alone(p, memory).gbps());
    }
    curve
}

/// Threads that give the best bandwidth: all on DRAM and CXL; on PM two thirds of the cores read, a sixth writes
/// non-temporally, half write with write-backs, on one DIMM 4, 1 and 2 (Yang et al., FAST 2020, figures 4 and 5).
fn best_threads(memory: MeasuredMemory, how: How, cores: usize) -> usize {
    let n = match (memory, how) {
        (MeasuredMemory::PmDimm, How::Read) => 4,
        (MeasuredMemory::PmDimm, How::NtStore) => 1,
        (MeasuredMemory::PmDimm, _) => 2,
        (MeasuredMemory::Pm, How::Read) => cores * 2 / 3,
        (MeasuredMemory::Pm, How::NtStore) => cores / 6,
        (MeasuredMemory::Pm, _) => cores / 2,
        _ => cores,
    };
    n.clamp(1, cores)
}

/// Random blocks of a size.
fn by_size(machine: &Machine, memory: MeasuredMemory, how: How, name: &str, plan: &Plan) -> Curve {
    let mut curve = Curve::new(
        format!("size/{}/{name}", memory.id()),
        "access size, B",
        "GB/s",
    );
    let bench = planned(machine, memory, plan);
    let threads = plan
        .size_threads
        .unwrap_or_else(|| best_threads(memory, how, bench.cores()));
    for &size in &plan.sizes {
        let p = Pattern::new(how, Order::Random, threads, size, plan.room.of(threads));
        curve.push(size as f64, bench.alone(p, memory).gbps());
    }
    curve
}

/// All cores read and write sequentially, prefetchers on, by the share of reads in percent.
fn by_mix(machine: &Machine, memory: MeasuredMemory, plan: &Plan) -> Curve {
    let mut curve = Curve::new(format!("mix/{}", memory.id()), "reads, %", "GB/s");
    let bench = bench(machine, memory).prefetching(machine);
    let cores = bench.cores();
    for &share in &plan.shares {
        let how = How::Mix(share);
        let p = Pattern::new(how, Order::Sequential, cores, 256, plan.room.of(cores));
        curve.push(f64::from(share), bench.alone(p, memory).gbps());
    }
    curve
}
