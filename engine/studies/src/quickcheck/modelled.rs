//! C9 on a model of the paper's machine: durable objects are in Optane, and write-backs and fences cost what they cost there. Times are the
//! machine's, the same in every run, so that there are no turns.

use super::programs::QuickProgram;
use super::scratch::Scratch;
use super::stores::{self, KINDS, STORES, Size};
use super::turns::mean;
use super::{Study, best_of};
use crate::Effort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use varve_access::Op;
use varve_machine::Machine;
use varve_observed::{ManagedSpec, run_hosted, run_managed};
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::Error;
use varve_runtime::{Checks, Config, Sink};
use varve_serve::ycsb::{self, Workload};
use varve_serve::{Kind, Managed};

/// The paper's machine.
const MACHINE: &str = "optane-dc-48";
/// Rounds of a kernel, of which the later half counts.
const ROUNDS: usize = 4;

/// How many runs it takes.
pub fn runs(kernels: &[&QuickProgram]) -> usize {
    2 * (kernels.len() + STORES.len())
}

/// In full the paper's records, and a fifth of its operations: as each takes the machine the same time whenever the study runs, the rounds before
/// say how little the number of operations matters.
fn size(study: &Study) -> Size {
    let (records, operations) = match study.options.effort {
        Effort::Tiny => (50, 50),
        Effort::Quick => (5_000, 5_000),
        Effort::Full => (1_000_000, 100_000),
    };
    Size {
        records,
        warm_up: operations,
        operations,
    }
}

/// Times of one kind of checks: in the round before the last, and in the last.
type Times = [f64; 2];

pub fn modelled(
    study: &mut Study,
    kernels: &[&QuickProgram],
    out: &mut StudyResult,
) -> Result<(), Error> {
    let machine = study.options.machine(MACHINE)?;
    let size = size(study);
    let mut table = RunTable::new(
        format!("The same on a model of {MACHINE}"),
        "kernel; store, workload",
    );
    table.columns = vec![
        Column::new("Unbiased", Format::DurationNs, Better::Lower),
        Column::new("QuickCheck", Format::DurationNs, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
        Column::new("in the round before", Format::Percent, Better::Higher),
    ];
    let mut all = Vec::new();
    for entry in kernels {
        let mut times = [None; 2];
        for (time, (checks, kind)) in times.iter_mut().zip(KINDS) {
            study.begin(format!("{} {kind} on {MACHINE}", entry.name))?;
            *time = kernel(study, entry, &machine, checks)?;
        }
        let times = times.map(|time| time.map(|time| [f64::NAN, time]));
        all.extend(push(&mut table, entry.name, times));
    }
    claim(out, "kernels", 3.7, &all);
    for (store, name, published) in STORES {
        let mut times = [[None; 5]; 2];
        for (times, (checks, kind)) in times.iter_mut().zip(KINDS) {
            study.begin(format!("{name} {kind} on {MACHINE}"))?;
            match workloads(study, store, &machine, checks) {
                Ok(found) => *times = found.map(Some),
                Err(e) if e.is_interrupt() => return Err(e),
                Err(e) => study
                    .failures
                    .push(format!("{name} {kind} on {MACHINE} failed: {e}")),
            }
        }
        let rows = stores::rows(store);
        let mut all = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            all.extend(push(&mut table, row, [times[0][i], times[1][i]]));
        }
        claim(out, name, published, &all);
    }
    table.notes.push(format!(
        "The machine's time: of a kernel's best later round, and for an operation of a store with {} records of 1000 B in the second round \
         of {} operations; beside it what is less in the first. The records are written without the model, whose caches the first round fills. \
         What the host does with requests takes none.",
        size.records, size.operations
    ));
    out.tables.push(table);
    Ok(())
}

/// The reduction from the first time to the second, percent, as a row too.
fn push(table: &mut RunTable, name: &str, times: [Option<Times>; 2]) -> Option<f64> {
    let [Some(unbiased), Some(quick)] = times else {
        return None;
    };
    let [before, less] = [0, 1].map(|round| 100.0 * (1.0 - quick[round] / unbiased[round]));
    let before = match before.is_finite() {
        true => before.into(),
        false => Value::Missing,
    };
    table.push(
        name,
        [unbiased[1].into(), quick[1].into(), less.into(), before],
    );
    Some(less)
}

fn claim(out: &mut StudyResult, name: &str, published: f64, less: &[f64]) {
    let ours = mean(less).map_or(Value::Missing, Value::from);
    let what = format!("{name} on the modelled machine: QuickCheck takes less than Unbiased");
    out.claims
        .push(Claim::new("C9", what, published, ours, "%"));
}

/// ns of a kernel's best later round.
fn kernel(
    study: &mut Study,
    entry: &QuickProgram,
    machine: &Machine,
    checks: Checks,
) -> Result<Option<f64>, Error> {
    let scratch = Scratch::new().map_err(Error::Hosted)?;
    let program = study.program(entry, ROUNDS);
    let spec = ManagedSpec {
        config: scratch.config(checks, false),
        seed: study.options.seed,
        ..ManagedSpec::new(machine.clone(), "dram", program)
    };
    match run_managed(&spec, &mut |_| true) {
        Ok((_, end)) => Ok(best_of(&end.err).map(|ms| 1e6 * ms)),
        Err(e) => {
            study
                .failures
                .push(format!("{} on {MACHINE} failed: {e}", entry.name));
            Ok(None)
        }
    }
}

/// ns for an operation of each workload in its rounds.
fn workloads(
    study: &Study,
    store: Kind,
    machine: &Machine,
    checks: Checks,
) -> Result<[Times; 5], Error> {
    let scratch = Scratch::new().map_err(Error::Hosted)?;
    let config = Config {
        plan: Some("dram".into()),
        // The same every time.
        background: false,
        ..scratch.config(checks, false)
    };
    let (size, seed) = (size(study), study.options.seed);
    let driver = |sink| -> Result<[Times; 5], String> {
        let listening = Arc::new(AtomicBool::new(false));
        let sink = Box::new(Gate {
            listening: Arc::clone(&listening),
            sink,
        });
        let open = |config| Managed::observed(store, config, sink);
        let (mut spec, mut target) = stores::fill(seed, size, config, open)?;
        listening.store(true, Ordering::Relaxed);
        let mut times = [[0.0; 2]; 5];
        for (times, workload) in times.iter_mut().zip(Workload::ALL) {
            spec.workload = workload;
            for (time, operations) in times.iter_mut().zip([size.warm_up, size.operations]) {
                spec.operations = operations;
                let now = |target: &ycsb::Local<Managed>| {
                    let time = target.cache.store().engine().observed_time();
                    time.unwrap_or_default().as_nanos() as f64
                };
                let began = now(&target);
                let report = ycsb::run(&spec, &mut target).map_err(|e| e.to_string())?;
                *time = (now(&target) - began) / report.operations as f64;
            }
        }
        Ok(times)
    };
    run_hosted(machine, 4096, seed, driver, &mut |_| true)
}

/// Tells the model where pages are, and what is accessed only when it listens.
struct Gate {
    listening: Arc<AtomicBool>,
    sink: Box<dyn Sink>,
}

impl Sink for Gate {
    fn take(&mut self, ops: &[Op]) -> bool {
        !self.listening.load(Ordering::Relaxed) || self.sink.take(ops)
    }

    fn bind(&mut self, address: u64, bytes: u64, tier: u8) {
        self.sink.bind(address, bytes, tier);
    }

    fn release(&mut self, address: u64, bytes: u64) {
        self.sink.release(address, bytes);
    }

    fn now(&mut self) -> Duration {
        self.sink.now()
    }
}
