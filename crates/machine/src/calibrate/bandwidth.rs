//! Bandwidth by threads, by access size, and by the share of reads.

use super::bench::{Bench, Memory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Effort, Measurement};
use crate::Machine;

/// One thread's region.
const REGION: u64 = 64 << 20;

/// What is measured, and its name in ids.
const HOWS: [(How, &str); 3] = [
    (How::Read, "read"),
    (How::NtStore, "ntstore"),
    (How::StoreClwb, "clwb"),
];

pub(super) fn all(machine: &Machine, effort: Effort) -> Vec<Measurement> {
    let mut out: Vec<Measurement> = Vec::new();
    let memories = Memory::of(machine);
    for memory in memories {
        if matches!(memory, Memory::RemoteDram | Memory::RemotePm) {
            continue;
        }
        for (how, name) in HOWS {
            let m = machine.clone();
            let id = format!("threads/{}/{name}", memory.id());
            let measure = move || by_threads(&m, memory, how, name, effort);
            out.push(Measurement::new(id, measure));
        }
        for (how, name) in HOWS {
            let m = machine.clone();
            let id = format!("size/{}/{name}", memory.id());
            let measure = move || by_size(&m, memory, how, name, effort);
            out.push(Measurement::new(id, measure));
        }
        let m = machine.clone();
        let id = format!("mix/{}", memory.id());
        out.push(Measurement::new(id, move || by_mix(&m, memory, effort)));
    }
    out
}

/// Slow memory takes longer until it is in a steady state.
pub(super) fn bench(machine: &Machine, memory: Memory) -> Bench {
    match memory {
        Memory::PmDimm => Bench::new(machine).one_dimm().window(400_000),
        Memory::Pm | Memory::Cached | Memory::Cxl => Bench::new(machine).window(200_000),
        _ => Bench::new(machine).window(60_000),
    }
}

/// Sequential blocks of 256 B, one more thread at a time.
fn by_threads(machine: &Machine, memory: Memory, how: How, name: &str, effort: Effort) -> Curve {
    let mut curve = Curve::new(format!("threads/{}/{name}", memory.id()), "threads", "GB/s");
    let bench = bench(machine, memory);
    let counts: Vec<usize> = match effort {
        Effort::Quick => vec![1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64],
        Effort::Full => (1..=24).chain((28..=128).step_by(4)).collect(),
    };
    for threads in counts.into_iter().filter(|&n| n <= bench.cores()) {
        let p = Pattern::new(how, Order::Sequential, threads, 256, REGION);
        curve.push(threads as f64, bench.alone(p, memory).gbps());
    }
    curve
}

/// Threads that give the best bandwidth: all on DRAM and CXL; on PM two thirds of the cores read, a sixth writes
/// non-temporally, half write with write-backs, on one DIMM 4, 1 and 2 (Yang et al., FAST 2020, figures 4 and 5).
fn best_threads(memory: Memory, how: How, cores: usize) -> usize {
    let n = match (memory, how) {
        (Memory::PmDimm, How::Read) => 4,
        (Memory::PmDimm, How::NtStore) => 1,
        (Memory::PmDimm, _) => 2,
        (Memory::Pm, How::Read) => cores * 2 / 3,
        (Memory::Pm, How::NtStore) => cores / 6,
        (Memory::Pm, _) => cores / 2,
        _ => cores,
    };
    n.clamp(1, cores)
}

/// Random blocks of a size.
fn by_size(machine: &Machine, memory: Memory, how: How, name: &str, effort: Effort) -> Curve {
    let mut curve = Curve::new(
        format!("size/{}/{name}", memory.id()),
        "access size, B",
        "GB/s",
    );
    let bench = bench(machine, memory);
    let threads = best_threads(memory, how, bench.cores());
    let sizes: Vec<u64> = match effort {
        Effort::Quick => vec![64, 256, 1 << 10, 4 << 10, 16 << 10, 1 << 20],
        Effort::Full => (6..=21).map(|shift| 1 << shift).collect(),
    };
    for size in sizes {
        let p = Pattern::new(how, Order::Random, threads, size, REGION);
        curve.push(size as f64, bench.alone(p, memory).gbps());
    }
    curve
}

/// All cores read and write sequentially, prefetchers on, by the share of reads in percent.
fn by_mix(machine: &Machine, memory: Memory, effort: Effort) -> Curve {
    let mut curve = Curve::new(format!("mix/{}", memory.id()), "reads, %", "GB/s");
    let bench = bench(machine, memory).prefetching(machine);
    let shares: &[u8] = match effort {
        Effort::Quick => &[0, 25, 50, 60, 75, 90, 100],
        Effort::Full => &[0, 10, 20, 25, 30, 40, 50, 60, 67, 70, 75, 80, 90, 100],
    };
    for &share in shares {
        let p = Pattern::new(
            How::Mix(share),
            Order::Sequential,
            bench.cores(),
            256,
            REGION,
        );
        curve.push(f64::from(share), bench.alone(p, memory).gbps());
    }
    curve
}
