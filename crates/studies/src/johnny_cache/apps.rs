//! Applications: D8 betweenness centrality, D9 key-value store, D10 transactions, D11 NAS kernels.

use super::claim;
use super::setup::Setup;
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, StudyResult, Value};
use varve_run::RunResult;

/// Policies by the names that the paper uses.
const SYSTEMS: [(&str, &str); 4] = [
    ("static", "JC-static"),
    ("dynamic", "JC-dyn"),
    ("hotset", "HeMem"),
    ("random", "Linux"),
];
/// Cores of the node: OpenMP programs use all of them, and the daemons compete (section 5.3).
const CORES: u32 = 20;
const NAS_D: [&str; 3] = ["cg", "ft", "mg"];

fn kernels(setup: &Setup) -> &'static [&'static str] {
    if setup.quick() { &NAS_D[..1] } else { &NAS_D }
}

fn bc_scales(setup: &Setup) -> &'static [u32] {
    if setup.quick() { &[26] } else { &[26, 27, 28] }
}

pub fn plan(setup: &Setup, plan: &mut Plan) {
    let o = &setup.options;
    if o.wants("D8") {
        for &s in bc_scales(setup) {
            let work = format!(
                "bc:vertices={},id=8,iterations=4,threads={CORES}",
                1u64 << s
            );
            for (key, _) in SYSTEMS {
                let mut spec = setup.spec(key, &work, setup.apps_scale);
                spec.cores = CORES;
                plan.run(format!("bc{s}/{key}"), spec);
            }
            if s == 26 {
                let mut spec = setup.spec("fast", &work, setup.apps_scale);
                spec.cores = CORES;
                plan.run("bc26/dram", spec);
            }
        }
    }
    if o.wants("D9") {
        for (key, _) in SYSTEMS {
            let work = format!("ycsb:mix=C,requests=0,{}", setup.time(ycsb_seconds(key)));
            plan.run(format!("ycsb/{key}"), setup.spec(key, &work, setup.scale));
        }
    }
    if o.wants("D10") {
        for (key, _) in SYSTEMS {
            let time = setup.time(ycsb_seconds(key) / f64::from(setup.shrink));
            let work = format!("tpcc:transactions=0,{time}");
            // Less than a warehouse is none.
            let spec = setup.spec_unshrunk(key, &work, setup.scale);
            plan.run(format!("tpcc/{key}"), spec);
        }
    }
    if o.wants("D11") {
        for kernel in kernels(setup) {
            nas(setup, plan, kernel, "D", if setup.quick() { 1 } else { 3 });
        }
        if !setup.quick() {
            nas(setup, plan, "mg", "E", 1);
        }
    }
}

fn ycsb_seconds(policy: &str) -> f64 {
    // Daemons need time to find hot pages (Figure 9: tens of seconds).
    if policy == "hotset" || policy == "dynamic" {
        30.0
    } else {
        8.0
    }
}

fn nas(setup: &Setup, plan: &mut Plan, kernel: &str, class: &str, iterations: u32) {
    let work =
        format!("{kernel}:class={class},iterations={iterations},data=addresses,threads={CORES}");
    for (key, _) in SYSTEMS {
        let mut spec = setup.spec(key, &work, setup.apps_scale);
        spec.cores = CORES;
        plan.run(format!("{kernel}.{class}/{key}"), spec);
    }
}

fn time(results: &Results, group: &str, slow: &str, fast: &str) -> Option<f64> {
    results.of_two(
        &format!("{group}/{slow}"),
        &format!("{group}/{fast}"),
        |a, b| a.seconds / b.seconds,
    )
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) {
    let o = &setup.options;
    if o.wants("D8") {
        bc(setup, results, out);
    }
    if o.wants("D9") {
        ycsb(results, out);
    }
    if o.wants("D10") {
        let speed = |a: &RunResult, b: &RunResult| last_requests(a) / last_requests(b);
        let same = results.of_two("tpcc/static", "tpcc/hotset", speed);
        out.claims.push(claim(
            "D10",
            "TPC-C: JC-static over HeMem",
            1.0,
            same,
            "x",
            "published: equal",
        ));
        let linux = results.of_two("tpcc/static", "tpcc/random", speed);
        let better = linux.map_or(Value::Missing, |x| Value::from(x > 1.0));
        let note = linux.map_or(String::new(), |x| format!("{x:.2}x"));
        out.claims.push(
            varve_report::Claim::new(
                "D10",
                "TPC-C: JC-static faster than Linux",
                true,
                better,
                "",
            )
            .with_note(note),
        );
    }
    if o.wants("D11") {
        let ratios: Vec<(String, f64)> = kernels(setup)
            .iter()
            .filter_map(|k| {
                Some((
                    format!("{k}.D"),
                    time(results, &format!("{k}.D"), "hotset", "static")?,
                ))
            })
            .collect();
        let best = ratios.iter().map(|r| r.1).reduce(f64::max);
        let note: Vec<String> = ratios.iter().map(|(k, x)| format!("{k} {x:.2}")).collect();
        out.claims.push(claim(
            "D11",
            "NAS class D: JC-static over HeMem, best case",
            2.8,
            best,
            "x",
            &note.join(", "),
        ));
        if !setup.quick() {
            let mg = time(results, "mg.E", "static", "hotset");
            out.claims.push(claim(
                "D11",
                "MG.E: HeMem over JC-static",
                1.8,
                mg,
                "x",
                "streams through more than the cache",
            ));
        }
        out.charts.extend(bars(
            "nas",
            "NAS kernels: time by system",
            kernels(setup)
                .iter()
                .map(|k| format!("{k}.D"))
                .chain((!setup.quick()).then(|| "mg.E".into())),
            results,
            |r| r.seconds * 1e9,
            Axis::new("time", "", Format::DurationNs),
        ));
    }
}

fn bc(setup: &Setup, results: &Results, out: &mut StudyResult) {
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
        "Betweenness centrality: time of an iteration",
        bc_scales(setup).iter().map(|s| format!("bc{s}")),
        results,
        |r| r.seconds * 1e9 / 4.0,
        Axis::new("time", "", Format::DurationNs),
    ));
}

/// Requests per second over the last quarter.
fn last_requests(r: &RunResult) -> f64 {
    super::setup::steady(r, |p| p.requests)
}

/// Share of memory reads that slow memory served in the last quarter, %.
fn last_slow(r: &RunResult) -> f64 {
    100.0 * super::setup::steady(r, |p| p.slow_share)
}

fn ycsb(results: &Results, out: &mut StudyResult) {
    let speed = |a: &RunResult, b: &RunResult| last_requests(a) / last_requests(b);
    // "By up to 2x": as a bound any small gain would count as agreement, so the best case stands as a number.
    let most = Value::from(2.0);
    for (key, name) in [("hotset", "HeMem"), ("random", "Linux")] {
        let ours = results.of_two("ycsb/static", &format!("ycsb/{key}"), speed);
        out.claims.push(claim(
            "D9",
            &format!("YCSB: JC-static over {name} (published: up to)"),
            most.clone(),
            ours,
            "x",
            "",
        ));
    }
    for (key, name, published) in [
        ("hotset", "HeMem", 45.0),
        ("static", "JC-static", 15.0),
        ("dynamic", "JC-dyn", 14.0),
    ] {
        let ours = results.get(&format!("ycsb/{key}")).map(last_slow);
        out.claims.push(claim(
            "D9",
            &format!("YCSB, {name}: memory reads that reach PM"),
            published,
            ours,
            "%",
            "",
        ));
    }
    let longest = |key: &str| {
        let r = results.get(&format!("ycsb/{key}"))?;
        r.latencies
            .iter()
            .map(|l| l.max_ns as f64 / 1000.0)
            .reduce(f64::max)
    };
    let p99 = |key: &str| {
        let r = results.get(&format!("ycsb/{key}"))?;
        r.latencies
            .iter()
            .map(|l| l.p99_ns as f64 / 1000.0)
            .reduce(f64::max)
    };
    out.claims.push(claim(
        "D9",
        "YCSB, JC-static: 99th percentile",
        Value::AtMost { at_most: 10.0 },
        p99("static"),
        "us",
        "",
    ));
    out.claims.push(claim(
        "D9",
        "YCSB, JC-static: longest request",
        10.0,
        longest("static"),
        "us",
        "",
    ));
    out.claims.push(claim(
        "D9",
        "YCSB, HeMem: longest request",
        4000.0,
        longest("hotset"),
        "us",
        "the paper's threads are not pinned and share a core with a daemon now and then; here they never do",
    ));
    out.charts.extend(bars(
        "ycsb",
        "YCSB C: throughput by system",
        ["ycsb".to_string()].into_iter(),
        results,
        last_requests,
        Axis::new("speed", "requests", Format::PerSecond).between(0.0, None),
    ));
}

/// Bars by system for some groups of runs.
fn bars(
    id: &str,
    title: &str,
    groups: impl Iterator<Item = String>,
    results: &Results,
    value: impl Fn(&RunResult) -> f64,
    y: Axis,
) -> Option<Chart> {
    let groups: Vec<String> = groups.collect();
    let bars: Vec<Bars> = SYSTEMS
        .iter()
        .map(|(key, name)| {
            let of = |g: &String| results.get(&format!("{g}/{key}")).map_or(f64::NAN, &value);
            Bars::new(*name, groups.iter().map(of).collect())
        })
        .collect();
    let any = bars.iter().any(|b| b.values.iter().any(|v| v.is_finite()));
    let x = Axis::new("program", "", Format::Number);
    any.then(|| {
        Chart::new(
            id,
            title,
            x,
            y,
            Data::Bars {
                groups,
                bars,
                stacked: false,
            },
        )
    })
}
