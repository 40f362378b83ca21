//! `varve sweep submit` and `varve study submit`: one job array with what is missing or failed, and that no other job has.

use super::{ClusterWork, no_slurm, split};
use crate::args::SubmitHow;
use crate::sweep::emit::{array, word};
use crate::sweep::progress::{Given, Stage, stages};
use crate::sweep::slurm;
use crate::sweep::submission;
use crate::ui::{self, Done, Failure, failed, print};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varve_report::write_atomically;

pub fn submit(work: &dyn ClusterWork, a: &SubmitHow) -> Done {
    let out = work.out();
    let _alone = submission::alone(out).map_err(failed)?;
    let before = submission::all(out).map_err(failed)?;
    let jobs: Vec<String> = before.values().filter_map(|s| s.job.clone()).collect();
    let tasks = slurm::tasks(&jobs).map_err(no_slurm)?;
    // After the tasks: a point that ends in between is done, and not lost.
    let (points, _) = split(work.points()?);
    let given = Given::of(&before);
    let all = stages(&points, &given, &tasks, out);
    let busy = all
        .iter()
        .filter(|s| matches!(s, Stage::Running | Stage::Waiting))
        .count();
    let is_left = |stage: &Stage| matches!(stage, Stage::Failed(_) | Stage::Missing);
    let left = all.iter().zip(&points).filter(|(stage, _)| is_left(stage));
    let left: Vec<String> = left.map(|(_, point)| point.name.clone()).collect();
    if left.is_empty() {
        return nothing(a, all.len(), busy);
    }
    let (points, shares) = (left.len(), left.len().min(a.array as usize));
    let number = before.keys().next_back().map_or(1, |last| last + 1);
    let mut submitted = submission::new(work.keep(), work.files(), left, shares);
    submitted.save(out, number).map_err(failed)?;
    let job = script(work, number, shares)
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

fn nothing(a: &SubmitHow, points: usize, busy: usize) -> Done {
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
fn script(work: &dyn ClusterWork, number: usize, tasks: usize) -> Result<PathBuf, Failure> {
    let out: &Path = &std::path::absolute(work.out()).map_err(failed)?;
    // The build that submits is the one that runs.
    let varve = std::env::current_exe().map_err(failed)?;
    let command = format!(
        "{} {} --submission {}",
        word(&varve),
        work.command()?,
        word(&submission::file(out, number, ".json")),
    );
    // `%` begins what Slurm replaces.
    let logs = submission::file(out, number, "-")
        .to_string_lossy()
        .replace('%', "%%");
    let log = ui::quoted(&format!("{logs}%a.log"));
    let text = array(work.name(), tasks, &log, "", &command);
    let path = submission::file(work.out(), number, ".sh");
    write_atomically(&path, text.as_bytes()).map_err(failed)?;
    Ok(path)
}
