//! What a managed program's run under one heap plan came to.

use crate::{Managed, StallShares, result::shares};
use serde::{Deserialize, Serialize};
use varve_runtime::{GcKind, GcStats};

/// Pauses of one kind of collections, in the machine's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Collections.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl Pauses {
    fn of(stats: &GcStats, kind: GcKind) -> Pauses {
        let ns = |percent| {
            let pause = stats.pause(kind, percent);
            pause.map_or(0, |pause| pause.as_nanos() as u64)
        };
        Pauses {
            count: stats.count(kind),
            p50_ns: ns(50.0),
            p99_ns: ns(99.0),
            max_ns: ns(100.0),
        }
    }
}

/// Everything measured of one run. Times are the machine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanResult {
    /// Machine.
    pub machine: String,
    /// Plan as asked for.
    pub plan: String,
    /// Program.
    pub program: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Version of the product.
    pub version: String,
    /// From the program's beginning to its end, s.
    pub seconds: f64,
    /// Instructions, of the program and of its collector (one per access).
    pub instructions: u64,
    /// Accesses.
    pub accesses: u64,
    /// Reads that missed all processor caches.
    pub memory_reads: u64,
    /// Share of those that slow memory served, 0 to 1.
    pub slow_share: f64,
    /// Bytes read from slow memory.
    pub slow_read_bytes: u64,
    /// Bytes written to slow memory.
    pub slow_written_bytes: u64,
    /// Bytes of touched pages in DRAM at the end.
    pub fast_bytes: u64,
    /// Bytes of touched pages in slow memory at the end.
    pub slow_bytes: u64,
    /// Collections of the nursery, with or without an observer space.
    pub minor: Pauses,
    /// Collections of the nursery and the observer space together.
    pub observer: Pauses,
    /// Collections of everything.
    pub full: Pauses,
    /// Share of the time that collections took, 0 to 1.
    pub gc_share: f64,
    /// Bytes of objects that collections moved from one memory to another.
    pub moved_bytes: u64,
    /// Share of the time lost, by reason; collections included.
    pub stalls: StallShares,
}

impl PlanResult {
    /// Of a run that has ended, and its heap's statistics.
    pub fn new<R>(
        machine: &str,
        plan: &str,
        program: &str,
        run: &Managed<R>,
        stats: &GcStats,
    ) -> PlanResult {
        let (last, ns) = (run.outcome.last(), run.outcome.ns);
        let memory = last.memory();
        let kinds = [GcKind::Minor, GcKind::Observer, GcKind::Full];
        let gc: f64 = kinds.iter().map(|&k| stats.total(k).as_secs_f64()).sum();
        let seconds = ns as f64 / 1e9;
        PlanResult {
            machine: machine.into(),
            plan: plan.into(),
            program: program.into(),
            page_bytes: run.outcome.page_bytes,
            version: crate::VERSION.into(),
            seconds,
            instructions: last.counts.instructions,
            accesses: last.counts.accesses,
            memory_reads: last.counts.llc_misses,
            slow_share: last.slow_share(),
            slow_read_bytes: 64 * (memory.pm.reads + memory.cxl_reads),
            slow_written_bytes: 64 * (memory.pm.writes + memory.cxl_writes),
            fast_bytes: run.by_tier[0],
            slow_bytes: run.by_tier[1],
            minor: Pauses::of(stats, GcKind::Minor),
            observer: Pauses::of(stats, GcKind::Observer),
            full: Pauses::of(stats, GcKind::Full),
            gc_share: gc / seconds.max(f64::MIN_POSITIVE),
            moved_bytes: stats.moved.iter().sum(),
            stalls: shares(&last.stalls, ns as f64 * 1000.0),
        }
    }

    /// Share of touched memory that is DRAM, 0 to 1.
    pub fn dram_share(&self) -> f64 {
        self.fast_bytes as f64 / (self.fast_bytes + self.slow_bytes).max(1) as f64
    }

    /// The longest pause, ns.
    pub fn longest_pause_ns(&self) -> u64 {
        let all = [self.minor, self.observer, self.full];
        all.iter().map(|p| p.max_ns).max().unwrap_or(0)
    }
}
