//! GUPS on twice the cache (sections 5.2.1 and 5.2.2, Figures 2 and 3): D5 clustered hot values, D6 scattered ones.

use super::claim;
use super::setup::{Setup, steady, time_to_steady};
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Claim, Data, Series, StudyResult, Value};
use varve_run::{Error, RunResult};
use varve_workloads::gups::hot_ranges;

/// Configurations (M+N): threads, and the cores that they share with the daemons (0: those have their own).
const CONFIGS: [(&str, u32, u32); 3] = [("16+2", 16, 0), ("8+2", 8, 0), ("8+0", 8, 8)];
/// The coarse version has the first configuration alone.
fn configs(setup: &Setup) -> impl Iterator<Item = (&'static str, u32, u32)> {
    let all = if setup.quick() { 1 } else { CONFIGS.len() };
    CONFIGS.into_iter().take(all)
}

/// Linux's placement depends on what ran before: some draws.
fn linux_seeds(setup: &Setup) -> u64 {
    if setup.quick() { 1 } else { 4 }
}
/// Lengths of runs at full size, s: until each hot line was fetched some times where placement is all, and longer where
/// pages migrate (Figure 2 has 120).
pub const STATIC_S: f64 = 40.0;
pub const DYNAMIC_S: f64 = 40.0;
pub const HEMEM_S: f64 = 60.0;

/// Hot values on pages of their own (section 5.2.1).
pub const CLUSTERED: &str = "place=shares,bytes=96GiB,hot=10%";

/// GUPS zeroes its array, every line of it, so that the run proper begins with a cache full of modified lines.
///
/// One update in flight per thread: HeMem's own program (`microbenchmarks/gups.c`, lines 186 to 213 at commit 5e7c68f of
/// August 2021, "scripts for artifact eval") reads the time stamp counter by RDTSCP before and after each update.
pub fn line(setup: &Setup, what: &str, threads: u32, seconds: f64) -> String {
    format!(
        "gups:{what},serial=yes,threads={threads},touch=64,updates=0,{}",
        setup.time(seconds)
    )
}

/// The policy that knows the hot ranges of a GUPS line.
pub fn oracle(setup: &Setup, work: &str) -> Result<String, Error> {
    let divisor = setup.scale * setup.shrink;
    let line = format!("{work},scale={divisor},seed={}", setup.options.seed);
    let ranges: Vec<String> = hot_ranges(&line)?
        .iter()
        .map(|(base, bytes)| format!("{base:#x}+{bytes}"))
        .collect();
    Ok(format!("oracle:hot={}", ranges.join("/")))
}

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    let o = &setup.options;
    if o.wants("D5") {
        for (name, threads, cores) in configs(setup) {
            let mut add = |key: &str, policy: &str, seconds: f64| {
                let mut spec = setup.spec(
                    policy,
                    &line(setup, CLUSTERED, threads, seconds),
                    setup.scale,
                );
                spec.on.cores = cores;
                plan.run(format!("{name}/{key}"), spec);
            };
            let work = line(setup, CLUSTERED, threads, STATIC_S);
            add("dram", &oracle(setup, &work)?, STATIC_S);
            add("static", "static", STATIC_S);
            add("dynamic", "dynamic", DYNAMIC_S);
            add("hotset", "hotset", HEMEM_S);
            if threads == 16 {
                for seed in 1..=linux_seeds(setup) {
                    add(
                        &format!("linux{seed}"),
                        &format!("random:seed={seed}"),
                        STATIC_S,
                    );
                }
            }
        }
    }
    if o.wants("D6") {
        for (key, seconds) in [
            ("static", STATIC_S),
            ("dynamic", DYNAMIC_S),
            ("hotset", DYNAMIC_S),
        ] {
            let work = line(
                setup,
                "place=scattered,group=8,bytes=96GiB,hot=10%",
                16,
                seconds,
            );
            plan.run(
                format!("scattered/{key}"),
                setup.spec(key, &work, setup.scale),
            );
        }
    }
    Ok(())
}

/// Updates per second in the steady state.
pub fn rate(r: &RunResult) -> f64 {
    steady(r, |p| p.updates)
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) {
    let o = &setup.options;
    if o.wants("D5") {
        clustered(setup, results, out);
    }
    if o.wants("D6") {
        let faster = results.of_two("scattered/static", "scattered/hotset", |a, b| {
            rate(a) / rate(b)
        });
        out.claims.push(claim(
            "D6",
            "scattered hot values: JC-static over HeMem",
            4.5,
            faster,
            "x",
            "",
        ));
        let per_update = |r: &RunResult| r.slow_reads as f64 / r.updates.max(1) as f64;
        let fewer = results.of_two("scattered/static", "scattered/hotset", |a, b| {
            per_update(b) / per_update(a)
        });
        out.claims.push(claim(
            "D6",
            "... PM reads per update, HeMem over JC",
            7.0,
            fewer,
            "x",
            "",
        ));
        out.charts.extend(over_time(
            results,
            "scattered",
            "Figure 3: GUPS, hot values scattered",
            &["static", "dynamic", "hotset"],
            None,
        ));
    }
}

fn clustered(setup: &Setup, results: &Results, out: &mut StudyResult) {
    let share = |config: &str, key: &str| {
        results.of_two(
            &format!("{config}/{key}"),
            &format!("{config}/dram"),
            |a, b| 100.0 * rate(a) / rate(b),
        )
    };
    let linux: Vec<f64> = (1..=linux_seeds(setup))
        .filter_map(|s| share("16+2", &format!("linux{s}")))
        .collect();
    let mean = (!linux.is_empty()).then(|| linux.iter().sum::<f64>() / linux.len() as f64);
    let (low, high) = linux
        .iter()
        .fold((f64::MAX, 0.0f64), |a, &x| (a.0.min(x), a.1.max(x)));
    let unit = "% of DRAM";
    let mut push = |c: Claim| out.claims.push(c);
    push(claim(
        "D5",
        "16+2: JC-static",
        85.0,
        share("16+2", "static"),
        unit,
        "",
    ));
    push(claim(
        "D5",
        "16+2: JC-dyn",
        100.0,
        share("16+2", "dynamic"),
        unit,
        "",
    ));
    push(claim(
        "D5",
        "16+2: HeMem",
        100.0,
        share("16+2", "hotset"),
        unit,
        "",
    ));
    let spread = format!(
        "{} placements: {low:.0} to {high:.0}; published 20 to 80",
        linux.len()
    );
    push(claim(
        "D5",
        "16+2: Linux, mean over placements",
        60.0,
        mean,
        unit,
        &spread,
    ));
    push(claim(
        "D5",
        "8+2: JC-static",
        85.0,
        share("8+2", "static"),
        unit,
        "as with 16 threads",
    ));
    push(claim(
        "D5",
        "8+2: JC-dyn",
        Value::range(85.0, 90.0),
        share("8+2", "dynamic"),
        unit,
        "",
    ));
    push(claim(
        "D5",
        "8+2: HeMem",
        40.0,
        share("8+2", "hotset"),
        unit,
        "",
    ));
    let ahead = results.of_two("8+0/static", "8+0/dynamic", |a, b| {
        100.0 * (rate(a) / rate(b) - 1.0)
    });
    push(claim(
        "D5",
        "8+0: JC-static ahead of JC-dyn",
        10.0,
        ahead,
        "%",
        "daemons on the program's cores",
    ));
    let settle = |key: &str| results.get(key).map(|r| time_to_steady(r, |p| p.updates));
    push(claim(
        "D5",
        "16+2: JC-dyn's time to steady state",
        2.0,
        settle("16+2/dynamic"),
        "s",
        "",
    ));
    push(claim(
        "D5",
        "16+2: HeMem's time to steady state",
        38.0,
        settle("16+2/hotset"),
        "s",
        "",
    ));
    let moved = |key: &str| results.get(key).map(|r| r.moved_bytes as f64 / 1e9);
    push(claim(
        "D5",
        "16+2: moved by JC-dyn",
        0.48,
        moved("16+2/dynamic"),
        "GB",
        "",
    ));
    push(claim(
        "D5",
        "16+2: moved by HeMem",
        9.6,
        moved("16+2/hotset"),
        "GB",
        "",
    ));
    let used = results.get("16+2/linux1").map(|r| {
        let p = &r.placement;
        48.0 * p.bins_used as f64 / p.bins.max(1) as f64
    });
    push(claim(
        "D5",
        "Linux: cache in use, of 48 GB",
        32.0,
        used,
        "GB",
        "no placement that treats bins alike leaves a third unused; see docs/policies.md",
    ));
    for (config, _, _) in CONFIGS {
        let keys: &[&str] = match config {
            "16+2" => &["static", "dynamic", "hotset", "linux1"],
            _ => &["static", "dynamic", "hotset"],
        };
        let full = results.get(&format!("{config}/dram")).map(rate);
        out.charts.extend(over_time(
            results,
            config,
            &format!("Figure 2: GUPS {config}, hot values clustered"),
            keys,
            full,
        ));
    }
}

/// Throughput over time, in % of `full` or in updates per second.
pub fn over_time(
    results: &Results,
    group: &str,
    title: &str,
    keys: &[&str],
    full: Option<f64>,
) -> Option<Chart> {
    let name = |key: &str| match key {
        "static" => "JC-static",
        "dynamic" => "JC-dyn",
        "hotset" => "HeMem",
        _ => "Linux",
    };
    let series: Vec<Series> = keys
        .iter()
        .filter_map(|key| {
            let r = results.get(&format!("{group}/{key}"))?;
            let points: Vec<_> = r.timeline.iter().filter(|p| p.at_s > r.begin_s).collect();
            let x = points.iter().map(|p| (p.at_s - r.begin_s) * 1e9).collect();
            let y = points
                .iter()
                .map(|p| full.map_or(p.updates, |f| 100.0 * p.updates / f))
                .collect();
            Some(Series::new(name(key), x, y))
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let y = match full {
        Some(_) => Axis::new(
            "of the speed with all hot data in DRAM",
            "",
            Format::Percent,
        )
        .between(0.0, None),
        None => Axis::new("speed", "updates", Format::PerSecond).between(0.0, None),
    };
    let id: String = format!("gups-{group}").replace(['+', '/'], "-");
    Some(Chart::new(
        id,
        title,
        Axis::new("time", "", Format::DurationNs),
        y,
        Data::Lines(series),
    ))
}
