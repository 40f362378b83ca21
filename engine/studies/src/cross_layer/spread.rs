//! B7: MemBench with hot objects among cold ones, on all DIMMs or on few (figure 4); and the model of bandwidth that comes of it.

use super::{Setup, all_watts, claim, saved, traffic, watts};
use crate::plan::{Plan, Results};
use varve_pages::governor::BandwidthModel;
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Claim, Data, Series, StudyResult, Value};
use varve_run::membench::{HotPlacement, capacities};
use varve_run::{Error, RunResult};

/// Delays, ns.
fn delays(setup: &Setup) -> Vec<u64> {
    let all = [
        0, 25, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 1_000, 2_000,
    ];
    match setup.quick() {
        false => all.to_vec(),
        true => [0, 50, 100, 150, 250, 500, 1_000].to_vec(),
    }
}

fn name(place: HotPlacement, delay: u64) -> String {
    match place {
        HotPlacement::Hot(dimms) => format!("{dimms} hot DIMMs, {delay} ns"),
        HotPlacement::ByChance => format!("by chance, {delay} ns"),
        _ => format!("default, {delay} ns"),
    }
}

fn wanted(setup: &Setup) -> bool {
    ["B7", "B8", "B9"].iter().any(|id| setup.options.wants(id))
}

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if !wanted(setup) {
        return Ok(());
    }
    for delay in delays(setup) {
        let spread = (0..setup.bench.dimms()).map(HotPlacement::Hot);
        let mut places: Vec<HotPlacement> =
            [HotPlacement::Mixed].into_iter().chain(spread).collect();
        if setup.options.wants("B7") {
            places.push(HotPlacement::ByChance);
        }
        for place in places {
            plan.run(name(place, delay), setup.bench.spec(place, delay, 0)?);
        }
    }
    Ok(())
}

/// The model that the governor uses.
pub fn model(setup: &Setup, all: &Results) -> Option<BandwidthModel> {
    let loads: Vec<(&RunResult, Vec<&RunResult>)> = delays(setup)
        .into_iter()
        .filter_map(|delay| {
            let get = |dimms| all.get(&name(HotPlacement::Hot(dimms), delay));
            let few: Vec<&RunResult> = (1..setup.bench.dimms()).filter_map(get).collect();
            Some((get(0)?, few))
        })
        .collect();
    BandwidthModel::of_capacities(&capacities(&loads)).ok()
}

/// Runs of default and organized at a delay.
fn pair(all: &Results, delay: u64) -> Option<(&RunResult, &RunResult)> {
    Some((
        all.get(&name(HotPlacement::Mixed, delay))?,
        all.get(&name(HotPlacement::Hot(1), delay))?,
    ))
}

/// The speed of a kernel with trays over one without, under a program that has no colours.
fn trays_alone(all: &Results, delay: u64) -> Option<f64> {
    let default = all.get(&name(HotPlacement::ByChance, delay))?;
    Some(default.seconds / all.get(&name(HotPlacement::Mixed, delay))?.seconds)
}

pub fn claims(setup: &Setup, all: &Results, out: &mut StudyResult) {
    if !setup.options.wants("B7") {
        return;
    }
    let at = |delay: u64, f: &dyn Fn(&RunResult, &RunResult) -> f64| {
        pair(all, delay).map(|(default, hot)| f(default, hot))
    };
    let speed = |d: &RunResult, h: &RunResult| d.seconds / h.seconds;
    let joules =
        |d: &RunResult, h: &RunResult| saved(watts(h, 1) * h.seconds, watts(d, 1) * d.seconds);
    let all_joules = |d: &RunResult, h: &RunResult| {
        saved(all_watts(h, 1) * h.seconds, all_watts(d, 1) * d.seconds)
    };
    let best = |f: &dyn Fn(&RunResult, &RunResult) -> f64| {
        let keeps = |d: &&u64| at(**d, &speed).is_some_and(|s| s > 0.97);
        let delays = delays(setup);
        let values = delays.iter().filter(keeps).filter_map(|d| at(*d, f));
        values.reduce(f64::max)
    };
    let loses = at(50, &speed).map(|s| s < 0.97);
    let farthest = delays(setup)
        .into_iter()
        .filter_map(|d| Some((trays_alone(all, d)? - 1.0).abs()))
        .reduce(f64::max);
    out.claims.extend([
        Claim::new(
            "B7",
            "trays alone perform as the default at every delay",
            true,
            farthest.map_or(Value::Missing, |most| Value::from(most < 0.05)),
            "",
        )
        .with_note(farthest.map_or(String::new(), |most| {
            let most = 100.0 * most;
            format!("within 5 %; the default takes frames by chance, and the farthest is {most:.1} % off")
        })),
        claim(
            "B7",
            "hot objects on one DIMM: performance at 150 ns",
            1.0,
            at(150, &speed),
            "x default",
            "",
        ),
        Claim::new(
            "B7",
            "hot objects on one DIMM lose performance below 75 ns",
            true,
            loses.map_or(Value::Missing, Value::from),
            "",
        )
        .with_note("at 50 ns"),
        claim(
            "B7",
            "DRAM energy saved at 250 ns",
            41.0,
            at(250, &joules),
            "%",
            "",
        ),
        claim(
            "B7",
            "the most DRAM energy saved at any delay without loss",
            41.0,
            best(&joules),
            "%",
            "",
        ),
        claim(
            "B7",
            "CPU+DRAM energy saved at 250 ns",
            8.8,
            at(250, &all_joules),
            "%",
            "processors by a simple model",
        ),
    ]);
    charts(setup, all, &speed, out);
}

fn charts(
    setup: &Setup,
    all: &Results,
    speed: &dyn Fn(&RunResult, &RunResult) -> f64,
    out: &mut StudyResult,
) {
    let delays: Vec<u64> = delays(setup)
        .into_iter()
        .filter(|d| pair(all, *d).is_some())
        .collect();
    if delays.is_empty() {
        return;
    }
    let x: Vec<f64> = delays.iter().map(|d| *d as f64).collect();
    let line = |what: &str, f: &dyn Fn(u64) -> Option<f64>| {
        let y = delays.iter().map(|d| f(*d).unwrap_or(f64::NAN)).collect();
        Series::new(what, x.clone(), y)
    };
    let delay = || {
        Axis::new(
            "delay between two writes of a thread",
            "",
            Format::DurationNs,
        )
    };
    let hot = |dimms: usize| {
        line(&format!("{dimms} hot DIMMs"), &|d| {
            let hot = all.get(&name(HotPlacement::Hot(dimms), d))?;
            Some(speed(all.get(&name(HotPlacement::Mixed, d))?, hot))
        })
    };
    out.charts.push(Chart::new(
        "membench-performance",
        "MemBench: performance of hot and cold apart, over default (figure 4a)",
        delay(),
        Axis::new("performance", "x default", Format::Number).between(0.0, None),
        Data::Lines(
            (1..setup.bench.dimms())
                .map(hot)
                .chain([line("trays alone, over frames by chance", &|d| {
                    trays_alone(all, d)
                })])
                .collect(),
        ),
    ));
    let gbps = |place: HotPlacement| move |d: u64| all.get(&name(place, d)).map(traffic);
    out.charts.push(Chart::new(
        "membench-bandwidth",
        "MemBench: bandwidth (figure 4a)",
        delay(),
        Axis::new("bandwidth", "", Format::BytesPerSecond).between(0.0, None),
        Data::Lines(vec![
            line("default", &gbps(HotPlacement::Mixed)),
            line("hot on one DIMM", &gbps(HotPlacement::Hot(1))),
        ]),
    ));
    let energy = |sockets_watts: fn(&RunResult, usize) -> f64| {
        move |d: u64| {
            let (default, hot) = pair(all, d)?;
            let j = |r: &RunResult| sockets_watts(r, 1) * r.seconds;
            Some(j(hot) / j(default))
        }
    };
    out.charts.push(Chart::new(
        "membench-energy",
        "MemBench: energy of hot and cold apart, over default (figure 4b)",
        delay(),
        Axis::new("energy", "x default", Format::Number).between(0.0, None),
        Data::Lines(vec![
            line("DRAM", &energy(watts)),
            line("CPU + DRAM", &energy(all_watts)),
        ]),
    ));
}
