//! Result of a Java program's run under one plan.

use super::program::{CLASSES, FULL, MINOR, OTHER, owner};
use super::{JavaSpec, PAGE, dram_bytes};
use crate::steady::SteadyRun;
use crate::{Compared, Measured, Pauses, Seen, StallShares};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use varve_machine::Machine;
use varve_machine::model::Outcome;
use varve_pages::InUse;
use varve_trace::{Collector, Use};

/// Size of one part of a virtual machine's memory, and the accesses to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UseOfMemory {
    /// Its use; the last one is all memory that the machine does not report.
    pub name: String,
    /// Bytes of its pages in fast memory, when most pages were in use.
    pub fast_bytes: u64,
    /// The same for slow memory.
    pub slow_bytes: u64,
    /// Bytes that were read from memory for it, those that a prefetcher asked for too.
    pub read_bytes: u64,
    /// Loads that missed all caches.
    pub load_misses: u64,
    /// Stores that missed all caches.
    pub store_misses: u64,
    /// Time that threads waited for its lines, s, of all threads.
    pub waited_seconds: f64,
}

/// Everything measured of one run. Times are the modelled machine's. Counts and bytes of memory are those of all instances where
/// one stands for them; the rest is of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JavaResult {
    /// Plan as asked for.
    pub plan: String,
    /// Measurements that all kinds of runs have. Stalls are shares of the time of all threads while they lived.
    #[serde(flatten)]
    pub measured: Measured,
    /// The steady state, if it is what was measured. Energy and the sizes of memory are those of the whole run all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRun>,
    /// Fast memory that an instance had, bytes.
    pub budget_bytes: u64,
    /// The most bytes of pages in use at a time. The bytes in fast and in slow memory are of that time.
    pub most_bytes: u64,
    /// Instances that share the machine.
    pub instances: u32,
    /// Threads of an instance, over its life.
    pub threads: u32,
    /// Threads of an instance that are busy at a time.
    pub busy_threads: u32,
    /// The collector.
    pub collector: Collector,
    /// Feature version of the virtual machine, such as 17.
    pub java: u32,
    /// Collections of the young generation, as the virtual machine counts them, and the pauses in which nothing else was collected.
    pub minor: Pauses,
    /// Collections of everything, and their pauses.
    pub full: Pauses,
    /// Other pauses: parts of a collection beside the program.
    pub other: Pauses,
    /// Time in pauses for collections of the young generation, s.
    pub minor_seconds: f64,
    /// Time in pauses for collections of everything, s.
    pub full_seconds: f64,
    /// Time in other pauses, s.
    pub other_seconds: f64,
    /// Share of the time that pauses took, 0 to 1.
    pub gc_share: f64,
    /// The longest pause, ns.
    pub longest_pause_ns: u64,
    /// Parts of the memory.
    pub memory: Vec<UseOfMemory>,
    /// Why the program ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Data for pictures, if they are wanted.
    #[serde(skip)]
    pub seen: Option<Box<Seen>>,
}

impl Compared for JavaResult {
    fn name(&self) -> &str {
        &self.plan
    }

    fn rename(&mut self, name: &str) {
        self.plan = name.into();
    }

    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    fn steady(&self) -> Option<SteadyRun> {
        self.steady
    }

    fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }
}

/// Fields of [`Measured`] are read as fields of the result.
impl Deref for JavaResult {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.measured
    }
}

impl JavaResult {
    pub(super) fn new(
        spec: &JavaSpec,
        machine: &Machine,
        name: &str,
        out: &Outcome,
        most: &InUse,
    ) -> JavaResult {
        let last = out.last();
        let (fast_bytes, slow_bytes) = (most.fast() * PAGE, most.slow() * PAGE);
        let seconds = last.ns() as f64 / 1e9;
        let class = |class: u64| {
            let name = CLASSES[class as usize];
            last.latencies.iter().find(|of| of.class == name)
        };
        let pauses = |number| {
            class(number).map_or(Pauses::default(), |of| Pauses {
                count: of.count,
                p50_ns: of.p50_ns,
                p99_ns: of.p99_ns,
                max_ns: of.max_ns,
            })
        };
        let total = |number| class(number).map_or(0.0, |of| of.count as f64 * of.mean_ns / 1e9);
        let (mut minor, mut full, other) = (pauses(MINOR), pauses(FULL), pauses(OTHER));
        let paused = total(MINOR) + total(FULL) + total(OTHER);
        // Of the whole run, what threads sleep counts as their time.
        let lived = match spec.steady {
            Some(_) => last.awake_ns,
            None => out.thread_ns.iter().sum(),
        };
        let recorded = &spec.recorded;
        // Everything may be collected right after the young generation, in one pause, which is the one of everything.
        if spec.steady.is_none() {
            (minor.count, full.count) = (recorded.java.minor, recorded.java.full);
        }
        JavaResult {
            plan: spec.plan.clone(),
            measured: Measured {
                machine: machine.name.clone(),
                program: name.into(),
                seed: spec.seed,
                page_bytes: PAGE,
                fast_bytes,
                slow_bytes,
                moved_bytes: last.moves.bytes,
                stalls: StallShares::of(&last.stalls, lived as f64),
                ..Measured::of(last, 1, 1)
            },
            steady: None,
            budget_bytes: dram_bytes(machine),
            most_bytes: fast_bytes + slow_bytes,
            instances: spec.instances,
            threads: out.threads.len() as u32,
            busy_threads: recorded.busy,
            collector: recorded.java.collector,
            java: recorded.java.version,
            minor,
            full,
            other,
            minor_seconds: total(MINOR),
            full_seconds: total(FULL),
            other_seconds: total(OTHER),
            gc_share: paused / seconds.max(f64::MIN_POSITIVE),
            longest_pause_ns: minor.max_ns.max(full.max_ns).max(other.max_ns),
            memory: memory(out, most),
            warning: out.failure.clone(),
            seen: None,
        }
    }
}

/// Size and accesses of each part of the memory, without parts that do not occur.
fn memory(out: &Outcome, most: &InUse) -> Vec<UseOfMemory> {
    let last = out.last();
    let uses = Use::ALL.into_iter().map(Some).chain([None]);
    let of = |what: Option<Use>| {
        let number = owner(what) as usize;
        let counts = last.owners.get(number).copied().unwrap_or_default();
        let [slow, fast] = most.owners[number];
        UseOfMemory {
            name: what.map_or("outside", Use::name).into(),
            fast_bytes: fast * PAGE,
            slow_bytes: slow * PAGE,
            read_bytes: 64 * counts.lines,
            load_misses: counts.misses,
            store_misses: counts.store_misses,
            waited_seconds: counts.stall_ps as f64 / 1e12,
        }
    };
    let empty = |m: &UseOfMemory| m.fast_bytes + m.slow_bytes + m.read_bytes == 0;
    uses.map(of).filter(|m| !empty(m)).collect()
}
