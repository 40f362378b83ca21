//! C9 on key-value stores: the workloads of YCSB in this process, on stores whose values are durable objects, and on one outside of the managed heap.

use super::turns::{Turns, mean};
use super::{Scratch, Study};
use crate::Effort;
use rustix::time::{ClockId, clock_gettime};
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::Error;
use varve_runtime::{Checks, Config};
use varve_serve::ycsb::{self, Local, Spec, Workload};
use varve_serve::{Cache, Kind, Limits, Managed, OVERHEAD};

/// The stores, and what the paper's QuickCheck takes less than Unbiased on them, percent.
pub const STORES: [(Kind, &str, f64); 3] = [
    (Kind::FhMap, "FHMap", 9.3),
    (Kind::PbTree, "PBTree", 8.2),
    (Kind::HbTree, "HBTree", 6.5),
];
/// How many they are.
pub const COUNT: usize = STORES.len();

/// What the paper's store outside of the managed heap, a native B+ tree behind serialization, takes more than those in it, unbiased, percent.
const OUTSIDE: [f64; 3] = [62.0, 54.7, 57.7];
/// It has no checks.
const PEER: &str = "Outside";

/// Runs of a turn.
pub const RUNS: usize = COUNT * KINDS.len() + 1;

pub const KINDS: [(Checks, &str); 2] = [
    (Checks::Unbiased, "Unbiased"),
    (Checks::Profiled, "QuickCheck"),
];

/// Bytes of a value, as in the paper.
const VALUE: usize = 1000;

/// Runs the stores in turns, and says what it means.
pub fn stores(study: &mut Study, out: &mut StudyResult) -> Result<(), Error> {
    let names: Vec<[&'static str; 5]> = STORES.iter().map(|s| rows(s.0)).collect();
    let mut times = Turns::default();
    for _ in 0..turns(study) {
        for (&(store, name, _), rows) in STORES.iter().zip(&names) {
            for (checks, kind) in KINDS {
                study.begin(format!("{name} {kind}"))?;
                let found = round_times(study, store, checks);
                if let Err(e) = &found {
                    study.failures.push(format!("{name} {kind} failed: {e}"));
                }
                for (i, row) in rows.iter().enumerate() {
                    times.note(row, kind, found.as_ref().ok().map(|all| all[i]));
                }
            }
        }
        // The one outside stands beside each of the others.
        study.begin(PEER.into())?;
        let found = round_times(study, Kind::Outside, Checks::None);
        if let Err(e) = &found {
            study.failures.push(format!("{PEER} failed: {e}"));
        }
        for rows in &names {
            for (i, row) in rows.iter().enumerate() {
                times.note(row, PEER, found.as_ref().ok().map(|all| all[i]));
            }
        }
    }
    let mut table = RunTable::new("Stores under YCSB whose values survive", "store, workload");
    table.columns = vec![
        Column::new("Unbiased", Format::Number, Better::Lower),
        Column::new("QuickCheck", Format::Number, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
        Column::new(PEER, Format::Number, Better::Lower),
    ];
    for ((_, name, published), rows) in STORES.iter().zip(&names) {
        let mut all = Vec::new();
        for row in rows {
            let over = times.over(row, "QuickCheck", "Unbiased");
            let typical = KINDS.map(|(_, kind)| times.typical(row, kind));
            if let ([Some(unbiased), Some(quick)], Some(over)) = (typical, over) {
                all.push(-over);
                let peer = times.typical(row, PEER).map_or(Value::Missing, Value::from);
                table.push(*row, [unbiased.into(), quick.into(), (-over).into(), peer]);
            }
        }
        let ours = mean(&all).map_or(Value::Missing, Value::from);
        let what =
            format!("{name}: QuickCheck takes less than Unbiased, mean of YCSB A, B, C, D, F");
        out.claims
            .push(Claim::new("C9", what, *published, ours, "%"));
    }
    for (((_, name, _), rows), published) in STORES.iter().zip(&names).zip(OUTSIDE) {
        let more = rows
            .iter()
            .filter_map(|row| times.over(row, PEER, "Unbiased"));
        let ours = mean(&more.collect::<Vec<_>>()).map_or(Value::Missing, Value::from);
        let what = format!(
            "a native B+ tree outside of the heap, behind serialization, takes more than {name} Unbiased"
        );
        out.claims
            .push(Claim::new("C9", what, published, ours, "%").with_note(
            "ours has no transactions of a library: places are stored and fenced, splits logged",
        ));
    }
    let size = size(study);
    table.notes.push(format!(
        "{} records of {VALUE} B. Rounds that are timed: {}, of {} operations; before them as many of {}. Turns: {}.",
        size.records,
        rounds(study) - rounds(study) / 2,
        size.operations,
        size.warm_up,
        turns(study)
    ));
    table.notes.push(
        "ns for an operation, the best later round. Lines are written back and fenced, on an ordinary file.".into(),
    );
    out.tables.push(table);
    Ok(())
}

/// For how long processors have run this thread, ns.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    1e9 * time.tv_sec as f64 + time.tv_nsec as f64
}

/// What a store's rows are called, by workload.
pub fn rows(store: Kind) -> [&'static str; 5] {
    match store {
        Kind::FhMap => ["FHMap A", "FHMap B", "FHMap C", "FHMap D", "FHMap F"],
        Kind::PbTree => ["PBTree A", "PBTree B", "PBTree C", "PBTree D", "PBTree F"],
        Kind::HbTree => ["HBTree A", "HBTree B", "HBTree C", "HBTree D", "HBTree F"],
        Kind::Outside => [
            "Outside A",
            "Outside B",
            "Outside C",
            "Outside D",
            "Outside F",
        ],
    }
}

/// How large a store is, and what is done with it.
#[derive(Clone, Copy)]
pub struct Size {
    pub records: u64,
    /// Operations of a round that is not timed.
    pub warm_up: u64,
    /// Operations of one that is.
    pub operations: u64,
}

/// In full the paper's records and operations; a fifth of these compile everything and fill the caches.
fn size(study: &Study) -> Size {
    let (records, warm_up, operations) = match study.options.effort {
        Effort::Tiny => (100, 100, 100),
        Effort::Quick => (5_000, 5_000, 5_000),
        Effort::Full => (1_000_000, 100_000, 500_000),
    };
    Size {
        records,
        warm_up,
        operations,
    }
}

/// Rounds of a workload, of which the later half counts. Long ones are few.
fn rounds(study: &Study) -> usize {
    match study.options.effort {
        Effort::Full => 2,
        _ => study.rounds(),
    }
}

/// Turns, in which all stores run. One of the full size takes minutes.
pub fn turns(study: &Study) -> usize {
    match study.options.effort {
        Effort::Full => 1,
        _ => study.turns(),
    }
}

/// A store with its records.
pub fn filled(
    study: &Study,
    store: Kind,
    config: Config,
) -> Result<(Spec, Local<Managed>), String> {
    fill(study.options.seed, size(study), config, |config| {
        Managed::new(store, config)
    })
}

/// A store of such a size, however it is opened.
pub fn fill(
    seed: u64,
    size: Size,
    config: Config,
    open: impl FnOnce(Config) -> Result<Managed, varve_runtime::Error>,
) -> Result<(Spec, Local<Managed>), String> {
    let spec = Spec {
        workload: Workload::ALL[0],
        records: size.records,
        operations: size.operations,
        value: VALUE,
        seed,
    };
    let memory = 2 * size.records * (VALUE as u64 + OVERHEAD + 32);
    let config = Config {
        heap_max: memory + memory / 2 + (128 << 20),
        ..config
    };
    let limits = Limits {
        value: VALUE,
        memory,
    };
    let managed = open(config).map_err(|e| e.to_string())?;
    let cache = Cache::new(managed, limits, varve_serve::seconds()).map_err(|e| e.to_string())?;
    let mut target = Local::new(cache);
    ycsb::load(&spec, &mut target).map_err(|e| e.to_string())?;
    Ok((spec, target))
}

/// ns for an operation of each workload, the best of the later rounds, on a store that is made and filled for it.
fn round_times(study: &Study, store: Kind, checks: Checks) -> Result<[f64; 5], String> {
    let scratch = Scratch::new(store.name());
    let (mut spec, mut target) = filled(study, store, scratch.config(checks, false))?;
    let mut best = [f64::INFINITY; 5];
    for (best, workload) in best.iter_mut().zip(Workload::ALL) {
        spec.workload = workload;
        for round in 0..rounds(study) {
            let timed = round >= rounds(study) / 2;
            spec.operations = match timed {
                true => size(study).operations,
                false => size(study).warm_up,
            };
            let began = processor_ns();
            let report = ycsb::run(&spec, &mut target).map_err(|e| e.to_string())?;
            let time = (processor_ns() - began) / report.operations as f64;
            if timed {
                *best = best.min(time);
            }
        }
    }
    Ok(best)
}
