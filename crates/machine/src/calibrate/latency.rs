//! Latencies of an idle machine: one thread, one access at a time.

use super::bench::{Bench, Memory};
use super::pattern::{How, Order, Pattern};
use super::{Curve, Measurement};
use crate::Machine;

/// A region so large that no access finds its line in a cache.
const LARGE: u64 = 1 << 30;

/// A region that the first-level cache holds.
const SMALL: u64 = 16 << 10;

impl Memory {
    /// Name in the words of a table.
    fn words(self) -> &'static str {
        match self {
            Memory::Dram => "DRAM",
            Memory::RemoteDram => "remote DRAM",
            Memory::Pm => "PM",
            Memory::PmDimm => "one PM DIMM",
            Memory::RemotePm => "remote PM",
            Memory::Cxl => "CXL",
            Memory::Cached => "slow memory behind the DRAM cache",
        }
    }
}

pub(super) fn all(machine: &Machine) -> Vec<Measurement> {
    let idle = machine.clone();
    let updates = machine.clone();
    vec![
        Measurement::new("idle-latency", move || idle_latency(&idle)),
        Measurement::new("access-latency", move || access_latency(&updates)),
    ]
}

/// Loads that each wait for the one before, in sequence (line by line) and at random; stores to cached lines with what
/// makes them durable: a non-temporal store and a fence, or a store, its write-back and a fence.
fn idle_latency(machine: &Machine) -> Curve {
    let mut curve = Curve::new("idle-latency", "access", "ns");
    let bench = Bench::new(machine);
    for memory in Memory::of(machine) {
        if memory == Memory::PmDimm {
            continue;
        }
        let mut measure = |name: &str, how, order, region| {
            let p = Pattern::new(how, order, 1, 64, region);
            let ns = bench.alone(p, memory).ns_per_access();
            curve.push_named(format!("{} {name}", memory.words()), ns);
        };
        measure("read, sequential", How::Chase, Order::Sequential, LARGE);
        measure("read, random", How::Chase, Order::Random, LARGE);
        measure("write (ntstore)", How::NtStore, Order::Sequential, LARGE);
        measure("write (clwb)", How::StoreClwb, Order::Sequential, SMALL);
    }
    curve
}

/// 8 B loads and stores of random lines, one at a time, once the caches are full of what they leave behind: a store
/// then also pays for the write-back of another line.
fn access_latency(machine: &Machine) -> Curve {
    let mut curve = Curve::new("access-latency", "access", "ns");
    // Twice as many accesses as the caches have lines fill them with dirty lines.
    let lines = (machine.llc.bytes.0 + machine.l2.bytes.0) / 64;
    let bench = Bench::new(machine);
    let full = Bench::new(machine).window(lines * 4 * 150);
    for memory in [Memory::Dram, Memory::Pm, Memory::Cxl] {
        if !Memory::of(machine).contains(&memory) {
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
/// line that it pushes out of the processor's caches. The DRAM cache is made so small that it is soon full of dirty
/// lines, and stays larger than the processor's caches.
fn two_write_backs(machine: &Machine, lines: u64) -> Option<f64> {
    let mut m = machine.clone();
    let cache = m.dram_cache.as_mut()?;
    cache.bytes.0 = (lines * 64 * 2).next_multiple_of(2 << 20);
    // Nearly every store meets another line's slot; the tags tell up to `model::MAX_RATIO` lines of a slot apart.
    let region = cache.bytes.0 * 64;
    let write = Pattern::new(How::Write, Order::Random, 1, 64, region);
    // The DRAM cache holds two times `lines`; random stores have filled nearly all of it after five times as many.
    let bench = Bench::new(&m).window(lines * 2 * 5 * 400);
    Some(bench.alone(write, Memory::Cached).ns_per_access())
}
