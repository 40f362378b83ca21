//! What comes out of runs side by side: a table on the terminal, JSON, or files.

use crate::args::run::output::Output;
use crate::ui::{self, Done, command_line, failed, print};
use serde::Serialize;
use std::process::ExitCode;
use varve_report::pictures::Pictures;
use varve_report::{Chart, Look, Origin, RunReport, RunTable, table as terminal};
use varve_run::VERSION;

/// Where results come from.
pub fn origin(machine: &str, seed: u64) -> Origin {
    Origin {
        machine: machine.into(),
        seed,
        version: VERSION.into(),
        command: command_line(),
    }
}

/// Prints and writes runs that have ended, with pictures if they were asked for.
pub fn show<R: Serialize>(
    a: &Output,
    origin: Origin,
    table: RunTable,
    (details, charts): (Vec<RunTable>, Vec<Chart>),
    runs: &[R],
    drawn: Option<Pictures>,
) -> Done {
    let runs = runs.iter().map(serde_json::to_value);
    let mut report = RunReport {
        origin,
        table,
        details,
        charts,
        pictures: Vec::new(),
        runs: runs.collect::<Result<_, _>>().map_err(failed)?,
    };
    if a.json.json {
        print(report.to_json());
    } else {
        // What is looked at first stands last, above the prompt.
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
    Ok(ExitCode::SUCCESS)
}
