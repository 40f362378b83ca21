//! `varve machine calibrate`: the classic curves on the model of a machine, published ones beside them.

use super::machine::named;
use crate::ui::{self, Done, failed, print};
use serde_json::json;
use std::process::ExitCode;
use varve_machine::calibrate::{
    Curve, Effort, Row, Summary, measurements, published, summaries, table,
};
use varve_report::fmt;
use varve_run::VERSION;

/// Width of a point's name.
const AT: usize = 36;

pub fn calibrate(name: &str, full: bool, json: bool) -> Done {
    let machine = named(name)?;
    let effort = if full { Effort::Full } else { Effort::Quick };
    let all = measurements(&machine, effort);
    let bar = ui::bar(all.len() as u64, "curves");
    let mut curves = Vec::new();
    for measurement in &all {
        bar.set_message(measurement.id.clone());
        curves.push(measurement.run());
        bar.inc(1);
        if ui::stopped() {
            return Err(ui::interrupted());
        }
    }
    bar.finish_and_clear();
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
    if !summaries.is_empty() {
        lines.push(format!(
            "\n{:AT$}   {:>8} {:>10} {:>9}",
            "Errors, inputs left out", "points", "median", "worst"
        ));
    }
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
            "  {:AT$} {:>8} {median:>10} {worst:>9}{missing}",
            s.curve, s.points
        ));
    }
    lines.join("\n")
}

fn number(x: f64) -> String {
    fmt::significant(x, 3)
}
