//! C9 on key-value stores: the workloads of YCSB in this process, on stores whose values are durable objects, and on one outside of the managed heap.

use super::Study;
use super::scratch::Scratch;
use super::turns::{Turns, mean};
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

/// The extra time of the paper's store outside of the managed heap, a native B+ tree behind serialization, over those in it, unbiased, percent.
const OUTSIDE: [f64; 3] = [62.0, 54.7, 57.7];
/// It has no checks.
const PEER: &str = "Outside";

/// Steps of a turn: each store is filled with each kind of checks, and so is the one outside; then all three run.
pub const STEPS: usize = COUNT * (KINDS.len() + 2);

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
            if let Err(e) = side_by_side(study, store, rows, &mut times)? {
                study.failures.push(format!("{name} failed: {e}"));
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
        out.claims.push(
            Claim::new("C9", what, *published, ours, "%")
                .with_note(format!("{name}: {}", spread(&times, rows, "QuickCheck"))),
        );
    }
    for (((_, name, _), rows), published) in STORES.iter().zip(&names).zip(OUTSIDE) {
        let more = rows
            .iter()
            .filter_map(|row| times.over(row, PEER, "Unbiased"));
        let ours = mean(&more.collect::<Vec<_>>()).map_or(Value::Missing, Value::from);
        let what = format!(
            "a native B+ tree outside of the heap, behind serialization, takes more than {name} Unbiased"
        );
        let note =
            "ours has no transactions of a library: places are stored and fenced, splits logged";
        let note = format!("{name}: {note}; {}", spread(&times, rows, PEER));
        out.claims
            .push(Claim::new("C9", what, published, ours, "%").with_note(note));
    }
    let (size, rounds) = (size(study), rounds(study));
    table.notes.push(format!(
        "{} records of {VALUE} B. Rounds that are timed: {}, of {} operations; before them {} of {}. Turns: {}.",
        size.records,
        rounds.timed,
        rounds.operations,
        rounds.warm_up,
        size.warm_up,
        turns(study)
    ));
    table.notes.push(
        "ns for an operation; what is less is the median of the rounds, in each of which all kinds do the same. Lines are written back and \
         fenced, on an ordinary file."
            .into(),
    );
    out.tables.push(table);
    Ok(())
}

/// How far to trust the mean over a store's workloads.
fn spread(times: &Turns, rows: &[&'static str; 5], kind: &'static str) -> String {
    let (error, number) = (times.error(rows, kind, KINDS[0].1), times.number());
    match error.is_finite() {
        true => format!("standard error {error:.1} points over {number} rounds"),
        false => "a single round".into(),
    }
}

/// For how long processors have run this thread, ns.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    1e9 * time.tv_sec as f64 + time.tv_nsec as f64
}

/// The names of a store's rows, by workload.
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

/// Rounds of a workload.
struct Rounds {
    /// Before any is timed.
    warm_up: usize,
    timed: usize,
    /// Of each that is timed.
    operations: u64,
}

/// Full ones are the paper's operations in five parts, so that what else the machine does falls on all kinds of a store.
fn rounds(study: &Study) -> Rounds {
    let operations = size(study).operations;
    match study.options.effort {
        Effort::Full => Rounds {
            warm_up: 1,
            timed: 5,
            operations: operations / 5,
        },
        _ => Rounds {
            warm_up: study.rounds() / 2,
            timed: study.rounds() / 2,
            operations,
        },
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

/// A store with all kinds of checks, and the one outside, are made and filled. Then they do the same operations, a round each in turns; records ns
/// for an operation of each round that is timed.
fn side_by_side(
    study: &mut Study,
    store: Kind,
    rows: &[&'static str; 5],
    times: &mut Turns,
) -> Result<Result<(), String>, Error> {
    let all = [
        (store, KINDS[0]),
        (store, KINDS[1]),
        (Kind::Outside, (Checks::None, PEER)),
    ];
    let mut ready = Vec::new();
    for (store, (checks, kind)) in all {
        study.begin(format!("{} {kind}, filled", store.name()))?;
        let filled = Scratch::new().and_then(|scratch| {
            let (spec, target) = filled(study, store, scratch.config(checks, false))?;
            Ok((kind, spec, target, scratch))
        });
        match filled {
            Ok(filled) => ready.push(filled),
            Err(e) => return Ok(Err(format!("{kind}: {e}"))),
        }
    }
    study.begin(format!("{} in turns", store.name()))?;
    let (rounds, warm_up) = (rounds(study), size(study).warm_up);
    for (row, workload) in rows.iter().zip(Workload::ALL) {
        for round in 0..rounds.warm_up + rounds.timed {
            let timed = round >= rounds.warm_up;
            // No store always runs after the same one.
            ready.rotate_left(1);
            for (kind, spec, target, _) in &mut ready {
                spec.workload = workload;
                spec.seed = study.options.seed + round as u64;
                spec.operations = if timed { rounds.operations } else { warm_up };
                match round_time(spec, target) {
                    Ok(time) if timed => times.note(row, kind, Some(time)),
                    Ok(_) => {}
                    Err(e) => return Ok(Err(format!("{kind}: {e}"))),
                }
            }
        }
    }
    Ok(Ok(()))
}

/// ns for an operation of a round.
fn round_time(spec: &Spec, target: &mut Local<Managed>) -> Result<f64, String> {
    let began = processor_ns();
    let report = ycsb::run(spec, target).map_err(|e| e.to_string())?;
    Ok((processor_ns() - began) / report.operations as f64)
}
