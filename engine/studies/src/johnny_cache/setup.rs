//! The paper's machine and sizes.

use crate::{Effort, StudyOptions};
use varve_machine::Machine;
use varve_run::{Error, RunResult, RunSpec, Work};

/// Policies by the names that the paper uses.
pub const SYSTEMS: [(&str, &str); 4] = [
    ("static", "JC-static"),
    ("dynamic", "JC-dyn"),
    ("hotset", "HeMem"),
    ("random", "Linux"),
];

/// The state shared by all parts of the study.
pub struct Setup {
    pub options: StudyOptions,
    /// 48 GB of DRAM cache over PM.
    pub cached: Machine,
    /// The same hardware as two nodes.
    pub flat: Machine,
    /// Divisor of GUPS, YCSB and TPC-C.
    pub scale: u32,
    /// Divisor of BC and NAS.
    pub apps_scale: u32,
    /// Divisor of machines and programs beyond that, without a page becoming smaller: 1 but in tests.
    pub shrink: u32,
    /// Factor on the lengths of timed runs.
    pub length: f64,
}

impl Setup {
    pub fn new(options: &StudyOptions) -> Result<Setup, Error> {
        // Section 5.1: "we run the applications on a single NUMA node".
        let one_node = |name: &str| -> Result<Machine, Error> {
            let mut m = options.machine(name)?;
            (m.sockets, m.link) = (1, None);
            Ok(m)
        };
        // Migration has the same 48 GB of DRAM as the cache: in section 5.2.1 half of 96 GB is misplaced at first.
        let mut flat = one_node("optane-6230")?;
        flat.dram.dimm_bytes = varve_spec::Bytes(12 << 30);
        let cached = one_node("optane-6230-memory-mode")?;
        let (scale, shrink, length) = match options.effort {
            Effort::Full => (256, 1, 1.0),
            Effort::Quick => (512, 1, 0.35),
            Effort::Tiny => (512, 32, 0.02),
        };
        Ok(Setup {
            options: options.clone(),
            cached,
            flat,
            scale,
            apps_scale: scale,
            shrink,
            length,
        })
    }

    pub fn quick(&self) -> bool {
        self.options.effort == Effort::Quick
    }

    /// A run of `work` under `policy`, on the machine in the mode that the policy needs.
    pub fn spec(&self, policy: &str, work: &str, scale: u32) -> RunSpec {
        if self.shrink == 1 {
            return self.spec_unshrunk(policy, work, scale);
        }
        let divisor = scale * self.shrink;
        let mut spec = self.spec_unshrunk(policy, &format!("{work},scale={divisor}"), scale);
        spec.machine = spec.machine.scaled(self.shrink);
        spec
    }

    /// The same for a program that cannot be shrunk.
    pub fn spec_unshrunk(&self, policy: &str, work: &str, scale: u32) -> RunSpec {
        let name = policy.split(':').next().unwrap_or_default();
        let flat = matches!(name, "hotset" | "fast" | "slow" | "oracle");
        let machine = if flat { &self.flat } else { &self.cached };
        let mut spec = RunSpec::new(machine.clone(), policy, Work::Workload(work.into()));
        (spec.scale, spec.seed) = (scale, self.options.seed);
        spec.point_ns = 1_000_000;
        spec
    }

    /// `time=...` of a workload for `seconds` at full size. A workload that shrinks further runs no shorter for that.
    pub fn time(&self, seconds: f64) -> String {
        let seconds = seconds * self.length * f64::from(self.shrink);
        format!("time={}ns", (seconds * 1e9) as u64)
    }
}

/// Rate over the last quarter of the run proper: the steady state.
pub fn steady(r: &RunResult, rate: fn(&varve_run::Point) -> f64) -> f64 {
    let from = r.begin_s + 0.75 * r.seconds;
    let last: Vec<f64> = r
        .timeline
        .iter()
        .filter(|p| p.at_s > from)
        .map(rate)
        .collect();
    last.iter().sum::<f64>() / last.len() as f64
}

/// Seconds from the start of the run proper until the rate stays near its steady state (mean of a sliding eighth of
/// the points within 5 %).
pub fn time_to_steady(r: &RunResult, rate: fn(&varve_run::Point) -> f64) -> f64 {
    let goal = 0.95 * steady(r, rate);
    let points: Vec<_> = r.timeline.iter().filter(|p| p.at_s > r.begin_s).collect();
    let width = (points.len() / 40).max(1);
    points
        .windows(width)
        .find(|w| w.iter().map(|p| rate(p)).sum::<f64>() / width as f64 >= goal)
        .map_or(f64::NAN, |w| w[0].at_s - r.begin_s)
}
