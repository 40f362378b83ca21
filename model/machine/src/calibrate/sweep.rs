//! The largest published set of points of one machine: sequential bandwidth by memory, operation, DIMMs, access size and
//! threads. A third of it, drawn once, is held back from every decision about the model, and reported by itself.

use super::bench::{Bench, MeasuredMemory};
use super::pattern::{How, Order, Pattern};
use crate::Machine;
use serde::{Deserialize, Serialize};
use varve_access::random::Rng;

/// One published point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedPoint {
    /// `pm`, `pm-dimm` or `dram`, as in ids of curves.
    pub memory: String,
    /// `read`, `ntstore`, `store` (no write-back: caches evict) or `clwb` (store and write-back).
    pub how: String,
    /// Bytes that a thread reads or writes at a time.
    pub bytes: u64,
    /// Threads.
    pub threads: usize,
    /// GB/s of all threads together.
    pub gbps: f64,
    /// Bytes written by the program over bytes written by the media, where both were measured.
    pub write_ratio: Option<f64>,
    /// Held back from decisions.
    pub held_back: bool,
}

/// Results of the model at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ours {
    /// GB/s of all threads together.
    pub gbps: f64,
    /// Bytes written by the program over bytes written by the media; `None` where the media wrote nothing.
    pub write_ratio: Option<f64>,
}

/// The seed that draws the held-back third.
const SEED: u64 = 8260;

/// The published points of `optane-8260`.
pub fn published() -> Vec<PublishedPoint> {
    let mut random = Rng::from_state(SEED);
    include_str!("../../data/optane-8260-sequential.csv")
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("media"))
        .filter_map(point)
        .map(|p| PublishedPoint {
            held_back: random.bits().is_multiple_of(3),
            ..p
        })
        .collect()
}

/// A line of the file. It is part of the program, and a test counts its points.
fn point(line: &str) -> Option<PublishedPoint> {
    let cells: Vec<&str> = line.split(',').collect();
    let [media, operation, dimms, bytes, threads, gbps, ratio] = cells[..] else {
        return None;
    };
    let memory = match (media, dimms) {
        ("ldram", _) => MeasuredMemory::Dram,
        ("lpmem", "1") => MeasuredMemory::PmDimm,
        ("lpmem", _) => MeasuredMemory::Pm,
        _ => return None,
    };
    let how = match operation {
        "Load" => "read",
        "NTStore" => "ntstore",
        "Store" => "store",
        "Store+Flush" => "clwb",
        _ => return None,
    };
    Some(PublishedPoint {
        memory: memory.id().into(),
        how: how.into(),
        bytes: bytes.parse().ok()?,
        threads: threads.parse().ok()?,
        gbps: gbps.parse().ok()?,
        write_ratio: ratio.parse().ok(),
        held_back: false,
    })
}

/// Bytes of one thread's region.
const REGION: u64 = 64 << 20;

/// The same point on the model of `machine`.
pub fn measure(machine: &Machine, p: &PublishedPoint) -> Ours {
    let memory = [
        MeasuredMemory::Dram,
        MeasuredMemory::Pm,
        MeasuredMemory::PmDimm,
    ]
    .into_iter()
    .find(|m| m.id() == p.memory)
    .unwrap_or(MeasuredMemory::Dram);
    let how = match p.how.as_str() {
        "read" => How::Read,
        "ntstore" => How::NtStore,
        "store" => How::Store,
        _ => How::StoreClwb,
    };
    let bench = match memory {
        MeasuredMemory::PmDimm => Bench::new(machine).one_dimm(),
        _ => Bench::new(machine),
    };
    // Plain stores are written when the caches are full of them.
    let bench = bench.window(match how {
        How::Store => 4 * fill_ns(machine, p),
        _ => 200_000,
    });
    let pattern = Pattern::new(how, Order::Sequential, p.threads, p.bytes, REGION);
    let (done, pm) = bench.counted(vec![(pattern, memory)]);
    let line = machine.pm.as_ref().map_or(64, |p| p.line_bytes.0);
    let written = (pm.media_writes * line) as f64;
    Ours {
        gbps: done[0].gbps(),
        write_ratio: (written > 0.0).then(|| (pm.writes * 64) as f64 / written),
    }
}

/// Time in which the threads of a point fill the caches at a core's own pace, ns.
fn fill_ns(machine: &Machine, p: &PublishedPoint) -> u64 {
    let caches = machine.llc.bytes.0 + machine.l2.bytes.0 * p.threads as u64;
    // GB/s of a thread; no more than six together.
    caches / p.threads.min(6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_is_held_back() {
        let points = published();
        assert_eq!(points.len(), 1076);
        let held = points.iter().filter(|p| p.held_back).count();
        assert!((300..420).contains(&held), "{held}");
    }
}
