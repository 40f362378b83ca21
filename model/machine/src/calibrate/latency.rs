//! Latencies of an idle machine: one thread, one access at a time.

use super::bench::{Bench, MeasuredMemory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Measurement, Plan};
use crate::Machine;

/// A region so large that no access finds its line in a cache.
const LARGE: u64 = 1 << 30;

/// A region that the first-level cache holds.
const SMALL: u64 = 16 << 10;

impl MeasuredMemory {
    /// Name in the words of a table.
    fn words(self) -> &'static str {
        match self {
            MeasuredMemory::Dram => "DRAM",
            MeasuredMemory::RemoteDram => "remote DRAM",
            MeasuredMemory::Pm => "PM",
            MeasuredMemory::PmDimm => "one PM DIMM",
            MeasuredMemory::RemotePm => "remote PM",
            MeasuredMemory::Cxl => "CXL",
            MeasuredMemory::Cached => "slow memory behind the DRAM cache",
        }
    }
}

/// Orders of a chase, and their names in ids.
const ORDERS: [(Order, &str); 2] = [(Order::Random, "random"), (Order::Sequential, "sequential")];

pub(super) fn all(machine: &Machine, plan: &Plan) -> Vec<Measurement> {
    let (m, p) = (machine.clone(), plan.clone());
    let mut out = vec![Measurement::new("idle-latency", move || {
        idle_latency(&m, &p)
    })];
    if plan.footprints.is_empty() {
        return out;
    }
    for memory in MeasuredMemory::of(machine) {
        for (order, name) in ORDERS {
            let (m, p) = (machine.clone(), plan.clone());
            let id = format!("chase/{}/{name}", memory.id());
            out.push(Measurement::new(id.clone(), move || {
                by_footprint(&m, memory, order, &id, &p)
            }));
        }
    }
    out
}

/// Single loads and stores, with full caches.
pub(super) fn access(machine: &Machine) -> Measurement {
    let m = machine.clone();
    Measurement::new("access-latency", move || access_latency(&m))
}

/// The bench of an idle machine under the conditions of `plan`.
fn idle_bench(machine: &Machine, plan: &Plan) -> Bench {
    match plan.prefetch {
        true => Bench::new(machine).prefetching(machine),
        false => Bench::new(machine),
    }
}

/// Loads that each wait for the one before, by the bytes that they run over: through the caches and beyond.
fn by_footprint(
    machine: &Machine,
    memory: MeasuredMemory,
    order: Order,
    id: &str,
    plan: &Plan,
) -> Curve {
    let mut curve = Curve::new(id, "footprint, B", "ns");
    let bench = idle_bench(machine, plan);
    let cached = machine.l2.bytes.0 + machine.llc.bytes.0;
    for &bytes in &plan.footprints {
        // Random loads have met nearly all lines after four times as many; 40 ns is a hit far from the core. A region
        // that fits no cache needs no warming.
        let lines = (bytes / 64).min(cached / 64 * 2);
        let bench = bench.clone().window((lines * 2 * 4 * 40).max(100_000));
        let p = Pattern::new(How::Chase, order, 1, 64, bytes);
        curve.push(bytes as f64, bench.alone(p, memory).ns_per_access());
    }
    curve
}

/// Loads that each wait for the one before, in sequence (line by line) and at random; stores to cached lines with the
/// instructions that make them durable: a non-temporal store and a fence, or a store, its write-back and a fence.
pub(super) fn idle_latency(machine: &Machine, plan: &Plan) -> Curve {
    let mut curve = Curve::new("idle-latency", "access", "ns");
    let bench = idle_bench(machine, plan);
    let large = plan.idle_bytes;
    for memory in MeasuredMemory::of(machine) {
        if memory == MeasuredMemory::PmDimm {
            continue;
        }
        let mut measure = |name: &str, how, order, region| {
            let p = Pattern::new(how, order, 1, 64, region);
            let p = match how {
                How::NtStore | How::StoreClwb => p.fenced(),
                _ => p,
            };
            let ns = bench.alone(p, memory).ns_per_access();
            curve.push_named(format!("{} {name}", memory.words()), ns);
        };
        measure("read, sequential", How::Chase, Order::Sequential, large);
        measure("read, random", How::Chase, Order::Random, large);
        measure("write (ntstore)", How::NtStore, Order::Sequential, large);
        measure("write (clwb)", How::StoreClwb, Order::Sequential, SMALL);
    }
    curve
}

/// 8 B loads and stores of random lines, one at a time, once the caches are full of the lines of earlier accesses: a
/// store then also pays for the write-back of another line.
fn access_latency(machine: &Machine) -> Curve {
    let mut curve = Curve::new("access-latency", "access", "ns");
    // Twice as many accesses as the caches have lines fill them with dirty lines.
    let lines = (machine.llc.bytes.0 + machine.l2.bytes.0) / 64;
    let bench = Bench::new(machine);
    let full = Bench::new(machine).window(lines * 4 * 150);
    for memory in [
        MeasuredMemory::Dram,
        MeasuredMemory::Pm,
        MeasuredMemory::Cxl,
    ] {
        if !MeasuredMemory::of(machine).contains(&memory) {
            continue;
        }
        let read = Pattern::new(How::Chase, Order::Random, 1, 64, LARGE);
        let ns = bench.alone(read, memory).ns_per_access();
        curve.push_named(format!("{} read", memory.words()), ns);
        let write = Pattern::new(How::Write, Order::Random, 1, 64, LARGE);
        let ns = full.alone(write, memory).ns_per_access();
        curve.push_named(format!("{} write", memory.words()), ns);
    }
    if let Some(ns) = two_write_backs(machine, lines) {
        curve.push_named("read or write causing two write-backs", ns);
    }
    curve
}

/// Memory mode's worst case: every store misses the DRAM cache and pushes a dirty line out of it, and so does the dirty
/// line that it pushes out of the processor's caches. The DRAM cache is made so small that it is soon full, and stays larger than
/// the processor's caches. A third of the stores still meet a line that is clean, for reads fill the DRAM cache too.
fn two_write_backs(machine: &Machine, lines: u64) -> Option<f64> {
    let mut m = machine.clone();
    let cache = m.dram_cache.as_mut()?;
    let conflict_ns = cache.conflict_ns.unwrap_or(0.0);
    cache.bytes.0 = (lines * 64 * 2).next_multiple_of(2 << 20);
    // Nearly every store meets another line's slot; the tags distinguish up to `model::MAX_RATIO` lines of a slot.
    let region = cache.bytes.0 * 64;
    let write = Pattern::new(How::Write, Order::Random, 1, 64, region);
    // The DRAM cache holds two times `lines`; random stores have filled nearly all of it after five times as many.
    let store_ns = 400 + conflict_ns as u64;
    let bench = Bench::new(&m).window(lines * 2 * 5 * store_ns);
    Some(bench.alone(write, MeasuredMemory::Cached).ns_per_access())
}
