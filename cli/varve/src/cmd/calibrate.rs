//! `varve machine calibrate`: the classic curves on the model of a machine, published ones beside them.

use super::columns::{self, Cell};
use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_machine::calibrate::{
    Curve, CurveErrors, Effort, Measurement, Point, Row, measurements, published, summaries, table,
};
use varve_report::fmt::Format;
use varve_report::{Better, Column, Look, RunTable, Value, table as terminal};
use varve_run::VERSION;

pub fn calibrate(name: &str, full: bool, json: bool) -> Done {
    let machine = varve_tier::machine(name).map_err(wrong)?;
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
        print(format!(
            "Curves of {} on the model, published ones beside them\n",
            machine.name
        ));
        print_all(curves.iter().map(|curve| of(curve, &rows)));
        print_all(errors(&summaries));
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

/// A curve's points, published ones beside them.
fn of(curve: &Curve, rows: &[Row]) -> RunTable {
    let title = format!("{} ({})", curve.id, curve.unit);
    let compared: Vec<&Row> = rows.iter().filter(|r| r.curve == curve.id).collect();
    if compared.is_empty() {
        let ours = vec![Cell::new(number("ours"), |p: &Point| p.value)];
        return columns::table((title, &curve.axis), &curve.points, |p| &p.at, ours);
    }
    let mut cells = vec![
        Cell::new(number("ours"), |r: &&Row| known(r.ours)),
        Cell::new(number("published"), |r: &&Row| r.published),
        Cell::new(percent("error"), |r: &&Row| known(r.error_percent)),
    ];
    if compared.iter().any(|r| r.is_input) {
        cells.push(Cell::new(number("input"), |r: &&Row| r.is_input));
    }
    columns::table((title, &curve.axis), &compared, |r| &r.at, cells)
}

/// The errors of each curve.
pub fn errors(summaries: &[CurveErrors]) -> Option<RunTable> {
    let points = Column::new("points", Format::Integer, Better::Neither);
    let missing = Column::new("not reached", Format::Integer, Better::Neither);
    let mut cells = vec![
        Cell::new(points, |s: &CurveErrors| s.points as f64),
        Cell::new(percent("median"), |s: &CurveErrors| s.median_percent),
        Cell::new(percent("worst"), |s: &CurveErrors| s.worst_percent),
    ];
    if summaries.iter().any(|s| s.missing > 0) {
        cells.push(Cell::new(missing, |s: &CurveErrors| s.missing as f64));
    }
    let title = "Errors, inputs left out".to_string();
    (!summaries.is_empty())
        .then(|| columns::table((title, "curve"), summaries, |s| &s.curve, cells))
}

/// Prints tables below each other.
pub fn print_all(tables: impl IntoIterator<Item = RunTable>) {
    for table in tables {
        print(terminal::runs(&table, Look::stdout()));
    }
}

pub fn number(name: &str) -> Column {
    Column::new(name, Format::Number, Better::Neither)
}

pub fn percent(name: &str) -> Column {
    Column::new(name, Format::Percent, Better::Neither)
}

/// A figure, if there is one.
pub fn known(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::from)
}
