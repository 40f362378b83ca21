//! The result of a managed program's run under one heap plan.

use super::{End, ManagedSpec};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use varve_machine::energy::{CpuEnergy, Energy};
use varve_machine::model::{ADDRESS_BITS, Outcome};
use varve_run::dimms::{PowerPoint, TrayUse};
use varve_run::{Compared, Measured, Numa, Pauses, Phase, Seen, StallShares};
use varve_runtime::{GcKind, GcStats, Part};

/// Pauses of one kind of collections.
fn pauses(stats: &GcStats, kind: GcKind) -> Pauses {
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

/// The time that slow memory adds to collections of the nursery, as shares of their time with all memory in DRAM (paper A, section 4.4,
/// figure 4b).
///
/// The paper's formulas give the nursery in slow memory to *copy* and the mature space there to *scan*; its text, the speed-ups
/// beside it and the names say the opposite, and so it is here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcStack {
    /// Copying into slow memory.
    pub copy: f64,
    /// Scanning in slow memory.
    pub scan: f64,
    /// The time that both add together beyond the sum of each alone; negative where they overlap.
    pub interference: f64,
    /// Roots, tables and weak references.
    pub rest: f64,
}

impl GcStack {
    /// Of runs under the plans `dram`, `slow`, `slow-scan` and `slow-copy`; none without collections.
    pub fn of(
        dram: &PlanResult,
        slow: &PlanResult,
        slow_scan: &PlanResult,
        slow_copy: &PlanResult,
    ) -> Option<GcStack> {
        let base = Some(dram.minor_seconds).filter(|s| *s > 0.0)?;
        let traced = |r: &PlanResult| (r.minor_tracing_seconds - dram.minor_tracing_seconds) / base;
        let rest = |r: &PlanResult| r.minor_seconds - r.minor_tracing_seconds;
        let (copy, scan) = (traced(slow_copy), traced(slow_scan));
        Some(GcStack {
            copy,
            scan,
            interference: traced(slow) - copy - scan,
            rest: (rest(slow) - rest(dram)) / base,
        })
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.copy + self.scan + self.interference + self.rest
    }
}

/// How long several instances take beside the same instances on another plan (Eyerman and Eeckhout, IEEE Micro 2008;
/// paper A, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turnaround {
    /// Maximum normalized turnaround time: of the instance that loses most.
    pub mntt: f64,
    /// Average normalized turnaround time.
    pub antt: f64,
    /// Turnaround time of the fastest over that of the slowest instance: 1 is fair.
    pub fairness: f64,
    /// Standard deviation of the instances' times over their mean.
    pub variation: f64,
}

/// Everything measured of one run. Times are the machine's. Counts and bytes are those of all instances, also where one
/// stands for them, unless they are said to be of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanResult {
    /// The measurements of all kinds of runs, to the end of the slowest instance. Instructions are those of the program and of its
    /// collector (one per access); stalls have collections in them (paper A, section 5.2).
    #[serde(flatten)]
    pub measured: Measured,
    /// Plan as asked for.
    pub plan: String,
    /// Instances that share the machine.
    pub instances: u32,
    /// Whether each of them was run; otherwise one was, and the others only loaded the memory.
    pub every: bool,
    /// Where threads and memory are.
    pub numa: Numa,
    /// From the beginning to the end of each instance that was run, s.
    pub instance_seconds: Vec<f64>,
    /// Bytes of slow memory that were zeroed beside one instance once it had given them back.
    #[serde(default)]
    pub zeroed_bytes: u64,
    /// Bytes of slow memory that one instance had to zero itself: it wanted more than was zero.
    #[serde(default)]
    pub zeroed_late_bytes: u64,
    /// The most that touched pages of one instance took at a time, in all memories, bytes.
    #[serde(default)]
    pub most_bytes: u64,
    /// Collections of the nursery, with or without an observer space. Those of the first instance, as all of the following.
    pub minor: Pauses,
    /// Collections of the nursery and the observer space together.
    pub observer: Pauses,
    /// Collections of everything.
    pub full: Pauses,
    /// Time in collections of the nursery, s.
    pub minor_seconds: f64,
    /// The part of it spent on scanning and copying young objects, s: δ of paper A, section 4.4.
    #[serde(default)]
    pub minor_tracing_seconds: f64,
    /// Time in collections of the observer space, s.
    pub observer_seconds: f64,
    /// Time in full collections, s.
    pub full_seconds: f64,
    /// Bytes of objects born.
    pub allocated_bytes: u64,
    /// Bytes of objects that survived the nursery.
    pub survived_bytes: u64,
    /// The most that objects took after a collection, bytes.
    pub peak_bytes: u64,
    /// On a machine with trays: energy of the processors in use by the machine's simple model, J; none if it has no data for it.
    #[serde(default)]
    pub cpu_j: Option<f64>,
    /// Where pages of each colour are, on a machine with trays.
    #[serde(default)]
    pub trays: Option<TrayUse>,
    /// Power of each DIMM over time, on a machine with trays.
    #[serde(default)]
    pub power: Vec<PowerPoint>,
    /// The phases of a plan that samples, in the first instance.
    pub phases: Vec<Phase>,
    /// From the end of the program's first interval to the end of the run, s, in the first instance; none if it reports none. The part before, such
    /// as the making of a graph, is not relevant to sampling plans.
    #[serde(default)]
    pub interval_seconds: Option<f64>,
    /// The input that the plan needs and the program has not reported.
    pub untold: Option<String>,
    /// The data for pictures, if requested.
    #[serde(skip)]
    pub seen: Option<Box<Seen>>,
}

impl Compared for PlanResult {
    fn name(&self) -> &str {
        &self.plan
    }

    fn rename(&mut self, name: &str) {
        self.plan = name.into();
    }

    fn slowdown(&self, base: &PlanResult) -> f64 {
        self.turnaround(base).mntt
    }

    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    fn warning(&self) -> Option<&str> {
        self.untold.as_deref()
    }

    fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }
}

/// The measurements of all kinds of runs can be read as fields of this.
impl Deref for PlanResult {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.measured
    }
}

impl PlanResult {
    /// Of a run that has ended well; `is_fast` says whether a frame is DRAM.
    pub(super) fn new(
        spec: &ManagedSpec,
        outcome: &Outcome,
        is_fast: &dyn Fn(u32) -> bool,
        ends: &[End],
    ) -> PlanResult {
        let last = outcome.last();
        let stats = &ends[0].stats;
        let run = ends.len() as u64;
        // The system's cache of files is not the program's memory.
        let address = |page: u64| (page * outcome.page_bytes) & ((1 << ADDRESS_BITS) - 1);
        let own = |page: u64| Part::at(address(page)) != Part::Files;
        let pages = |fast: bool| {
            let of = |&&(page, frame): &&(u64, u32)| is_fast(frame) == fast && own(page);
            outcome.mapping.iter().filter(of).count() as u64 * outcome.page_bytes / run
        };
        let total = |kind| stats.total(kind).as_secs_f64();
        let all: u64 = outcome.thread_ns.iter().sum();
        PlanResult {
            measured: Measured {
                machine: spec.machine.name.clone(),
                program: spec.program.name().into(),
                seed: spec.seed,
                page_bytes: outcome.page_bytes,
                seconds: outcome.thread_ns.iter().copied().max().unwrap_or(0) as f64 / 1e9,
                fast_bytes: pages(true),
                slow_bytes: pages(false),
                moved_bytes: stats.moved.iter().sum(),
                stalls: StallShares::of(&last.stalls, all as f64),
                energy_j: Energy::of(&spec.machine, outcome).ok().map(|e| e.total()),
                ..Measured::of(last, 1, run)
            },
            plan: spec.plan.clone(),
            instances: spec.instances,
            every: spec.every,
            numa: spec.numa,
            instance_seconds: outcome.thread_ns.iter().map(|&t| t as f64 / 1e9).collect(),
            zeroed_bytes: last.moves.zeroed / run,
            zeroed_late_bytes: last.moves.zeroed_late / run,
            most_bytes: 0,
            minor: pauses(stats, GcKind::Minor),
            observer: pauses(stats, GcKind::Observer),
            full: pauses(stats, GcKind::Full),
            minor_seconds: total(GcKind::Minor),
            minor_tracing_seconds: stats.tracing(GcKind::Minor).as_secs_f64(),
            observer_seconds: total(GcKind::Observer),
            full_seconds: total(GcKind::Full),
            allocated_bytes: stats.allocated,
            survived_bytes: stats.promoted,
            peak_bytes: stats.peak,
            cpu_j: None,
            trays: None,
            power: Vec::new(),
            phases: ends[0].phases.iter().map(Phase::of).collect(),
            interval_seconds: ends[0]
                .first_interval
                .map(|first| outcome.thread_ns[0] as f64 / 1e9 - first.as_secs_f64()),
            untold: ends[0].untold.clone(),
            seen: None,
        }
    }

    /// Energy of processors and memory, J.
    pub fn all_j(&self) -> Option<f64> {
        Some(self.cpu_j? + self.energy_j?)
    }

    /// The longest pause, ns.
    pub fn longest_pause_ns(&self) -> u64 {
        let all = [self.minor, self.observer, self.full];
        all.iter().map(|p| p.max_ns).max().unwrap_or(0)
    }

    /// Time in collections, s.
    pub fn gc_seconds(&self) -> f64 {
        self.minor_seconds + self.observer_seconds + self.full_seconds
    }

    /// Share of the time that collections took, 0 to 1.
    pub fn gc_share(&self) -> f64 {
        self.gc_seconds() / self.first_seconds().max(f64::MIN_POSITIVE)
    }

    /// Time of the program itself, without its collector, s.
    pub fn mutator_seconds(&self) -> f64 {
        self.first_seconds() - self.gc_seconds()
    }

    /// Time of the first instance, whose collections are known.
    fn first_seconds(&self) -> f64 {
        self.instance_seconds
            .first()
            .copied()
            .unwrap_or(self.seconds)
    }

    /// The instances' times beside those of another run of as many.
    pub fn turnaround(&self, base: &PlanResult) -> Turnaround {
        let ours = &self.instance_seconds;
        let ratio = |(a, b): (&f64, &f64)| a / b.max(f64::MIN_POSITIVE);
        let all: Vec<f64> = ours.iter().zip(&base.instance_seconds).map(ratio).collect();
        let most = |v: &[f64]| v.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let least = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let middle = mean(ours);
        let squares: Vec<f64> = ours.iter().map(|t| (t - middle).powi(2)).collect();
        Turnaround {
            mntt: most(&all),
            antt: mean(&all),
            fairness: least(&all) / most(&all),
            variation: mean(&squares).sqrt() / middle.max(f64::MIN_POSITIVE),
        }
    }
}

/// Sockets with threads or memory of the program.
fn sockets(spec: &ManagedSpec) -> std::ops::Range<usize> {
    match spec.numa {
        Numa::Local => 0..1,
        Numa::Remote | Numa::Auto => 0..spec.machine.sockets as usize,
    }
}

/// Energy of the sockets in use: memory and processors. A thread for each instance runs, those that are not run as long as the others.
pub(super) fn of_sockets_in_use(
    spec: &ManagedSpec,
    outcome: &Outcome,
) -> (Option<f64>, Option<f64>) {
    let m = &spec.machine;
    let memory = Energy::of(m, outcome).ok();
    let memory = memory.map(|e| sockets(spec).map(|s| e.socket(s)).sum());
    let times = &outcome.thread_ns;
    let mut threads = vec![0.0; m.sockets as usize];
    for i in 0..spec.instances {
        let run = times.get(i as usize).or(times.first()).copied();
        let seconds = run.unwrap_or(outcome.ns) as f64 / 1e9;
        let shifts = spec.shifts.as_ref();
        let seconds = shifts.map_or(seconds, |shifts| shifts.busy(i, seconds));
        threads[spec.numa.socket(i, m.sockets) as usize] += seconds;
    }
    let used = varve_machine::Machine {
        sockets: sockets(spec).len() as u32,
        ..m.clone()
    };
    let cpu = CpuEnergy::of(&used, outcome.ns as f64 / 1e9, &threads).ok();
    (memory, cpu.map(|c| c.total()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taking(seconds: &[f64]) -> PlanResult {
        PlanResult {
            instance_seconds: seconds.into(),
            ..PlanResult::default()
        }
    }

    #[test]
    fn turnaround_is_that_of_each_instance_beside_itself() {
        let base = taking(&[1.0, 2.0]);
        let t = taking(&[2.0, 2.0]).turnaround(&base);
        assert_eq!((t.mntt, t.antt, t.fairness), (2.0, 1.5, 0.5));
        assert_eq!(t.variation, 0.0);
        let t = base.turnaround(&base);
        assert_eq!((t.mntt, t.antt, t.fairness), (1.0, 1.0, 1.0));
        assert!((t.variation - 1.0 / 3.0).abs() < 1e-12);
    }
}
