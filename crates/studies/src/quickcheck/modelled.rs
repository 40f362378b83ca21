//! C9 on a model of the paper's machine: durable objects are in Optane, and write-backs and fences cost what they cost there. Times are the
//! machine's, the same in every run, so that there are no turns.

use super::programs::Entry;
use super::stores::{self, KINDS, STORES};
use super::turns::mean;
use super::{Scratch, Study, best_of};
use crate::Effort;
use varve_machine::Machine;
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::{Error, ManagedSpec, run_hosted, run_managed};
use varve_runtime::{Checks, Config};
use varve_serve::ycsb::{self, Workload};
use varve_serve::{Kind, Managed};

/// The paper's machine.
const MACHINE: &str = "optane-dc-48";
/// Rounds of a kernel, of which the later half counts, and of a workload, of which the last.
const ROUNDS: usize = 4;
const WORKLOAD_ROUNDS: usize = 2;

/// How many runs it takes.
pub fn runs(kernels: &[&Entry]) -> usize {
    2 * (kernels.len() + STORES.len())
}

/// Records, and operations of a round: in full those of the paper.
fn sizes(study: &Study) -> (u64, u64) {
    match study.options.effort {
        Effort::Tiny => (50, 50),
        Effort::Quick => (5_000, 5_000),
        Effort::Full => (1_000_000, 500_000),
    }
}

pub fn modelled(study: &mut Study, kernels: &[&Entry], out: &mut StudyResult) -> Result<(), Error> {
    let machine = study.options.machine(MACHINE)?;
    let (records, operations) = sizes(study);
    let mut table = RunTable::new(
        format!("The same on a model of {MACHINE}"),
        "kernel; store, workload",
    );
    table.columns = vec![
        Column::new("Unbiased", Format::DurationNs, Better::Lower),
        Column::new("QuickCheck", Format::DurationNs, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
    ];
    let mut all = Vec::new();
    for entry in kernels {
        let mut times = [None; 2];
        for (time, (checks, kind)) in times.iter_mut().zip(KINDS) {
            study.begin(format!("{} {kind} on {MACHINE}", entry.name))?;
            *time = kernel(study, entry, &machine, checks);
        }
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
        "The machine's time: of a kernel's best later round, and for an operation of a store with {records} records of 1000 B in the second round \
         of {operations} operations. What the host does with requests takes none."
    ));
    out.tables.push(table);
    Ok(())
}

/// What the second time is less than the first, percent, as a row too.
fn push(table: &mut RunTable, name: &str, times: [Option<f64>; 2]) -> Option<f64> {
    let [Some(unbiased), Some(quick)] = times else {
        return None;
    };
    let less = 100.0 * (1.0 - quick / unbiased);
    table.push(name, [unbiased.into(), quick.into(), Value::from(less)]);
    Some(less)
}

fn claim(out: &mut StudyResult, name: &str, published: f64, less: &[f64]) {
    let ours = mean(less).map_or(Value::Missing, Value::from);
    let what = format!("{name} on the modelled machine: QuickCheck takes less than Unbiased");
    out.claims
        .push(Claim::new("C9", what, published, ours, "%"));
}

/// ns of a kernel's best later round.
fn kernel(study: &mut Study, entry: &Entry, machine: &Machine, checks: Checks) -> Option<f64> {
    let scratch = Scratch::new(entry.name);
    let program = study.program(entry, ROUNDS);
    let spec = ManagedSpec {
        config: scratch.config(checks, false),
        seed: study.options.seed,
        ..ManagedSpec::new(machine.clone(), "dram", program)
    };
    match run_managed(&spec, &mut |_| true) {
        Ok((_, end)) => best_of(&end.err).map(|ms| 1e6 * ms),
        Err(e) => {
            study
                .failures
                .push(format!("{} on {MACHINE} failed: {e}", entry.name));
            None
        }
    }
}

/// ns for an operation of each workload in its last round.
fn workloads(
    study: &Study,
    store: Kind,
    machine: &Machine,
    checks: Checks,
) -> Result<[f64; 5], Error> {
    let scratch = Scratch::new(store.name());
    let config = Config {
        plan: Some("dram".into()),
        // The same every time.
        background: false,
        ..scratch.config(checks, false)
    };
    let (size, seed) = (sizes(study), study.options.seed);
    let options = study.options;
    let driver = |sink| -> Result<[f64; 5], String> {
        let open = |config| Managed::observed(store, config, sink);
        let (mut spec, mut target) = stores::fill(options, size, config, open)?;
        let mut times = [0.0; 5];
        for (time, workload) in times.iter_mut().zip(Workload::ALL) {
            spec.workload = workload;
            for _ in 0..WORKLOAD_ROUNDS {
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
