//! `varve sweep submit`.

use super::Opened;
use crate::args::SubmitArgs;
use crate::sweep::emit::{array, word};
use crate::sweep::progress::{Given, Stage, stages};
use crate::sweep::slurm::{self, Silent};
use crate::sweep::submission;
use crate::ui::{self, Done, Failure, failed, print};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varve_report::write_atomically;

pub fn submit(a: &SubmitArgs) -> Done {
    let opened = Opened::open(&a.file, a.out.as_deref())?;
    ui::can_hold_results(&opened.out, "--out")?;
    let Opened {
        sweep,
        out,
        keep,
        keys,
    } = &opened;
    let _alone = submission::alone(out).map_err(failed)?;
    let before = submission::all(out).map_err(failed)?;
    let jobs: Vec<String> = before.values().filter_map(|s| s.job.clone()).collect();
    let tasks = slurm::tasks(&jobs).map_err(no_slurm)?;
    let standing = opened.standing();
    let given = Given::of(&before);
    let all = stages((sweep, &standing), (keep, keys), (&given, &tasks), out);
    let busy = all
        .iter()
        .filter(|s| matches!(s, Stage::Running | Stage::Waiting))
        .count();
    let is_left = |stage: &Stage| matches!(stage, Stage::Failed(_) | Stage::Missing);
    let left = all
        .iter()
        .zip(&standing.points)
        .filter(|(stage, _)| is_left(stage));
    let left: Vec<String> = left.map(|(_, point)| point.name.clone()).collect();
    if left.is_empty() {
        return nothing(a, all.len(), busy);
    }
    let (points, shares) = (left.len(), left.len().min(a.array as usize));
    let number = before.keys().next_back().map_or(1, |last| last + 1);
    let mut submitted = submission::new(keep, keys, left, shares);
    submitted.save(out, number).map_err(failed)?;
    let job = script(&opened, &a.file, number, shares)
        .and_then(|script| slurm::submit(&script, &a.options).map_err(no_slurm));
    let job = job.inspect_err(|_| {
        // Of what was not submitted nothing is left behind.
        for end in [".json", ".sh"] {
            let _ = std::fs::remove_file(submission::file(out, number, end));
        }
    })?;
    submitted.job = Some(job.clone());
    submitted.save(out, number).map_err(failed)?;
    if a.json {
        let script = submission::file(out, number, ".sh");
        let said =
            json!({"job": job, "points": points, "tasks": shares, "busy": busy, "script": script});
        print(serde_json::to_string_pretty(&said).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let s = |n: usize| if n == 1 { "" } else { "s" };
    print(format!(
        "job {job}: {points} point{} in {shares} task{}",
        s(points),
        s(shares)
    ));
    Ok(ExitCode::SUCCESS)
}

fn nothing(a: &SubmitArgs, points: usize, busy: usize) -> Done {
    if a.json {
        let said = json!({"job": null, "points": 0, "tasks": 0, "busy": busy, "script": null});
        print(serde_json::to_string_pretty(&said).map_err(failed)?);
    } else if busy > 0 {
        print(format!(
            "nothing to submit: {busy} of {points} points wait or run, and the others are done"
        ));
    } else {
        print(format!("nothing to submit: all {points} points are done"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the script of a submission. Its paths are whole: a task may begin in another folder.
fn script(opened: &Opened, file: &Path, number: usize, tasks: usize) -> Result<PathBuf, Failure> {
    let whole = |path: &Path| std::path::absolute(path).map_err(failed);
    let out = whole(&opened.out)?;
    // The build that submits is the one that runs.
    let varve = std::env::current_exe().map_err(failed)?;
    let command = format!(
        "{} sweep {} --out {} --submission {}",
        word(&varve),
        word(&whole(file)?),
        word(&out),
        word(&submission::file(&out, number, ".json")),
    );
    // `%` begins what Slurm replaces.
    let logs = submission::file(&out, number, "-")
        .to_string_lossy()
        .replace('%', "%%");
    let log = ui::quoted(&format!("{logs}%a.log"));
    let text = array(&opened.sweep.stem, tasks, &log, "", &command);
    let path = submission::file(&opened.out, number, ".sh");
    write_atomically(&path, text.as_bytes()).map_err(failed)?;
    Ok(path)
}

/// Slurm does not answer.
pub fn no_slurm(silent: Silent) -> Failure {
    match silent {
        Silent::Absent(program) => failed(format!(
            "no scheduler was found: there is no `{program}` here; run this where Slurm's commands are, or print a script with --emit"
        )),
        Silent::Said(line) => failed(line),
    }
}
