//! MemBench on a machine with trays: the runs of its sweep, and the capacities of DIMMs that they give (Olson et al., TACO 2018,
//! sections 6 and 7.2).

use crate::{Error, RunResult, RunSpec, Work};
use varve_access::Region;
use varve_machine::Machine;
use varve_workloads::registry;

/// Threads of the paper's benchmark: two on each of six cores.
const THREADS: u32 = 12;

/// How MemBench is run.
#[derive(Clone, Debug)]
pub struct MemBench {
    /// The machine at full size.
    pub machine: Machine,
    /// Divisor of all sizes.
    pub scale: u32,
    /// Writes of each thread where there is no delay; with delays fewer, so that a run takes no more than [`MemBench::most_ns`].
    pub writes: u64,
    /// Most virtual time of the delays of a thread, ns.
    pub most_ns: u64,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
}

/// Where MemBench's hot objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPlacement {
    /// Among the cold ones, all on all DIMMs in turn: a kernel with trays under a program that has no colours.
    Mixed,
    /// Among the cold ones, in frames that come by chance: a kernel without trays.
    ByChance,
    /// On this number of hot DIMMs, apart from the cold ones.
    Hot(usize),
    /// Hot objects alone, one after the other, on one DIMM.
    OneDimm,
}

impl MemBench {
    /// A run with `delay_ns` ns between two writes, and `remote` percent of the hot objects on the other socket.
    ///
    /// # Errors
    /// A scale that the workload cannot have.
    pub fn spec(&self, place: HotPlacement, delay_ns: u64, remote: u32) -> Result<RunSpec, Error> {
        let writes = match delay_ns {
            0 => self.writes,
            delay => self.writes.min(self.most_ns / delay).max(8),
        };
        let objects = match place {
            HotPlacement::Mixed | HotPlacement::ByChance => "organize=false".to_string(),
            HotPlacement::Hot(_) => "organize".to_string(),
            HotPlacement::OneDimm => "organize,hot=2.5GB,cold=0,shuffle=false".to_string(),
        };
        let line = format!(
            "membench:threads={THREADS},{objects},delay={delay_ns}ns,writes={writes},remote={remote},scale={},seed={}",
            self.scale, self.seed
        );
        let regions = registry::build(&line)?.regions();
        let named = |wanted: &str| ranges(&regions, |name| name.contains(wanted));
        let (hot, dimms) = match place {
            HotPlacement::Mixed | HotPlacement::ByChance => (ranges(&regions, |_| true), 0),
            HotPlacement::Hot(dimms) => (named("hot"), dimms),
            HotPlacement::OneDimm => (ranges(&regions, |_| true), 1),
        };
        let remote = match named("remote") {
            none if none.is_empty() => "0+0".into(),
            some => some,
        };
        let policy = match place {
            HotPlacement::ByChance => "random".to_string(),
            _ => format!("trays:hot={hot},remote={remote},dimms={dimms}"),
        };
        let mut spec = RunSpec::new(self.machine.clone(), &policy, Work::Workload(line));
        spec.page_bytes = 4096 * u64::from(self.scale);
        (spec.scale, spec.seed) = (self.scale, self.seed);
        spec.per_core = THREADS.div_ceil(self.machine.core.per_socket);
        Ok(spec)
    }

    /// DIMMs of a socket.
    pub fn dimms(&self) -> usize {
        (self.machine.dram.channels * self.machine.dram.dimms_per_channel) as usize
    }
}

fn ranges(regions: &[Region], wanted: impl Fn(&str) -> bool) -> String {
    let wanted = regions.iter().filter(|r| wanted(&r.name) && r.bytes > 0);
    let all: Vec<String> = wanted
        .map(|r| format!("{:#x}+{}", r.base, r.bytes))
        .collect();
    all.join("/")
}

/// The most that 1, 2, ... hot DIMMs carry at any load of a sweep, GB/s, and after them all DIMMs. Each load is the run
/// with all DIMMs, and those with 1, 2, ... hot ones.
pub fn capacities(sweep: &[(&RunResult, Vec<&RunResult>)]) -> Vec<f64> {
    let gbps = |r: &RunResult| {
        let power = r.power.as_ref();
        power.map_or(0.0, |p| p.traffic.iter().sum::<f64>()) / 1e9
    };
    let numbers = sweep.first().map_or(0, |(_, few)| few.len() + 1);
    let run =
        |(all, few): &(&RunResult, Vec<&RunResult>), at: usize| gbps(few.get(at).unwrap_or(all));
    let most = |at| sweep.iter().map(|load| run(load, at)).fold(0.0, f64::max);
    (0..numbers).map(most).collect()
}
