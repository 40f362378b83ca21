//! Measurements of every run on the model, whichever policy or plan placed its memory.

use serde::{Deserialize, Serialize};
use varve_machine::model::{Phase, Stalls};

/// Shares of the threads' time, 0 to 1. The rest is time without stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallShares {
    /// Waiting for loads.
    pub load: f64,
    /// Waiting for room in the store buffer.
    pub store: f64,
    /// Waiting for instructions.
    pub fetch: f64,
    /// Waiting at fences.
    pub fence: f64,
    /// Waiting at barriers.
    pub barrier: f64,
    /// Operating system: faults, samples, shoot-downs, moves, daemons on the core.
    pub system: f64,
}

impl StallShares {
    /// Of stalls in `all_ns` of all threads together.
    pub fn of(s: &Stalls, all_ns: f64) -> StallShares {
        let share = |ps: u64| ps as f64 / (1000.0 * all_ns).max(1.0);
        StallShares {
            load: share(s.load),
            store: share(s.store),
            fetch: share(s.fetch),
            fence: share(s.fence),
            barrier: share(s.barrier),
            system: share(s.system),
        }
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.load + self.store + self.fetch + self.fence + self.barrier + self.system
    }
}

/// Measurements that all runs have: those under page policies ([`crate::RunResult`]), heap plans
/// (`varve_observed::PlanResult`), and other placements. Each kind adds its own, and its decider (`policy` or `plan`);
/// in JSON they are one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Machine.
    pub machine: String,
    /// Program.
    pub program: String,
    /// Seed.
    pub seed: u64,
    /// Bytes of a page, at full size.
    pub page_bytes: u64,
    /// Version of the product.
    pub version: String,
    /// How long it took, s: the last phase of a program that has phases.
    pub seconds: f64,
    /// Instructions in that time; of one instance where several share the machine.
    pub instructions: u64,
    /// Accesses, as instructions.
    pub accesses: u64,
    /// Reads that missed all processor caches, as instructions.
    pub memory_reads: u64,
    /// Share of those that slow memory served, 0 to 1.
    pub slow_share: f64,
    /// Bytes read from DRAM, by all instances.
    pub fast_read_bytes: u64,
    /// Bytes written to DRAM.
    pub fast_written_bytes: u64,
    /// Bytes read from slow memory.
    pub slow_read_bytes: u64,
    /// Bytes written to slow memory.
    pub slow_written_bytes: u64,
    /// Bytes of touched pages in DRAM at the end, on trays on hot DIMMs, of one instance; 0 where DRAM is the cache of slow memory.
    pub fast_bytes: u64,
    /// Bytes of touched pages in slow memory at the end, on trays on cold DIMMs, of one instance.
    pub slow_bytes: u64,
    /// Bytes that were moved from one memory to another: pages by daemons, objects by collections.
    pub moved_bytes: u64,
    /// Share of the threads' time that was lost, by reason.
    pub stalls: StallShares,
    /// Energy of all memory of the machine in that time, that of sockets without a program included, J; on trays, of the sockets in
    /// use. None if the machine has no data for it.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// Factor by which a policy sampled more often than its settings say, since the run stands for a program larger by
    /// it: see its parameter `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_scale: Option<u64>,
    /// Why a policy that samples has not decided anything, and how many samples it would need; or that it saw windows alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
}

impl Measured {
    /// Measurements of a phase of `instances` equal instances, times `factor`. The caller fills in the places of pages,
    /// the moves, the energy and the program.
    pub fn of(phase: &Phase, factor: u64, instances: u64) -> Measured {
        let memory = phase.memory();
        let lines = |lines: u64| 64 * lines * factor;
        let each = |count: u64| count * factor / instances;
        Measured {
            version: crate::VERSION.into(),
            seconds: (phase.ns() * factor) as f64 / 1e9,
            instructions: each(phase.counts.instructions),
            accesses: each(phase.counts.accesses),
            memory_reads: each(phase.counts.llc_misses),
            slow_share: phase.slow_share(),
            fast_read_bytes: lines(memory.dram.reads),
            fast_written_bytes: lines(memory.dram.writes),
            slow_read_bytes: lines(memory.pm.reads + memory.cxl_reads),
            slow_written_bytes: lines(memory.pm.writes + memory.cxl_writes),
            ..Measured::default()
        }
    }

    /// Share of touched memory that is DRAM, or on a machine with trays hot, 0 to 1.
    pub fn dram_share(&self) -> f64 {
        self.fast_bytes as f64 / (self.fast_bytes + self.slow_bytes).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each reason has a share of its own, and all of them are the time that was lost.
    #[test]
    fn waiting_for_instructions_is_not_waiting_for_stores() {
        let lost = Stalls {
            load: 100,
            store: 200,
            fetch: 300,
            fence: 40,
            barrier: 50,
            system: 10,
        };
        let shares = StallShares::of(&lost, 1.0);
        assert_eq!((shares.store, shares.fetch), (0.2, 0.3));
        assert!((shares.total() - 0.7).abs() < 1e-12, "{shares:?}");
    }
}
