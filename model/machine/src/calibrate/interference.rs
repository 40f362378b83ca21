//! Interference between programs in DRAM and in PM: they share queues and buses, nothing else.

use super::bandwidth::bench;
use super::bench::MeasuredMemory;
use super::pattern::{How, Order, Pattern};
use super::{Curve, Effort, Measurement};
use crate::Machine;

/// One thread's region.
const REGION: u64 = 64 << 20;

/// Threads of the program whose bandwidth is measured.
const THREADS: usize = 10;

/// A program that is disturbed by another, each in its memory.
struct Case {
    id: &'static str,
    looked_at: (How, MeasuredMemory),
    disturber: (How, Order, MeasuredMemory),
}

const CASES: [Case; 3] = [
    Case {
        id: "interference/dram-write/pm-random-write",
        looked_at: (How::Mix(0), MeasuredMemory::Dram),
        disturber: (How::Mix(0), Order::Random, MeasuredMemory::Pm),
    },
    Case {
        id: "interference/dram-read/pm-read",
        looked_at: (How::Read, MeasuredMemory::Dram),
        disturber: (How::Read, Order::Sequential, MeasuredMemory::Pm),
    },
    Case {
        id: "interference/pm-read/dram-read",
        looked_at: (How::Read, MeasuredMemory::Pm),
        disturber: (How::Read, Order::Sequential, MeasuredMemory::Dram),
    },
];

pub(super) fn all(machine: &Machine, effort: Effort) -> Vec<Measurement> {
    if !MeasuredMemory::of(machine).contains(&MeasuredMemory::Pm) {
        return Vec::new();
    }
    CASES
        .iter()
        .map(|case| {
            let m = machine.clone();
            Measurement::new(case.id, move || beside(&m, case, effort))
        })
        .collect()
}

/// Bandwidth of ten threads, by the threads of the other program. Both read in sequence with the prefetchers on, or
/// write 64 B at a time without fences.
fn beside(machine: &Machine, case: &Case, effort: Effort) -> Curve {
    let mut curve = Curve::new(case.id, "threads beside it", "GB/s");
    let bench = bench(machine, MeasuredMemory::Pm).prefetching(machine);
    let counts: &[usize] = match effort {
        Effort::Quick => &[0, 1, 4, 10],
        Effort::Full => &[0, 1, 2, 4, 8, 10],
    };
    let threads = THREADS.min(bench.cores() / 2).max(1);
    for &beside in counts.iter().filter(|n| **n + threads <= bench.cores()) {
        let (how, memory) = case.looked_at;
        let mut programs = vec![(
            Pattern::new(how, Order::Sequential, threads, 256, REGION),
            memory,
        )];
        if beside > 0 {
            let (how, order, memory) = case.disturber;
            programs.push((Pattern::new(how, order, beside, 64, REGION), memory));
        }
        curve.push(beside as f64, bench.run(programs)[0].gbps());
    }
    curve
}
