//! Budgets of fast memory in words and as a chart: `--fast 10%,25%`, one after the other.

use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Series, fmt};
use varve_run::Compared;
use varve_run::request::{BASE, Budgets};

/// A note on the sizes of the shares, if there are any: `base` has the largest footprint, and `instances` share the machine.
pub fn note<R: Compared>(budgets: &Budgets, base: &R, instances: u32) -> Vec<String> {
    if budgets.percents.is_empty() {
        return Vec::new();
    }
    let most = base.most_bytes() as f64;
    let size = |percent: &f64| format!("{percent}% is {}", fmt::bytes(most * percent / 100.0));
    let sizes: Vec<String> = budgets.percents.iter().map(size).collect();
    let each = match instances {
        1 => "",
        _ => " of each instance",
    };
    let other = match budgets.asked {
        true => "",
        false => " Another budget: --fast 10%,50% or --fast 8GiB.",
    };
    vec![format!(
        "--fast {}{each}: a share of the {} that the program takes with everything in fast memory (plan `{BASE}`, which has no \
         limit).{other}",
        sizes.join(", "),
        fmt::bytes(most)
    )]
}

/// Slowdown by share of fast memory, a line for each plan; none of a single share. `named` returns the outcome of a run by its name.
pub fn chart<'r, R: Compared + 'r>(
    budgets: &Budgets,
    base: &R,
    named: impl Fn(&str) -> Option<&'r R>,
) -> Option<Chart> {
    if budgets.percents.len() < 2 {
        return None;
    }
    let mut percents = budgets.percents.clone();
    percents.sort_by(f64::total_cmp);
    let limited = || budgets.runs.iter().filter(|run| run.percent.is_some());
    let first = limited().filter(|run| run.percent == Some(budgets.percents[0]));
    let lines = first.map(|plan| {
        let of = |percent: &f64| {
            let mut runs = limited().filter(|run| run.plan == plan.plan);
            let run = runs.find(|run| run.percent == Some(*percent));
            let result = run.and_then(|run| named(&run.name));
            result.map_or(f64::NAN, |result| result.slowdown(base))
        };
        let slowdowns = percents.iter().map(of).collect();
        Series::new(&plan.spec, percents.clone(), slowdowns)
    });
    let chart = Chart::new(
        "slowdown",
        format!(
            "Slowdown of {} by the share of its memory that is DRAM",
            base.program
        ),
        Axis::new("DRAM, share of the program's memory", "", Format::Percent).between(0.0, None),
        Axis::new("slowdown", "x all in DRAM", Format::Number).between(1.0, None),
        Data::Lines(lines.collect()),
    );
    Some(chart)
}
