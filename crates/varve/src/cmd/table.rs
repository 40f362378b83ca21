//! Results of runs as a table and charts.

use varve_machine::load::NodeKind;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Series, Value};
use varve_run::{RunResult, RunSpec, Work};

/// What a program's speed is counted in: the unit, and how to read it off a result.
pub fn speed(results: &[RunResult]) -> (&'static str, fn(&RunResult) -> f64) {
    if results.iter().all(|r| r.requests > 1000) {
        ("requests", RunResult::request_rate)
    } else if results.iter().all(|r| r.updates * 2 > r.accesses) {
        ("updates", RunResult::update_rate)
    } else {
        ("accesses", RunResult::access_rate)
    }
}

pub fn of(spec: &RunSpec, name: &str, results: &[RunResult]) -> RunTable {
    let scaled = match (&spec.work, spec.scale) {
        (_, 1) => String::new(),
        (Work::Workload(_), s) => format!(", run at 1/{s} and given at full size"),
        (_, s) => format!(" at 1/{s} of its size"),
    };
    let mut table = RunTable::new(format!("{name} on {}{scaled}", spec.machine.name), "policy");
    let (unit, rate) = speed(results);
    let cached = results.iter().any(|r| r.cache_hit_share.is_some());
    // Fast and slow memory as nodes of their own: then how much of the fast one a policy takes is its price.
    let tiers = !cached
        && spec
            .machine
            .nodes()
            .iter()
            .any(|n| n.kind != NodeKind::Dram);
    let latency = results.iter().all(|r| !r.latencies.is_empty());
    table
        .columns
        .push(Column::new("time", Format::DurationNs, Better::Lower));
    table
        .columns
        .push(Column::new("speed", Format::PerSecond, Better::Higher).with_unit(unit));
    table
        .columns
        .push(Column::new("slow reads", Format::Percent, Better::Lower));
    if cached {
        table
            .columns
            .push(Column::new("in conflict", Format::Percent, Better::Lower).with_unit("% pages"));
    }
    if tiers {
        table
            .columns
            .push(Column::new("DRAM", Format::Percent, Better::Lower).with_unit("% pages"));
    }
    table
        .columns
        .push(Column::new("waiting", Format::Percent, Better::Lower));
    table
        .columns
        .push(Column::new("moved", Format::Bytes, Better::Lower));
    if latency {
        table
            .columns
            .push(Column::new("p99", Format::DurationNs, Better::Lower));
        table
            .columns
            .push(Column::new("max", Format::DurationNs, Better::Lower));
    }
    for r in results {
        let mut row: Vec<Value> = vec![
            (r.seconds * 1e9).into(),
            rate(r).into(),
            (100.0 * r.slow_share).into(),
        ];
        if cached {
            let p = &r.placement;
            row.push((100.0 * p.pages_in_conflict as f64 / p.pages.max(1) as f64).into());
        }
        if tiers {
            let p = &r.placement;
            row.push((100.0 * p.fast_pages as f64 / p.pages.max(1) as f64).into());
        }
        row.push((100.0 * r.stalls.total()).into());
        row.push((r.moved_bytes as f64).into());
        if latency {
            row.push((r.latencies.iter().map(|l| l.p99_ns).max().unwrap_or(0) as f64).into());
            row.push((r.latencies.iter().map(|l| l.max_ns).max().unwrap_or(0) as f64).into());
        }
        table.push(&r.policy, row);
    }
    // What time is bought with: DRAM where it is a node of its own, bytes moved where it is a cache that all share.
    let price = if tiers { "DRAM" } else { "moved" };
    table.trade_off = table
        .columns
        .iter()
        .position(|c| c.name == price)
        .filter(|_| results.len() > 1)
        .map(|column| (0, column));
    table
}

pub fn charts(results: &[RunResult]) -> Vec<Chart> {
    let (unit, rate) = speed(results);
    let mut charts = Vec::new();
    let over_time: Vec<Series> = results
        .iter()
        .filter(|r| r.timeline.len() > 2)
        .map(|r| {
            let y = r.timeline.iter().map(|p| match unit {
                "requests" => p.requests,
                "updates" => p.updates,
                _ => p.accesses,
            });
            Series::new(
                &r.policy,
                r.timeline.iter().map(|p| p.at_s * 1e9).collect(),
                y.collect(),
            )
        })
        .collect();
    if !over_time.is_empty() {
        charts.push(Chart::new(
            "throughput",
            "Throughput over time",
            Axis::new("time", "", Format::DurationNs),
            Axis::new("speed", unit, Format::PerSecond).between(0.0, None),
            Data::Lines(over_time),
        ));
    }
    let groups: Vec<String> = results.iter().map(|r| r.policy.clone()).collect();
    charts.push(Chart::new(
        "speed",
        "Speed by policy",
        Axis::new("policy", "", Format::Number),
        Axis::new("speed", unit, Format::PerSecond).between(0.0, None),
        Data::Bars {
            groups: groups.clone(),
            bars: vec![Bars::new("speed", results.iter().map(rate).collect())],
            stacked: false,
        },
    ));
    let share = |name: &str, f: fn(&RunResult) -> f64| {
        Bars::new(name, results.iter().map(|r| 100.0 * f(r)).collect())
    };
    let mut lost = vec![
        share("loads", |r| r.stalls.load),
        share("stores", |r| r.stalls.store + r.stalls.fence),
        share("barriers", |r| r.stalls.barrier),
        share("system", |r| r.stalls.system),
    ];
    if results.iter().any(|r| r.stalls.fetch > 0.0) {
        lost.insert(2, share("instructions", |r| r.stalls.fetch));
    }
    charts.push(Chart::new(
        "stalls",
        "Where the threads' time goes",
        Axis::new("policy", "", Format::Number),
        Axis::new("share of time", "", Format::Percent).between(0.0, 100.0),
        Data::Bars {
            groups,
            bars: lost,
            stacked: true,
        },
    ));
    charts
}
