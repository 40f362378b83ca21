//! B10: what remapping costs, on the model; what sampling costs, on this host.

use super::{Setup, claim};
use crate::managed::module;
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, StudyResult};
use varve_run::membench::Place;
use varve_run::{Error, ManagedProgram, RunResult};
use varve_runtime::host::{Console, Input, Output};
use varve_runtime::{Config, Engine, Module, Store};

const REMAPPED: &str = "hot pages remapped";

/// A microbenchmark of remapping: hot pages go from one DIMM to all as soon as the governor has seen any traffic.
pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if setup.options.wants("B10") {
        // At full size: a page is 4 KiB, and costs what it costs. Few accesses, so that it is remapping that takes time.
        let mut bench = setup.bench.clone();
        (bench.scale, bench.writes) = (1, if setup.tiny() { 300 } else { 20_000 });
        bench.most_ns = 20_000 * bench.writes;
        let mut spec = bench.spec(Place::Hot(1), 20_000, 0)?;
        spec.policy = format!(
            "{},model=0.001/0.001/0.001,undo=0,sample=1ms,tick=1ms",
            spec.policy
        );
        spec.point_ns = 1_000_000;
        plan.run(REMAPPED, spec);
    }
    Ok(())
}

/// Seconds for each GB while pages moved: from the first point at which some had to the last before all had.
fn seconds_per_gb(r: &RunResult) -> Option<f64> {
    let all = r.timeline.last()?.moved_bytes;
    let moving = r
        .timeline
        .iter()
        .filter(|p| p.moved_bytes > 0.0 && p.moved_bytes < all);
    let points: Vec<_> = moving.collect();
    let (first, last) = (points.first()?, points.last()?);
    Some((last.at_s - first.at_s) / (last.moved_bytes - first.moved_bytes) * 1e9)
}

pub fn claims(setup: &Setup, all: &Results, out: &mut StudyResult) -> Result<(), Error> {
    if !setup.options.wants("B10") {
        return Ok(());
    }
    let per_gb = all.get(REMAPPED).and_then(seconds_per_gb);
    out.claims.push(claim(
        "B10",
        "remapping",
        0.95,
        per_gb,
        "s/GB",
        "published: 0.75 to 1.15; here the program goes on meanwhile, page by page of 4 KiB",
    ));
    let Some((table, slowest)) = sampling(setup)? else {
        return Ok(());
    };
    out.claims.push(claim(
        "B10",
        "time with sampling every 10 us, over that without",
        1.0,
        slowest,
        "x",
        "the program's thread on this host; published: about nothing with a free core",
    ));
    out.tables.push(table);
    Ok(())
}

/// Time of a program's thread on this host.
fn seconds(plan: &str, argument: &str) -> Result<f64, varve_runtime::Error> {
    let (file, bytes) = module!("trees");
    let program = ManagedProgram::new(file, &bytes[..]).with_arguments([argument]);
    let engine = Engine::new(Config {
        plan: Some(plan.into()),
        ..Config::default()
    });
    let module = Module::new(&engine, &program.bytes)?;
    let console = Console {
        input: Input::new(Box::new(std::io::empty())),
        out: Output::new(Box::new(std::io::sink())),
        err: Output::new(Box::new(std::io::sink())),
    };
    let mut store = Store::new(&engine, program.state(console)?)?;
    let begun = on_core();
    program.start(&mut store, &module)?;
    Ok(on_core() - begun)
}

/// Seconds that this thread was on a core. Others that want cores, the sampler among them, do not count: what is measured is what
/// sampling does to the program when there is a core for it.
fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// What is compared: its name, and its heap plan. First the same heap with nobody who samples, then one whose code says what runs and
/// nobody reads it.
const INTERVALS: [(&str, &str); 9] = [
    ("none", "hints"),
    ("never", "sampled:interval=3600s"),
    ("1 s", "sampled:interval=1s"),
    ("100 ms", "sampled:interval=100ms"),
    ("10 ms", "sampled:interval=10ms"),
    ("1 ms", "sampled:interval=1ms"),
    ("100 us", "sampled:interval=100us"),
    (AT, "sampled:interval=10us"),
    ("continuous", "sampled:interval=0s"),
];

/// The interval that the claim is about.
const AT: &str = "10 us";

/// By interval, medians of rounds in which each runs once; and the ratio at 10 us.
fn sampling(setup: &Setup) -> Result<Option<(RunTable, Option<f64>)>, Error> {
    let (rounds, argument) = match (setup.tiny(), setup.quick()) {
        (true, _) => (1, "6"),
        (_, true) => (5, "14"),
        _ => (11, "16"),
    };
    let mut times = vec![Vec::new(); INTERVALS.len()];
    for _ in 0..rounds {
        for ((_, plan), times) in INTERVALS.iter().zip(&mut times) {
            let took = seconds(plan, argument).map_err(|error| Error::Managed {
                file: "trees.wasm".into(),
                error: Box::new(error),
                err: Vec::new(),
            })?;
            times.push(took);
        }
    }
    // Others' work on this host comes and goes: a run is compared with that of its own round.
    let ratios: Vec<f64> = times
        .iter()
        .map(|own| median(own.iter().zip(&times[0]).map(|(t, base)| t / base)))
        .collect();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_string();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut table = RunTable::new(
        format!(
            "Time of a program's thread on a core by sampling interval; this host has {cores} cores and a load of {load}"
        ),
        "interval",
    );
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("over none", Format::Ratio, Better::Lower),
    ];
    for ((name, _), (times, ratio)) in INTERVALS.iter().zip(times.into_iter().zip(&ratios)) {
        table.push(*name, [(1e9 * median(times)).into(), (*ratio).into()]);
    }
    let at = INTERVALS.iter().position(|i| i.0 == AT);
    Ok(Some((table, at.map(|i| ratios[i]))))
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.into_iter().collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
