//! Systems beside each other: times, and bars of a chart.

use super::setup::SYSTEMS;
use crate::plan::Results;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data};
use varve_run::RunResult;

/// Cores of the node: OpenMP programs use all of them, and the daemons compete (section 5.3).
pub const CORES: u32 = 20;

/// Time under one policy over that under another.
pub fn time(results: &Results, group: &str, slow: &str, fast: &str) -> Option<f64> {
    results.of_two(
        &format!("{group}/{slow}"),
        &format!("{group}/{fast}"),
        |a, b| a.seconds / b.seconds,
    )
}

/// Bars by system for some groups of runs.
pub fn bars(
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
