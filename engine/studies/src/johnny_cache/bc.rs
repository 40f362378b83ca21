//! Betweenness centrality (section 5.3, Figure 7): D8.

use super::claim;
use super::compare::{CORES, bars, time};
use super::setup::{SYSTEMS, Setup};
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, StudyResult};

fn bc_scales(setup: &Setup) -> &'static [u32] {
    if setup.quick() { &[26] } else { &[26, 27, 28] }
}

pub fn plan(setup: &Setup, plan: &mut Plan) {
    if !setup.options.wants("D8") {
        return;
    }
    for &s in bc_scales(setup) {
        let work = format!(
            "bc:vertices={},id=8,iterations=4,threads={CORES}",
            1u64 << s
        );
        let mut add = |key: &str| {
            let mut spec = setup.spec(key, &work, setup.apps_scale);
            spec.on.cores = CORES;
            let key = if key == "fast" { "dram" } else { key };
            plan.run(format!("bc{s}/{key}"), spec);
        };
        for (key, _) in SYSTEMS {
            add(key);
        }
        if s == 26 {
            add("fast");
        }
    }
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) {
    if !setup.options.wants("D8") {
        return;
    }
    let most = |slow: &str, scales: &[u32]| {
        scales
            .iter()
            .filter_map(|s| time(results, &format!("bc{s}"), slow, "static"))
            .reduce(f64::max)
    };
    let fits: &[u32] = if setup.quick() { &[26] } else { &[26, 27] };
    out.claims.push(claim(
        "D8",
        "BC 26, 27: Linux's time over JC-static's, most",
        3.2,
        most("random", fits),
        "x",
        "",
    ));
    out.claims.push(claim(
        "D8",
        "BC 26, 27: HeMem's time over JC-static's, most",
        2.0,
        most("hotset", fits),
        "x",
        "",
    ));
    if !setup.quick() {
        out.claims.push(claim(
            "D8",
            "BC 28: HeMem's time over JC-static's",
            5.0,
            most("hotset", &[28]),
            "x",
            "",
        ));
        let moved = |key: &str| {
            results
                .get(&format!("bc28/{key}"))
                .map(|r| r.moved_bytes as f64 / 1e9)
        };
        out.claims.push(claim(
            "D8",
            "BC 28: moved by HeMem",
            40.0,
            moved("hotset"),
            "GB",
            "of a run of 4 iterations",
        ));
        out.claims.push(claim(
            "D8",
            "BC 28: moved by JC-dyn",
            4.0,
            moved("dynamic"),
            "GB",
            "of a run of 4 iterations",
        ));
    }
    let dram = results.of_two("bc26/static", "bc26/dram", |a, b| a.seconds / b.seconds);
    out.claims.push(claim(
        "D8",
        "BC 26: JC-static's time over all data in DRAM",
        1.0,
        dram,
        "x",
        "",
    ));
    let waits = |key: &str| {
        results
            .get(&format!("bc26/{key}"))
            .map(|r| 100.0 * r.stalls.barrier)
    };
    out.claims.push(claim(
        "D8",
        "BC 26, JC-static: time at barriers",
        2.5,
        waits("static"),
        "%",
        "",
    ));
    out.claims.push(claim(
        "D8",
        "BC 26, HeMem: time at barriers",
        50.0,
        waits("hotset"),
        "%",
        "",
    ));
    out.claims.push(claim(
        "D8",
        "BC 26, JC-dyn: time at barriers",
        50.0,
        waits("dynamic"),
        "%",
        "",
    ));
    out.claims.push(claim(
        "D8",
        "BC 26, Linux: time at barriers",
        63.0,
        waits("random"),
        "%",
        "",
    ));
    out.charts.extend(bars(
        "bc",
        "Figure 7: betweenness centrality, time of an iteration",
        bc_scales(setup).iter().map(|s| format!("bc{s}")),
        results,
        |r| r.seconds * 1e9 / 4.0,
        Axis::new("time", "", Format::DurationNs),
    ));
}
