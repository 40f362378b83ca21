//! `varve sweep`.

use super::compared::origin;
use crate::args::SweepArgs;
use crate::sweep::spec::{self, Sweep};
use crate::sweep::store::{Standing, State, Store};
use crate::sweep::{emit, merged, picture, point, work};
use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use varve_report::{Look, RunReport, plot, table as terminal};

/// Failed points that are named.
const NAMED: usize = 10;

pub fn sweep(a: &SweepArgs) -> Done {
    let sweep = spec::load(&a.file).map_err(wrong)?;
    point::check(&sweep).map_err(wrong)?;
    let out = a.out.clone().unwrap_or_else(|| PathBuf::from(&sweep.stem));
    if let (Some(target), Some(shards)) = (a.emit, a.shards) {
        print(emit::script(target, &a.file, &out, shards as usize).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let shard = a.shard.as_deref().map(share).transpose()?;
    ui::can_hold_results(&out, "--out")?;
    let store = Store::new(&out);
    let standing = Standing::of(&sweep, &store);
    if a.list {
        return list(a, &sweep, &standing);
    }
    let mut missing = standing.missing();
    if a.merge {
        return match missing.is_empty() || a.partial {
            true => show(a, &sweep, &standing.points, &out, &missing),
            false => Err(failed(incomplete(&sweep, &standing, &missing))),
        };
    }
    if let Some((own, of)) = shard {
        missing.retain(|number| number % of == own);
    }
    if standing.others() > 0 {
        let others = standing.others();
        eprintln!(
            "varve: note: {others} results are of another build of Varve: their points run again"
        );
    }
    let outcome = work::run(
        &sweep,
        &store,
        &standing.names,
        &missing,
        ui::workers(a.jobs),
    );
    if let Some(why) = outcome.lost {
        return Err(failed(format!("a result cannot be kept: {why}")));
    }
    if outcome.stopped {
        let left = Standing::of(&sweep, &store).missing().len();
        return Err(Failure::Line {
            code: 130,
            line: format!(
                "interrupted; {left} of {} points are left, and the same command goes on",
                sweep.points()
            ),
        });
    }
    if !outcome.failed.is_empty() {
        return Err(failed(failures(&sweep, &outcome.failed, missing.len())));
    }
    if shard.is_some() {
        eprintln!("{} points of this share are done", missing.len());
        return Ok(ExitCode::SUCCESS);
    }
    let standing = Standing::of(&sweep, &store);
    show(a, &sweep, &standing.points, &out, &standing.missing())
}

/// A share such as 3/16.
fn share(text: &str) -> Result<(usize, usize), Failure> {
    let of_array = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse::<usize>().ok())
    };
    let share = match text {
        "auto" => {
            let (task, first) = (
                of_array("SLURM_ARRAY_TASK_ID"),
                of_array("SLURM_ARRAY_TASK_MIN"),
            );
            let own = task.and_then(|task| task.checked_sub(first.unwrap_or(0)));
            own.zip(of_array("SLURM_ARRAY_TASK_COUNT"))
        }
        text => text
            .split_once('/')
            .and_then(|(own, of)| own.parse().ok().zip(of.parse().ok())),
    };
    match share {
        Some((own, of)) if own < of => Ok((own, of)),
        _ if text == "auto" => Err(wrong(
            "--shard auto: this is no task of a job array of Slurm (SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT); write a share such as 3/16",
        )),
        _ => Err(wrong(format!(
            "--shard {text}: write a share such as 3/16, from 0/16 to 15/16"
        ))),
    }
}

/// The values of a point that others have not, and its command.
fn shown(sweep: &Sweep, number: usize) -> String {
    let at = sweep.at(number);
    let words = sweep.varying().map(|axis| {
        let name = &sweep.axes[axis].name;
        format!("{name}={}", sweep.shown(axis, at[axis]))
    });
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "the only point".into(),
        false => words.join(" "),
    }
}

fn list(a: &SweepArgs, sweep: &Sweep, standing: &Standing) -> Done {
    let word = |state: &State| match state {
        State::Missing => "left",
        State::Other => "other build",
        State::Done(_) => "done",
    };
    let missing = standing.missing().len();
    if a.json {
        let points = standing.points.iter().enumerate().map(|(number, state)| {
            let command: Vec<String> = point::words(sweep, number).iter().map(|w| ui::quoted(w)).collect();
            json!({"number": number, "state": word(state), "result": standing.names[number], "command": format!("varve {}", command.join(" "))})
        });
        let all = json!({"points": points.collect::<Vec<_>>(), "left": missing});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (number, state) in standing.points.iter().enumerate() {
        text += &format!("{number:6}  {:11}  {}\n", word(state), shown(sweep, number));
    }
    print(format!("{text}{} points, {missing} left", sweep.points()));
    Ok(ExitCode::SUCCESS)
}

fn incomplete(sweep: &Sweep, standing: &Standing, missing: &[usize]) -> String {
    let named: Vec<String> = missing.iter().take(3).map(|&n| shown(sweep, n)).collect();
    let others = match standing.others() {
        0 => String::new(),
        n => format!("; {n} of them are there from another build of Varve"),
    };
    format!(
        "{} of {} points are missing{others}: {}{}; run the sweep again without --merge, or merge what is there with --partial",
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

fn failures(sweep: &Sweep, failed: &[(usize, String)], of: usize) -> String {
    let mut lines = vec![format!(
        "{} of {of} points failed; the others are kept, and the same command tries these again",
        failed.len()
    )];
    for (number, why) in failed.iter().take(NAMED) {
        lines.push(format!("{}: {why}", shown(sweep, *number)));
    }
    if failed.len() > NAMED {
        lines.push(format!("and {} more", failed.len() - NAMED));
    }
    lines.join("\nvarve: ")
}

/// Everything in one: a table here, and a page, JSON and Parquet in the folder.
fn show(
    a: &SweepArgs,
    sweep: &Sweep,
    points: &[State],
    out: &std::path::Path,
    missing: &[usize],
) -> Done {
    let done = points
        .iter()
        .enumerate()
        .filter_map(|(number, state)| match state {
            State::Done(report) => Some((number, report.as_ref())),
            _ => None,
        });
    let done: Vec<(usize, &RunReport)> = done.collect();
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
