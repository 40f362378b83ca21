//! Memory of another socket, by threads and by the share of reads, and at its best.

use super::bandwidth::bench;
use super::bench::{Bench, MeasuredMemory};
use super::latency::idle_latency;
use super::pattern::{How, Order, Pattern};
use super::{Curve, Effort, Measurement, Plan};
use crate::Machine;

/// One thread's region.
const REGION: u64 = 64 << 20;

const HOWS: [(How, &str); 2] = [(How::Read, "read"), (How::NtStore, "ntstore")];

pub(super) fn all(machine: &Machine, effort: Effort) -> Vec<Measurement> {
    let mut out = Vec::new();
    for memory in MeasuredMemory::of(machine) {
        if !matches!(
            memory,
            MeasuredMemory::RemoteDram | MeasuredMemory::RemotePm
        ) {
            continue;
        }
        for (how, name) in HOWS {
            let m = machine.clone();
            let id = format!("threads/{}/{name}", memory.id());
            let measure = {
                let id = id.clone();
                move || by_threads(&m, memory, how, &id, effort)
            };
            out.push(Measurement::new(id, measure));
        }
        let m = machine.clone();
        let id = format!("mix/{}", memory.id());
        out.push(Measurement::new(id, move || by_mix(&m, memory, effort)));
    }
    if !out.is_empty() {
        let (m, n) = (machine.clone(), machine.clone());
        out.push(Measurement::new("remote-peak", move || peak(&m)));
        let plan = Plan::published(effort);
        out.push(Measurement::new("remote-latency", move || {
            latency(&n, &plan)
        }));
    }
    out
}

/// Bandwidth in GB/s of `threads` threads on sequential blocks of 256 B.
fn gbps(bench: &Bench, how: How, threads: usize, memory: MeasuredMemory) -> f64 {
    let p = Pattern::new(how, Order::Sequential, threads, 256, REGION);
    bench.alone(p, memory).gbps()
}

/// Threads from one to all cores.
fn threads(bench: &Bench, effort: Effort) -> Vec<usize> {
    let few: &[usize] = match effort {
        Effort::Quick => &[1, 4, 8, 16],
        Effort::Full => &[1, 2, 4, 6, 8, 10, 12, 16, 20],
    };
    let mut all: Vec<usize> = few.iter().copied().filter(|n| *n < bench.cores()).collect();
    all.push(bench.cores());
    all
}

fn by_threads(
    machine: &Machine,
    memory: MeasuredMemory,
    how: How,
    id: &str,
    effort: Effort,
) -> Curve {
    let mut curve = Curve::new(id, "threads", "GB/s");
    let bench = bench(machine, memory);
    for n in threads(&bench, effort) {
        curve.push(n as f64, gbps(&bench, how, n, memory));
    }
    curve
}

/// All cores load blocks of one array and store those of another non-temporally, by the share of loads.
fn by_mix(machine: &Machine, memory: MeasuredMemory, effort: Effort) -> Curve {
    let mut curve = Curve::new(format!("mix/{}", memory.id()), "reads, %", "GB/s");
    let bench = bench(machine, memory);
    let shares: &[u8] = match effort {
        Effort::Quick => &[0, 50, 67, 100],
        Effort::Full => &[0, 25, 50, 67, 75, 90, 100],
    };
    for &share in shares {
        let all = bench.cores();
        curve.push(f64::from(share), gbps(&bench, How::Mix(share), all, memory));
    }
    curve
}

/// Idle latencies, of other sockets' memory only.
fn latency(machine: &Machine, plan: &Plan) -> Curve {
    let all = idle_latency(machine, plan);
    let mut curve = Curve::new("remote-latency", &all.axis, &all.unit);
    for p in all.points.iter().filter(|p| p.at.starts_with("remote")) {
        curve.push_named(p.at.clone(), p.value);
    }
    curve
}

/// The best bandwidth over numbers of threads. The first read of a line changes the home's directory.
fn peak(machine: &Machine) -> Curve {
    let mut curve = Curve::new("remote-peak", "access", "GB/s");
    let mut add = |name: &str, how, memory, first_time: bool| {
        if !MeasuredMemory::of(machine).contains(&memory) {
            return;
        }
        let bench = match first_time {
            true => bench(machine, memory).cold(),
            false => bench(machine, memory),
        };
        let all = threads(&bench, Effort::Full);
        let best = all.into_iter().map(|n| gbps(&bench, how, n, memory));
        curve.push_named(name, best.fold(0.0, f64::max));
    };
    add("DRAM read", How::Read, MeasuredMemory::RemoteDram, false);
    add(
        "DRAM read, first time",
        How::Read,
        MeasuredMemory::RemoteDram,
        true,
    );
    add(
        "DRAM write (ntstore)",
        How::NtStore,
        MeasuredMemory::RemoteDram,
        false,
    );
    add("PM read", How::Read, MeasuredMemory::RemotePm, false);
    add(
        "PM read, first time",
        How::Read,
        MeasuredMemory::RemotePm,
        true,
    );
    add(
        "PM write (ntstore)",
        How::NtStore,
        MeasuredMemory::RemotePm,
        false,
    );
    curve
}
