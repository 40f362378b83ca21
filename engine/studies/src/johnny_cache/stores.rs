//! Stores that answer requests, with cores left for the daemons: D9 key-value store (section 5.4, Figure 8, Table 3),
//! D10 transactions (section 5.5, Figure 10).

use super::claim;
use super::compare::bars;
use super::setup::{SYSTEMS, Setup, steady};
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Claim, Data, Series, StudyResult, Value};
use varve_run::RunResult;

/// Threads of TPC-C, of the 18 cores that the daemons leave; the text of the paper does not list its own.
const THREADS: [u32; 3] = [4, 8, 16];

fn threads(setup: &Setup) -> &'static [u32] {
    if setup.quick() { &[4, 16] } else { &THREADS }
}

/// Warehouses of a database that fits in DRAM with what it grows by, beside the 1100 of the full one.
const FITTING: u32 = 512;

pub fn plan(setup: &Setup, plan: &mut Plan) {
    let o = &setup.options;
    if o.wants("D9") {
        for (key, _) in SYSTEMS {
            let work = format!("ycsb:mix=C,requests=0,{}", setup.time(seconds(key)));
            plan.run(format!("ycsb/{key}"), setup.spec(key, &work, setup.scale));
        }
    }
    if o.wants("D10") {
        let mut add = |group: String, key: &str, more: &str| {
            let time = setup.time(seconds(key) / f64::from(setup.shrink));
            let work = format!("tpcc:{more}transactions=0,{time}");
            // Less than a warehouse is none.
            let spec = setup.spec_unshrunk(key, &work, setup.scale);
            plan.run(format!("{group}/{key}"), spec);
        };
        for &n in threads(setup) {
            for (key, _) in SYSTEMS {
                // The program's default is 16.
                let more = match n {
                    16 => String::new(),
                    _ => format!("threads={n},"),
                };
                add(format!("tpcc/{n}"), key, &more);
            }
        }
        if !setup.quick() {
            for key in ["static", "hotset"] {
                add("tpcc/fits".into(), key, &format!("warehouses={FITTING},"));
            }
        }
    }
}

/// Length of a run, s.
fn seconds(policy: &str) -> f64 {
    // Daemons need time to find hot pages (Figure 9: tens of seconds).
    if policy == "hotset" || policy == "dynamic" {
        30.0
    } else {
        8.0
    }
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) {
    if setup.options.wants("D9") {
        ycsb(results, out);
    }
    if setup.options.wants("D10") {
        tpcc(setup, results, out);
    }
}

/// Requests per second over the last quarter.
fn speed(r: &RunResult) -> f64 {
    steady(r, |p| p.requests)
}

/// Share of memory reads that slow memory served in the last quarter, %.
fn from_pm(r: &RunResult) -> f64 {
    100.0 * steady(r, |p| p.slow_share)
}

/// Speed of JC-static over that of another, in the same group of runs.
fn ahead(results: &Results, group: &str, of: &str) -> Option<f64> {
    results.of_two(
        &format!("{group}/static"),
        &format!("{group}/{of}"),
        |a, b| speed(a) / speed(b),
    )
}

fn ycsb(results: &Results, out: &mut StudyResult) {
    let mut push = |what: &str, published: Value, ours: Option<f64>, unit: &str, note: &str| {
        out.claims
            .push(claim("D9", what, published, ours, unit, note));
    };
    // "By up to 2x": as a bound any small gain would count as agreement, so the best case stands as a number.
    for (key, name) in [("hotset", "HeMem"), ("random", "Linux")] {
        let what = format!("YCSB: JC-static over {name} (published: up to)");
        push(&what, 2.0.into(), ahead(results, "ycsb", key), "x", "");
    }
    for (key, name, published) in [
        ("hotset", "HeMem", 45.0),
        ("static", "JC-static", 15.0),
        ("dynamic", "JC-dyn", 14.0),
    ] {
        let ours = results.get(&format!("ycsb/{key}")).map(from_pm);
        let what = format!("YCSB, {name}: memory reads that reach PM");
        push(&what, published.into(), ours, "%", "");
    }
    // Table 3, us.
    for (key, name, longest, note) in [
        ("static", "JC-static", 10.0, ""),
        ("dynamic", "JC-dyn", 4000.0, SHARED),
        ("hotset", "HeMem", 4000.0, SHARED),
        ("random", "Linux", 10.0, ""),
    ] {
        let most = |of: fn(&varve_run::ClassLatency) -> u64| {
            let latencies = &results.get(&format!("ycsb/{key}"))?.latencies;
            latencies
                .iter()
                .map(|l| of(l) as f64 / 1000.0)
                .reduce(f64::max)
        };
        let what = format!("YCSB, {name}: 99th percentile");
        let at_most = Value::AtMost { at_most: 10.0 };
        push(&what, at_most, most(|l| l.p99_ns), "us", "");
        let what = format!("YCSB, {name}: longest request");
        push(&what, longest.into(), most(|l| l.max_ns), "us", note);
    }
    out.charts.extend(bars(
        "ycsb",
        "Figure 8: YCSB C, throughput by system",
        ["ycsb".to_string()].into_iter(),
        results,
        speed,
        Axis::new("speed", "requests", Format::PerSecond).between(0.0, None),
    ));
}

const SHARED: &str = "the paper's threads are not pinned and share a core with a daemon now and then; here they never do";

fn tpcc(setup: &Setup, results: &Results, out: &mut StudyResult) {
    for &n in threads(setup).iter().rev() {
        let group = format!("tpcc/{n}");
        let of = match n {
            16 => String::new(),
            _ => format!(", {n} threads"),
        };
        out.claims.push(claim(
            "D10",
            &format!("TPC-C{of}: JC-static over HeMem"),
            1.0,
            ahead(results, &group, "hotset"),
            "x",
            "published: equal",
        ));
        let linux = ahead(results, &group, "random");
        let better = linux.map_or(Value::Missing, |x| Value::from(x > 1.0));
        let note = linux.map_or(String::new(), |x| format!("{x:.2}x"));
        let what = format!("TPC-C{of}: JC-static faster than Linux");
        out.claims
            .push(Claim::new("D10", &what, true, better, "").with_note(note));
    }
    for (key, name) in SYSTEMS {
        out.claims.push(claim(
            "D10",
            &format!("TPC-C, {name}: memory reads that reach PM"),
            Value::Missing,
            results.get(&format!("tpcc/16/{key}")).map(from_pm),
            "%",
            "",
        ));
    }
    out.claims.push(claim(
        "D10",
        &format!("TPC-C, {FITTING} warehouses: JC-static over HeMem"),
        Value::Missing,
        ahead(results, "tpcc/fits", "hotset"),
        "x",
        "the whole database fits in DRAM",
    ));
    out.charts.extend(by_threads(setup, results));
}

fn by_threads(setup: &Setup, results: &Results) -> Option<Chart> {
    let series: Vec<Series> = SYSTEMS
        .iter()
        .filter_map(|(key, name)| {
            let points = threads(setup).iter().filter_map(|n| {
                let r = results.get(&format!("tpcc/{n}/{key}"))?;
                Some((f64::from(*n), speed(r)))
            });
            let (x, y): (Vec<f64>, Vec<f64>) = points.unzip();
            (!x.is_empty()).then(|| Series::new(*name, x, y))
        })
        .collect();
    (!series.is_empty()).then(|| {
        Chart::new(
            "tpcc",
            "Figure 10: TPC-C, throughput by threads",
            Axis::new("threads", "", Format::Number),
            Axis::new("speed", "requests", Format::PerSecond).between(0.0, None),
            Data::Lines(series),
        )
    })
}
