//! The output of compared runs: a table on the terminal, JSON, or files.

use super::columns::{self, Cell};
use super::pictures;
use super::runs::Outcomes;
use crate::args::run::output::Output;
use crate::ui::{self, Done, command_line, failed, print};
use serde::Serialize;
use varve_report::pictures::Flame;
use varve_report::{Chart, Look, Origin, RunReport, RunTable, table as terminal};
use varve_run::{Compared, VERSION};

/// Where results come from.
pub fn origin(machine: &str, seed: u64) -> Origin {
    Origin {
        machine: machine.into(),
        seed,
        version: VERSION.into(),
        command: command_line(),
    }
}

/// The output of one kind of run, beside the common parts.
pub struct Sheet<'a, R> {
    /// The program and where it runs.
    pub title: String,
    /// The subject of a row: a policy or a plan.
    pub rows_are: &'static str,
    /// The columns.
    pub cells: Vec<Cell<'a, R>>,
    /// The two columns whose best trade-offs are marked.
    pub trade_off: Option<(usize, usize)>,
    /// Notes on these runs.
    pub notes: Vec<String>,
    /// Advice.
    pub advice: Vec<String>,
    /// Other tables.
    pub details: Vec<RunTable>,
    /// Charts for a page.
    pub charts: Vec<Chart>,
    /// Where threads wait, by memory and by code.
    pub flames: (Option<Flame>, Option<Flame>),
}

/// A note on a policy's scan rate.
fn looks(name: &str, scale: u64) -> String {
    let (policy, _) = varve_spec::split(name);
    format!(
        "`{policy}` looks {scale} times as often as its settings say, as if the program, its pages and its run were {scale} times as large: \
         its budget is as many times less than the machine's DRAM. `{policy}:scale=1` takes the run as it is."
    )
}

/// Prints and writes runs that have ended, and ends as they ended.
pub fn show<R: Compared + Serialize>(
    a: &Output,
    origin: Origin,
    came: &Outcomes<R>,
    sheet: Sheet<R>,
) -> Done {
    let results = came.shown();
    let mut table = columns::table(
        (sheet.title, sheet.rows_are),
        &results,
        |r| r.name(),
        sheet.cells,
    );
    table.trade_off = sheet.trade_off.filter(|_| results.len() > 1);
    let mut warnings: Vec<String> = Vec::new();
    for result in &results {
        let scale = result.policy_scale.map(|scale| looks(result.name(), scale));
        let all = [
            result.warning().map(String::from),
            result.undecided.clone(),
            scale,
        ];
        for warning in all.into_iter().flatten() {
            let line = format!("Note: {warning}");
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
    }
    let all = [warnings, sheet.notes, came.not_run.clone(), sheet.advice];
    table.notes.extend(all.into_iter().flatten());
    let drawn = pictures::of(&table.title, &pictures::runs(&results), sheet.flames);
    let runs = results.iter().map(serde_json::to_value);
    let mut report = RunReport {
        origin,
        table,
        details: sheet.details,
        charts: sheet.charts,
        pictures: Vec::new(),
        runs: runs.collect::<Result<_, _>>().map_err(failed)?,
    };
    if a.json.json {
        // A script that reads the document, and a sweep, find the reason where all errors are.
        for line in &came.not_run {
            crate::ui::message!("varve: {line}");
        }
        print(report.to_json());
    } else {
        // The main table comes last, right above the prompt.
        for table in report.details.iter().chain([&report.table]) {
            print(terminal::runs(table, Look::stdout()));
        }
    }
    if let Some(folder) = &a.out {
        if let Some(drawn) = drawn {
            ui::folder(folder)?;
            report.pictures = drawn.save(folder).map_err(failed)?;
        }
        ui::save(&report, folder)?;
    }
    Ok(came.code())
}
