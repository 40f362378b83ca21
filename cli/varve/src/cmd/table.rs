//! Results of runs as a table and charts.

use super::columns::{self, Cell};
use super::compared::Sheet;
use varve_machine::load::NodeKind;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, Series};
use varve_run::{ClassLatency, RunResult, RunSpec, Work, speed};

/// Time, speed, and what it is bought with.
pub fn sheet<'a>(spec: &RunSpec, name: &str, results: &[&'a RunResult]) -> Sheet<'a, RunResult> {
    let scaled = match (&spec.work, spec.scale) {
        (_, 1) => String::new(),
        (Work::Workload(_), s) => format!(", run at 1/{s} and given at full size"),
        (_, s) => format!(" at 1/{s} of its size"),
    };
    let title = format!("{name} on {}{scaled}", spec.machine.name);
    let (unit, rate) = speed(results);
    let cached = results.iter().any(|r| r.cache_hit_share.is_some());
    // Fast and slow memory as nodes of their own: then how much of the fast one a policy takes is its price.
    let mut nodes = spec.machine.nodes().into_iter();
    let tiers = !cached && nodes.any(|n| n.kind != NodeKind::Dram);
    let latency = results.iter().all(|r| !r.latencies.is_empty());
    let fast = Column::new("speed", Format::PerSecond, Better::Higher).with_unit(unit);
    let mut cells = vec![
        columns::time(),
        Cell::new(fast, rate),
        Cell::share("slow reads", |r: &RunResult| r.slow_share),
    ];
    if cached {
        let share =
            |r: &RunResult| r.placement.pages_in_conflict as f64 / r.placement.pages.max(1) as f64;
        cells.push(Cell::share("in conflict", share).with_unit("% pages"));
    }
    if tiers {
        cells.push(columns::dram().with_unit("% pages"));
    }
    cells.push(Cell::share("waiting", |r: &RunResult| r.stalls.total()));
    cells.push(columns::moved());
    if latency {
        let column = |name| Column::new(name, Format::DurationNs, Better::Lower);
        let most = |r: &RunResult, ns: fn(&ClassLatency) -> u64| {
            r.latencies.iter().map(ns).max().unwrap_or(0) as f64
        };
        cells.push(Cell::new(column("p99"), move |r: &RunResult| {
            most(r, |l| l.p99_ns)
        }));
        cells.push(Cell::new(column("max"), move |r: &RunResult| {
            most(r, |l| l.max_ns)
        }));
    }
    // The price of time: DRAM if it is a node of its own, migrated bytes if it is a shared cache.
    let price = if tiers { "DRAM" } else { "moved" };
    let price = cells.iter().position(|cell| cell.is(price));
    Sheet {
        rows_are: "policy",
        cells,
        trade_off: price.map(|column| (0, column)),
        notes: Vec::new(),
        advice: Vec::new(),
        details: Vec::new(),
        charts: charts(results),
        flames: (None, None),
        title,
    }
}

fn charts(results: &[&RunResult]) -> Vec<Chart> {
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
    charts.push(Chart::new(
        "speed",
        "Speed by policy",
        Axis::new("policy", "", Format::Number),
        Axis::new("speed", unit, Format::PerSecond).between(0.0, None),
        Data::Bars {
            groups: results.iter().map(|r| r.policy.clone()).collect(),
            bars: vec![Bars::new(
                "speed",
                results.iter().map(|r| rate(r)).collect(),
            )],
            stacked: false,
        },
    ));
    charts.push(columns::stall_chart("policy", results));
    charts
}
