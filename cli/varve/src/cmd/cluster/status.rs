//! `varve sweep status` and `varve study status`: points by what is known of them.

use super::{ClusterWork, NAMED, split};
use crate::sweep::progress::{Given, Stage, stages};
use crate::sweep::slurm::{self, Silent, Task, Tasks};
use crate::sweep::submission::{self, Submission};
use crate::ui::{Done, failed, print};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use varve_run::State;

pub fn status(work: &dyn ClusterWork, as_json: bool) -> Done {
    let out = work.out();
    let mut submitted = submission::all(out).map_err(failed)?;
    let jobs: Vec<String> = submitted.values().filter_map(|s| s.job.clone()).collect();
    // Files say the rest where no scheduler is.
    let (tasks, silent) = match slurm::tasks(&jobs) {
        Ok(tasks) => (tasks, None),
        Err(Silent::Absent(program)) => (
            Tasks::new(),
            Some(format!(
                "no scheduler was found: `{program}` is not installed here; run this on a host with Slurm's commands to see waiting and running tasks"
            )),
        ),
        Err(Silent::Said(line)) => (
            Tasks::new(),
            Some(format!("what waits and runs is not known: {line}")),
        ),
    };
    let (points, people) = split(work.points()?);
    let given = Given::of(&submitted);
    let all = stages(&points, &given, &tasks, out);
    let others = points.iter().filter(|p| p.state == State::Other).count();
    let count = |is: &dyn Fn(&Stage) -> bool| all.iter().filter(|stage| is(stage)).count();
    let counts = [
        ("done", count(&|s| *s == Stage::Done)),
        ("running", count(&|s| *s == Stage::Running)),
        ("waiting", count(&|s| *s == Stage::Waiting)),
        ("failed", count(&|s| matches!(s, Stage::Failed(_)))),
        ("missing", count(&|s| *s == Stage::Missing)),
    ];
    let failures: Vec<(usize, &str)> = all
        .iter()
        .enumerate()
        .filter_map(|(number, stage)| match stage {
            Stage::Failed(why) => Some((number, &why[..])),
            _ => None,
        })
        .collect();
    // Studies may share a folder; each reports only its own.
    let own: BTreeSet<&String> = points.iter().map(|point| &point.name).collect();
    submitted.retain(|_, s| s.points.iter().any(|name| own.contains(name)));
    let jobs: Vec<Json> = submitted.values().filter_map(|s| job(s, &tasks)).collect();
    if as_json {
        let counts: BTreeMap<&str, usize> = counts.into_iter().collect();
        let failures: Vec<Json> = failures
            .iter()
            .map(|(number, why)| {
                let (shown, command) = &people[*number];
                json!({"number": number, "point": shown, "why": why, "command": command})
            })
            .collect();
        let said = json!({
            "points": all.len(),
            "counts": counts,
            "other_build": others,
            "failures": failures,
            "jobs": jobs,
            "unknown": silent,
        });
        print(serde_json::to_string_pretty(&said).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![format!("{} points", all.len())];
    lines.extend(counts.iter().map(|(word, n)| format!("  {word:8}{n:8}")));
    for (number, why) in failures.iter().take(NAMED) {
        lines.push(format!("failed: {}: {why}", people[*number].0));
    }
    if failures.len() > NAMED {
        lines.push(format!(
            "and {} more that failed: --json has all",
            failures.len() - NAMED
        ));
    }
    if others > 0 {
        lines.push(format!(
            "{others} results are of another build of Varve, and do not count"
        ));
    }
    print(lines.join("\n"));
    if let Some(silent) = silent {
        crate::ui::message!("varve: note: {silent}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A job's tasks by where they are; what the scheduler has forgotten counts as ended.
fn job(of: &Submission, tasks: &Tasks) -> Option<Json> {
    let job = of.job.as_ref()?;
    let (mut waiting, mut running) = (0, 0);
    for place in 0..of.tasks {
        match tasks.get(&(job.clone(), place)) {
            Some(Task::Waits) => waiting += 1,
            Some(Task::Runs) => running += 1,
            _ => {}
        }
    }
    let ended = of.tasks - waiting - running;
    Some(
        json!({"job": job, "tasks": of.tasks, "waiting": waiting, "running": running, "ended": ended}),
    )
}
