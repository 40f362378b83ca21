//! `varve machine calibrate`: the classic curves on the model of a machine, published ones beside them.

use super::named;
use crate::ui::{self, Done, Failure, failed, print};
use serde_json::json;
use std::process::ExitCode;
use varve_machine::calibrate::{
    Curve, Effort, Measurement, Row, Summary, measurements, published, summaries, table,
};
use varve_report::fmt;
use varve_run::VERSION;

/// Width of a point's name.
const AT: usize = 36;

pub fn calibrate(name: &str, full: bool, json: bool) -> Done {
    let machine = named::machine(name)?;
    let effort = if full { Effort::Full } else { Effort::Quick };
    let curves = run(&measurements(&machine, effort))?;
    let rows = table(&curves, &published(&machine.name));
    let summaries = summaries(&rows);
    if json {
        let all = json!({
            "machine": machine.name,
            "version": VERSION,
            "curves": curves,
            "published": rows,
            "errors": summaries,
        });
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        print(text(&machine.name, &curves, &rows, &summaries));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs measurements on the model, with progress.
pub fn run(all: &[Measurement]) -> Result<Vec<Curve>, Failure> {
    let bar = ui::bar(all.len() as u64, "curves");
    let mut curves = Vec::new();
    for measurement in all {
        bar.set_message(measurement.id.clone());
        curves.push(measurement.run());
        bar.inc(1);
        if ui::stopped() {
            return Err(ui::interrupted());
        }
    }
    bar.finish_and_clear();
    Ok(curves)
}

fn text(machine: &str, curves: &[Curve], rows: &[Row], summaries: &[Summary]) -> String {
    let mut lines = vec![format!(
        "Curves of {machine} on the model, published ones beside them"
    )];
    for curve in curves {
        lines.push(format!(
            "\n{} ({}, by {})",
            curve.id, curve.unit, curve.axis
        ));
        let compared: Vec<&Row> = rows.iter().filter(|r| r.curve == curve.id).collect();
        if compared.is_empty() {
            lines.extend(
                curve
                    .points
                    .iter()
                    .map(|p| format!("  {:AT$} {:>10}", p.at, number(p.value))),
            );
            continue;
        }
        lines.push(format!(
            "  {:AT$} {:>10} {:>10} {:>9}",
            "", "ours", "published", "error"
        ));
        for r in compared {
            let ours = r.ours.map_or("-".into(), number);
            let error = r.error_percent.map_or("-".into(), |e| format!("{e:+.0} %"));
            let input = if r.is_input { "  input" } else { "" };
            lines.push(format!(
                "  {:AT$} {ours:>10} {:>10} {error:>9}{input}",
                r.at,
                number(r.published)
            ));
        }
    }
    lines.extend(errors(summaries, AT));
    lines.join("\n")
}

/// The errors of each curve as lines, with names `at` wide.
pub fn errors(summaries: &[Summary], at: usize) -> Vec<String> {
    if summaries.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "\n{:at$}   {:>8} {:>10} {:>9}",
        "Errors, inputs left out", "points", "median", "worst"
    )];
    for s in summaries {
        let (median, worst) = (
            format!("{:.0} %", s.median_percent),
            format!("{:.0} %", s.worst_percent),
        );
        let missing = if s.missing > 0 {
            format!("  {} not reached", s.missing)
        } else {
            String::new()
        };
        lines.push(format!(
            "  {:at$} {:>8} {median:>10} {worst:>9}{missing}",
            s.curve, s.points
        ));
    }
    lines
}

pub fn number(x: f64) -> String {
    fmt::significant(x, 3)
}
