//! `varve sweep --merge`: one table, page and Parquet of all results.

use super::{Opened, shown};
use crate::args::SweepArgs;
use crate::cmd::compared::origin;
use crate::sweep::spec::Sweep;
use crate::sweep::standing::Standing;
use crate::sweep::{merged, picture};
use crate::ui::{self, Done, failed, print};
use std::process::ExitCode;
use varve_report::{Look, RunReport, plot, table as terminal};

/// Everything in one: a table here, and a page, JSON and Parquet in the folder.
pub fn merge(a: &SweepArgs, opened: &Opened, mut standing: Standing) -> Done {
    let Opened {
        sweep,
        out,
        keep,
        keys,
        ..
    } = opened;
    // Unreadable results count as missing, so that no incomplete results are merged.
    let done = standing.read(sweep, keep, keys);
    let missing = standing.missing();
    if !missing.is_empty() && !a.shares.partial {
        return Err(failed(incomplete(sweep, &standing, &missing)));
    }
    let done: Vec<(usize, &RunReport)> = done.iter().map(|(n, report)| (*n, report)).collect();
    let rows = merged::rows(sweep, done.iter().copied());
    let groups = merged::groups(sweep, &rows);
    let mut table = merged::table(sweep, &groups);
    if !missing.is_empty() {
        table.notes.push(format!(
            "{} of {} points are missing.",
            missing.len(),
            sweep.points()
        ));
    }
    let mut charts = Vec::new();
    if let Some(asked) = &sweep.picture
        && let Some((chart, left)) = picture::chart(sweep, asked, &groups)
    {
        if left > 0 {
            table.notes.push(format!(
                "{left} rows are not in the picture: they have no `{}`, or nothing to divide it by.",
                asked.y
            ));
        }
        charts.push(chart);
    }
    let mut machines: Vec<&str> = done
        .iter()
        .map(|(_, r)| r.origin.machine.as_str())
        .collect();
    machines.dedup();
    machines.sort_unstable();
    machines.dedup();
    let seed = done.first().map_or(1, |(_, report)| report.origin.seed);
    let report = RunReport {
        origin: origin(&machines.join(", "), seed),
        table,
        details: Vec::new(),
        charts,
        pictures: Vec::new(),
        runs: merged::records(sweep, &rows),
    };
    if a.json {
        print(report.to_json());
    } else {
        let drawn = report
            .charts
            .iter()
            .filter_map(|chart| plot::lines(chart, Look::stdout()));
        drawn.for_each(print);
        print(terminal::runs(&report.table, Look::stdout()));
    }
    ui::save(&report, out)?;
    Ok(ExitCode::SUCCESS)
}
fn incomplete(sweep: &Sweep, standing: &Standing, missing: &[usize]) -> String {
    let named: Vec<String> = missing.iter().take(3).map(|&n| shown(sweep, n)).collect();
    let others = match standing.others() {
        0 => String::new(),
        n => format!("; {n} of them exist, from another build of Varve"),
    };
    format!(
        "{} of {} points are missing{others}: {}{}; run the sweep again without --merge, or merge the existing results with --partial",
        missing.len(),
        sweep.points(),
        named.join("; "),
        if missing.len() > named.len() {
            "; and more"
        } else {
            ""
        }
    )
}
