//! B10: what remapping costs, on the model; what sampling costs, on this host.

use super::{Setup, claim};
use crate::plan::{Plan, Results};
use std::time::Instant;
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
        let mut spec = setup.bench.spec(Place::Hot(1), 500, 0)?;
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
        "on this host, with whatever else runs on it; published: about nothing with a free core",
    ));
    out.tables.push(table);
    Ok(())
}

/// Time of a program on this host, least of some rounds.
fn seconds(plan: &str, rounds: u32, argument: &str) -> Result<f64, varve_runtime::Error> {
    let bytes = include_bytes!("../../../../programs/dist/trees.wasm");
    let program = ManagedProgram::new("trees.wasm", &bytes[..]).with_arguments([argument]);
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
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
        let begun = Instant::now();
        program.start(&mut store, &module)?;
        least = least.min(begun.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// By interval; and the ratio at 10 us.
fn sampling(setup: &Setup) -> Result<Option<(RunTable, Option<f64>)>, Error> {
    let (rounds, argument) = match (setup.tiny(), setup.quick()) {
        (true, _) => (1, "6"),
        (_, true) => (3, "14"),
        _ => (7, "16"),
    };
    let of = |plan: &str| {
        seconds(plan, rounds, argument).map_err(|error| Error::Managed {
            file: "trees.wasm".into(),
            error: Box::new(error),
            err: Vec::new(),
        })
    };
    // The same heap, with nobody who samples.
    let base = of("hints")?;
    let mut table = RunTable::new("A program with sampling, on this host", "interval");
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("over none", Format::Ratio, Better::Lower),
    ];
    table.push("none", [(1e9 * base).into(), 1.0.into()]);
    let mut at_10us = None;
    for (name, interval) in [
        ("continuous", "0s"),
        ("10 us", "10us"),
        ("100 us", "100us"),
        ("1 ms", "1ms"),
        ("10 ms", "10ms"),
        ("100 ms", "100ms"),
        ("1 s", "1s"),
    ] {
        let seconds = of(&format!("sampled:interval={interval}"))?;
        table.push(name, [(1e9 * seconds).into(), (seconds / base).into()]);
        if interval == "10us" {
            at_10us = Some(seconds / base);
        }
    }
    Ok(Some((table, at_10us)))
}
