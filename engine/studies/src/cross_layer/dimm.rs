//! B6: power of one DIMM by the time between accesses (figure 3).

use super::{Setup, claim, traffic};
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Scale, Series, StudyResult};
use varve_run::membench::HotPlacement;
use varve_run::{Error, RunResult};

/// Delays, ns.
fn delays(setup: &Setup) -> Vec<u64> {
    let all = [
        0, 50, 150, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000,
    ];
    match setup.quick() {
        false => all.to_vec(),
        true => [0, 250, 1_000, 2_500, 10_000, 25_000, 100_000].to_vec(),
    }
}

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if !setup.options.wants("B6") {
        return Ok(());
    }
    for delay in delays(setup) {
        // Four objects share a line: as many writes as that takes.
        let mut bench = setup.bench.clone();
        bench.writes *= 4;
        let mut spec = bench.spec(HotPlacement::OneDimm, delay, 0)?;
        spec.point_ns = 0;
        plan.run(format!("one DIMM, {delay} ns"), spec);
    }
    Ok(())
}

pub fn claims(setup: &Setup, all: &Results, out: &mut StudyResult) {
    if !setup.options.wants("B6") {
        return;
    }
    let runs: Vec<(u64, &RunResult)> = delays(setup)
        .into_iter()
        .filter_map(|d| Some((d, all.get(&format!("one DIMM, {d} ns"))?)))
        .collect();
    let used = |r: &RunResult| r.power.as_ref().map_or(f64::NAN, |p| p.dimms[0]);
    // The last DIMM of the socket: no program uses it.
    let last = setup.bench.dimms() - 1;
    let idle = |r: &RunResult| r.power.as_ref().map_or(f64::NAN, |p| p.dimms[last]);
    let full = runs.first().map(|r| r.1);
    let over_idle = |mbps: f64| {
        let near = |a: &&(u64, &RunResult), b: &&(u64, &RunResult)| {
            let off = |r: &RunResult| (traffic(r) / 1e6 / mbps).ln().abs();
            off(a.1).total_cmp(&off(b.1))
        };
        let (_, r) = runs.iter().min_by(near)?;
        Some(used(r) / idle(r))
    };
    let note = "at the delay with the nearest bandwidth";
    out.claims.extend([
        claim(
            "B6",
            "an idle DIMM over a fully active one",
            0.15,
            full.map(|r| idle(r) / used(r)),
            "x",
            "drivers, termination and register included; word lines' supply and regulators not",
        ),
        claim(
            "B6",
            "a DIMM with 160 MB/s over an idle one, at least",
            4.0,
            over_idle(160.0),
            "x",
            note,
        ),
        claim(
            "B6",
            "a DIMM with 32 MB/s over an idle one, at least",
            3.0,
            over_idle(32.0),
            "x",
            note,
        ),
    ]);
    let x: Vec<f64> = runs.iter().map(|r| r.0.max(10) as f64).collect();
    let line = |name: &str, f: &dyn Fn(&RunResult) -> f64| {
        Series::new(name, x.clone(), runs.iter().map(|r| f(r.1)).collect())
    };
    if x.is_empty() {
        return;
    }
    let delay = || {
        Axis::new(
            "delay between two writes of a thread",
            "",
            Format::DurationNs,
        )
        .on(Scale::Log10)
    };
    out.charts.push(Chart::new(
        "one-dimm-power",
        "Power of one DIMM by the delay between writes (figure 3)",
        delay(),
        Axis::new("power", "W", Format::Number).between(0.0, None),
        Data::Lines(vec![
            line("the DIMM that is used", &used),
            line("one that is not", &idle),
        ]),
    ));
    out.charts.push(Chart::new(
        "one-dimm-bandwidth",
        "Bandwidth of one DIMM by the delay between writes (figure 3)",
        delay(),
        Axis::new("bandwidth", "", Format::BytesPerSecond).on(Scale::Log10),
        Data::Lines(vec![line("bandwidth", &traffic)]),
    ));
}
