//! Measurements of a run, at full size.

use crate::{Compared, Measured, RunSpec, Seen, StallShares};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use varve_machine::energy::{CpuEnergy, Energy};
use varve_machine::model::{Outcome, Sampled};
use varve_pages::Placement;

/// Latency of one class of requests, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassLatency {
    /// The program's name for it.
    pub class: String,
    /// Requests that were timed (on the scaled machine).
    pub count: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// One point of the timeline: rates since the point before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Time since the start of the run, s.
    pub at_s: f64,
    /// Accesses per second.
    pub accesses: f64,
    /// Updates per second.
    pub updates: f64,
    /// Requests per second.
    pub requests: f64,
    /// Share of memory reads that slow memory served.
    pub slow_share: f64,
    /// Bytes moved by daemons since the start.
    pub moved_bytes: f64,
}

/// Where the pages are at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementState {
    /// Pages in use (of the scaled machine; there are as many at full size).
    pub pages: u64,
    /// Those of them in fast memory that is a node of its own; 0 under a DRAM cache.
    pub fast_pages: u64,
    /// Bins of the DRAM caches; 0 without one.
    pub bins: u64,
    /// Bins with at least one page.
    pub bins_used: u64,
    /// Pages that share a bin with more pages than it holds.
    pub pages_in_conflict: u64,
    /// Hot pages, where the policy knows.
    pub hot: u64,
    /// Hot pages that share a bin with too many hot pages.
    pub hot_in_conflict: u64,
    /// Bytes of the policy's book-keeping.
    pub metadata_bytes: u64,
}

/// Everything measured. Times, counts and bytes are at full size (see [`RunSpec`]); shares and rates need no scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Measurements that all kinds of runs have, of the last phase (the run proper).
    #[serde(flatten)]
    pub measured: Measured,
    /// Policy as asked for.
    pub policy: String,
    /// Divisor of sizes during the run.
    pub scale: u32,
    /// When the last phase began, s.
    pub begin_s: f64,
    /// Updates among the accesses.
    pub updates: u64,
    /// Requests in the last phase.
    pub requests: u64,
    /// Share of all reads and write-backs that reached a DRAM cache and hit it; absent without one.
    pub cache_hit_share: Option<f64>,
    /// 64 B reads of slow memory.
    pub slow_reads: u64,
    /// 64 B writes to slow memory.
    pub slow_writes: u64,
    /// Lines that another line pushed out of the DRAM cache.
    pub line_conflicts: u64,
    /// Share of the DRAM cache's lines that hold something at the end; absent without one.
    pub cache_used_share: Option<f64>,
    /// Pages moved to fast memory.
    pub promoted: u64,
    /// Pages moved to slow memory.
    pub demoted: u64,
    /// Samples taken.
    pub samples: u64,
    /// Page faults in the whole run.
    pub faults: u64,
    /// Latency by class of requests.
    pub latencies: Vec<ClassLatency>,
    /// Rates over time.
    pub timeline: Vec<Point>,
    /// Where the pages are.
    pub placement: PlacementState,
    /// Power of memory in the last phase; absent if the machine has no data for it.
    #[serde(default)]
    pub power: Option<MemoryPower>,
    /// How much of the program's run was seen, if only windows of it were recorded; times and counts are of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledRun>,
    /// Results that the program computed.
    pub answers: Vec<(String, String)>,
    /// Something that the user should know, such as a trace that ends early.
    pub warning: Option<String>,
    /// Data for pictures, if they are wanted.
    #[serde(skip)]
    pub seen: Option<Box<Seen>>,
}

/// Fields of [`Measured`] are read as fields of the result.
impl Deref for RunResult {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.measured
    }
}

impl Compared for RunResult {
    fn name(&self) -> &str {
        &self.policy
    }

    fn rename(&mut self, name: &str) {
        self.policy = name.into();
    }

    fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }
}

/// A run that was seen in windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledRun {
    /// Windows that were measured.
    pub windows: u32,
    /// Share of the run's work that they are, 0 to 1.
    pub share: f64,
    /// Half-width of the 95 % confidence interval of the time, as a part of it; absent if one window is too few to
    /// estimate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

impl SampledRun {
    fn of(sampled: &Sampled, phase: usize) -> SampledRun {
        SampledRun {
            windows: sampled.windows,
            share: sampled.share,
            error: sampled.errors.get(phase).copied().flatten(),
        }
    }
}

/// Average power and traffic of memory in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryPower {
    /// W of each DRAM DIMM, socket by socket.
    pub dimms: Vec<f64>,
    /// W of all memory, by socket.
    pub sockets: Vec<f64>,
    /// Bytes read from and written to DRAM in a second, by socket.
    pub traffic: Vec<f64>,
    /// W of processors by the machine's simple model: the socket of the threads, and the others, asleep.
    pub cpu: Option<[f64; 2]>,
}

impl MemoryPower {
    fn of(spec: &RunSpec, out: &Outcome, energy: &Energy) -> MemoryPower {
        let (m, phase) = (&spec.machine, out.last());
        let seconds = energy.seconds.max(f64::MIN_POSITIVE);
        let channels = energy.sockets.iter().flatten();
        let dimms = channels.flat_map(|c| (0..c.dimms.len()).map(|d| c.dimm(d).total() / seconds));
        let threads = out.threads.len() as f64 / f64::from(spec.per_core.max(1));
        let cpu = CpuEnergy::of(m, 1.0, &[threads]).ok();
        MemoryPower {
            dimms: dimms.collect(),
            sockets: (0..energy.sockets.len())
                .map(|s| energy.socket(s) / seconds)
                .collect(),
            traffic: phase
                .sockets
                .iter()
                .map(|s| 64.0 * (s.dram.reads + s.dram.writes) as f64 / seconds)
                .collect(),
            cpu: cpu.map(|c| [c.awake + c.cores, c.asleep]),
        }
    }
}

impl RunResult {
    pub(crate) fn new(
        spec: &RunSpec,
        name: &str,
        placement: &Placement,
        out: &Outcome,
    ) -> RunResult {
        let f = spec.factor();
        let last = out.last();
        let memory = last.memory();
        let lookups = memory.cache_hits
            + memory.cache_misses
            + memory.cache_write_hits
            + memory.cache_write_misses;
        let has_cache = out.cache_lines.1 > 0;
        let dump = placement.dump();
        let conflicts = dump.conflicts.unwrap_or_default();
        let fast_nodes = dump.nodes.iter().filter(|n| n.kind == "fast");
        let fast_pages = fast_nodes.map(|n| u64::from(n.pages)).sum();
        let in_fast = match crate::has_one_memory(&spec.machine) {
            true => out.pages,
            false => fast_pages,
        };
        let energy = Energy::of_phase(&spec.machine, last).ok();
        RunResult {
            measured: Measured {
                machine: spec.machine.name.clone(),
                program: name.into(),
                seed: spec.seed,
                page_bytes: spec.page_bytes,
                fast_bytes: in_fast * spec.page_bytes,
                slow_bytes: (out.pages - in_fast) * spec.page_bytes,
                moved_bytes: last.moves.bytes * f,
                stalls: StallShares::of(&last.stalls, last.awake_ns as f64),
                energy_j: energy.as_ref().map(|e| e.total() * f as f64),
                undecided: crate::scaled_policy::undecided(
                    &spec.policy,
                    placement,
                    out.pages,
                    out.pages - in_fast,
                ),
                ..Measured::of(last, f, 1)
            },
            policy: spec.policy.clone(),
            scale: spec.scale,
            begin_s: (last.begin_ns * f) as f64 / 1e9,
            updates: last.counts.updates * f,
            requests: last.counts.requests * f,
            cache_hit_share: has_cache.then(|| {
                (memory.cache_hits + memory.cache_write_hits) as f64 / lookups.max(1) as f64
            }),
            slow_reads: (memory.pm.reads + memory.cxl_reads) * f,
            slow_writes: (memory.pm.writes + memory.cxl_writes) * f,
            line_conflicts: memory.conflicts * f,
            cache_used_share: has_cache
                .then(|| out.cache_lines.0 as f64 / out.cache_lines.1 as f64),
            promoted: last.moves.promoted,
            demoted: last.moves.demoted,
            samples: last.counts.samples,
            faults: out.phases.iter().map(|p| p.counts.faults).sum(),
            latencies: last
                .latencies
                .iter()
                .map(|l| ClassLatency {
                    class: l.class.clone(),
                    count: l.count,
                    mean_ns: l.mean_ns,
                    p50_ns: l.p50_ns,
                    p99_ns: l.p99_ns,
                    max_ns: l.max_ns,
                })
                .collect(),
            timeline: timeline(out, f),
            placement: PlacementState {
                pages: out.pages,
                fast_pages,
                bins: conflicts.bins,
                bins_used: conflicts.bins_used,
                pages_in_conflict: conflicts.pages_in_conflict,
                hot: conflicts.hot,
                hot_in_conflict: conflicts.hot_in_conflict,
                metadata_bytes: dump.metadata_bytes,
            },
            power: energy.map(|e| MemoryPower::of(spec, out, &e)),
            sampled: out
                .sampled
                .as_ref()
                .map(|sampled| SampledRun::of(sampled, out.phases.len() - 1)),
            answers: out.answers.clone(),
            warning: out.failure.clone(),
            seen: None,
        }
    }

    /// Accesses per second of the last phase.
    pub fn access_rate(&self) -> f64 {
        self.accesses as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Updates per second of the last phase.
    pub fn update_rate(&self) -> f64 {
        self.updates as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Requests per second of the last phase.
    pub fn request_rate(&self) -> f64 {
        self.requests as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Unit of a program's speed, and how to read the speed off a result.
pub fn speed(results: &[&RunResult]) -> (&'static str, fn(&RunResult) -> f64) {
    if results.iter().all(|r| r.requests > 1000) {
        ("requests", RunResult::request_rate)
    } else if results.iter().all(|r| r.updates * 2 > r.accesses) {
        ("updates", RunResult::update_rate)
    } else {
        ("accesses", RunResult::access_rate)
    }
}

fn timeline(out: &Outcome, f: u64) -> Vec<Point> {
    out.snapshots
        .windows(2)
        .map(|w| {
            let (a, b) = (&w[0], &w[1]);
            let d = b.counts.since(&a.counts);
            let seconds = (b.now_ns - a.now_ns) as f64 / 1e9;
            Point {
                at_s: (b.now_ns * f) as f64 / 1e9,
                accesses: d.accesses as f64 / seconds,
                updates: d.updates as f64 / seconds,
                requests: d.requests as f64 / seconds,
                slow_share: d.slow as f64 / d.llc_misses.max(1) as f64,
                moved_bytes: (b.moved_bytes * f) as f64,
            }
        })
        .collect()
}
