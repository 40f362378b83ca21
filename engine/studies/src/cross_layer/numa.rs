//! B8: NUMABench, some of the hot objects on the other socket (figure 5), and bandwidth by hot DIMMs (table 1).

use super::{Setup, all_watts, claim, traffic, watts};
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Series, StudyResult};
use varve_run::membench::HotPlacement;
use varve_run::{Error, RunResult};

fn percents(setup: &Setup) -> Vec<u32> {
    match setup.quick() {
        false => vec![0, 5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100],
        true => vec![0, 5, 20, 30, 40, 60, 100],
    }
}

fn name(place: HotPlacement, remote: u32) -> String {
    format!("{place:?}, {remote} % remote")
}

const ORGANIZED: HotPlacement = HotPlacement::Hot(1);

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if !setup.options.wants("B8") {
        return Ok(());
    }
    for remote in percents(setup) {
        for place in [HotPlacement::Mixed, ORGANIZED] {
            plan.run(name(place, remote), setup.bench.spec(place, 0, remote)?);
        }
    }
    Ok(())
}

pub fn claims(setup: &Setup, all: &Results, out: &mut StudyResult) {
    if !setup.options.wants("B8") {
        return;
    }
    let runs = |place: HotPlacement| -> Vec<(u32, &RunResult)> {
        let get = |p: u32| Some((p, all.get(&name(place, p))?));
        percents(setup).into_iter().filter_map(get).collect()
    };
    let best = |place: HotPlacement| {
        let fastest =
            |a: &(u32, &RunResult), b: &(u32, &RunResult)| a.1.seconds.total_cmp(&b.1.seconds);
        runs(place)
            .into_iter()
            .min_by(fastest)
            .map(|r| f64::from(r.0))
    };
    let at = |remote: u32, f: &dyn Fn(&RunResult, &RunResult) -> f64| {
        all.of_two(
            &name(HotPlacement::Mixed, remote),
            &name(ORGANIZED, remote),
            f,
        )
    };
    out.claims.extend([
        claim(
            "B8",
            "best part of hot data remote, default",
            5.0,
            best(HotPlacement::Mixed),
            "%",
            "of the parts tried",
        ),
        claim(
            "B8",
            "best part of hot data remote, organized",
            30.0,
            best(ORGANIZED),
            "%",
            "of the parts tried",
        ),
        claim(
            "B8",
            "organized over default, 40 % remote: performance",
            1.1,
            at(40, &|d, o| d.seconds / o.seconds),
            "x",
            "",
        ),
        claim(
            "B8",
            "CPU+DRAM energy saved, 40 % remote",
            15.0,
            at(40, &|d, o| {
                super::saved(all_watts(o, 2) * o.seconds, all_watts(d, 2) * d.seconds)
            }),
            "%",
            "processors by a simple model",
        ),
    ]);
    for (dimms, published) in [(1, 11.7), (2, 23.2), (3, 32.1), (4, 39.5)] {
        let hot = if dimms == setup.bench.dimms() {
            0
        } else {
            dimms
        };
        let ours = all.get(&format!("{hot} hot DIMMs, 0 ns"));
        out.claims.push(claim(
            "B8",
            &format!("bandwidth with {dimms} hot DIMMs, none remote"),
            published,
            ours.map(|r| traffic(r) / 1e9),
            "GB/s",
            "",
        ));
    }
    if runs(ORGANIZED).is_empty() {
        return;
    }
    let line = |what: &str, place: HotPlacement, f: &dyn Fn(&RunResult) -> f64| {
        let runs = runs(place);
        let x = runs.iter().map(|r| f64::from(r.0)).collect();
        Series::new(what, x, runs.iter().map(|r| f(r.1)).collect())
    };
    let remote = || Axis::new("hot data on the other socket", "", Format::Percent);
    let of_socket = |r: &RunResult, socket: usize| {
        r.power
            .as_ref()
            .and_then(|p| p.traffic.get(socket))
            .copied()
            .unwrap_or(f64::NAN)
    };
    out.charts.push(Chart::new(
        "numabench-bandwidth",
        "NUMABench: bandwidth of both sockets (figure 5a)",
        remote(),
        Axis::new("bandwidth", "", Format::BytesPerSecond).between(0.0, None),
        Data::Lines(vec![
            line("default, local", HotPlacement::Mixed, &|r| of_socket(r, 0)),
            line("default, remote", HotPlacement::Mixed, &|r| of_socket(r, 1)),
            line("organized, local", ORGANIZED, &|r| of_socket(r, 0)),
            line("organized, remote", ORGANIZED, &|r| of_socket(r, 1)),
        ]),
    ));
    let ratio = |f: &dyn Fn(&RunResult) -> f64| {
        let both = percents(setup).into_iter().filter_map(|p| {
            let (d, o) = (
                all.get(&name(HotPlacement::Mixed, p))?,
                all.get(&name(ORGANIZED, p))?,
            );
            Some((f64::from(p), f(o) / f(d)))
        });
        both.unzip::<f64, f64, Vec<f64>, Vec<f64>>()
    };
    let series = |what: &str, f: &dyn Fn(&RunResult) -> f64| {
        let (x, y) = ratio(f);
        Series::new(what, x, y)
    };
    out.charts.push(Chart::new(
        "numabench-ratios",
        "NUMABench: organized over default (figure 5)",
        remote(),
        Axis::new("organized", "x default", Format::Number).between(0.0, None),
        Data::Lines(vec![
            series("performance", &|r| 1.0 / r.seconds),
            series("DRAM energy", &|r| watts(r, 2) * r.seconds),
            series("CPU + DRAM energy", &|r| all_watts(r, 2) * r.seconds),
        ]),
    ));
}
