//! Requests to Slurm, by its own commands.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a task of a job array is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// For a node.
    Waits,
    Runs,
    /// With Slurm's own word, such as COMPLETED, FAILED, TIMEOUT or OUT_OF_MEMORY.
    Ended(String),
}

/// Why Slurm says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silent {
    /// There is no such command here.
    Absent(&'static str),
    /// Its output, in one line.
    Said(String),
}

/// Tasks by their job and their place in its array.
pub type Tasks = BTreeMap<(String, usize), Task>;

fn ask(program: &'static str, words: &[String]) -> Result<String, Silent> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    let done = command.output().map_err(|e| match e.kind() {
        ErrorKind::NotFound => Silent::Absent(program),
        _ => Silent::Said(format!("{program}: {e}")),
    })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let line = match lines.next_back() {
        Some(line) => line
            .trim_start_matches(&format!("{program}: "))
            .trim_start_matches("error: "),
        None => "failed without a message",
    };
    Err(Silent::Said(format!("{program}: {line}")))
}

/// Gives a script to Slurm; returns the number of its job.
///
/// # Errors
/// There is no Slurm, or it does not take it.
pub fn submit(script: &Path, options: &[String]) -> Result<String, Silent> {
    let mut words = vec!["--parsable".to_string()];
    words.extend(options.iter().cloned());
    words.push(script.to_string_lossy().into_owned());
    let said = ask("sbatch", &words)?;
    // A number, and a cluster's name behind it where there are several.
    let job = said.trim().split(';').next().unwrap_or_default();
    match !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(job.into()),
        false => Err(Silent::Said(format!(
            "sbatch: printed no number of a job, but `{}`",
            said.trim()
        ))),
    }
}

/// Where the tasks of jobs are, as far as Slurm still knows.
///
/// # Errors
/// There is no Slurm, or its controller does not answer.
pub fn tasks(jobs: &[String]) -> Result<Tasks, Silent> {
    let mut all = Tasks::new();
    if jobs.is_empty() {
        return Ok(all);
    }
    // The queue knows what waits, runs and has ended just now; the accounts, where a site has them, what ended before.
    all.extend(accounts(jobs));
    let listed = ["--noheader", "--array", "--states=all", "--format=%F|%K|%T"];
    let mut words: Vec<String> = listed.map(String::from).into();
    words.push(format!("--jobs={}", jobs.join(",")));
    match ask("squeue", &words) {
        Ok(said) => all.extend(said.lines().filter_map(of_queue)),
        // None of them is known any more.
        Err(Silent::Said(line)) if line.contains("Invalid job id") => {}
        Err(silent) => return Err(silent),
    }
    Ok(all)
}

/// A line of the queue: `17|3|RUNNING`.
fn of_queue(line: &str) -> Option<((String, usize), Task)> {
    let mut parts = line.trim().split('|');
    let (job, place, word) = (parts.next()?, parts.next()?, parts.next()?);
    Some(((job.into(), place.parse().ok()?), task(word)))
}

/// A line of the accounts: `17_3|OUT_OF_MEMORY`.
fn of_accounts(line: &str) -> Option<((String, usize), Task)> {
    let (id, word) = line.trim().split_once('|')?;
    let (job, place) = id.split_once('_')?;
    Some(((job.into(), place.parse().ok()?), task(word)))
}

/// Sites without accounts have none.
fn accounts(jobs: &[String]) -> Tasks {
    let asked = [
        "--noheader",
        "--parsable2",
        "--allocations",
        "--array",
        "--format=JobID,State",
    ];
    let mut words: Vec<String> = asked.map(String::from).into();
    words.push(format!("--jobs={}", jobs.join(",")));
    let said = ask("sacct", &words).unwrap_or_default();
    said.lines().filter_map(of_accounts).collect()
}

fn task(word: &str) -> Task {
    // `CANCELLED by 0`
    let word = word.split_whitespace().next().unwrap_or_default();
    match word {
        "RUNNING" | "COMPLETING" | "CONFIGURING" | "SUSPENDED" | "STOPPED" | "RESIZING"
        | "SIGNALING" | "STAGE_OUT" => Task::Runs,
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD"
        | "SPECIAL_EXIT" => Task::Waits,
        ended => Task::Ended(ended.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_slurm_are_tasks() {
        let of = |job: &str, place, task| Some(((job.to_string(), place), task));
        let ended = |word: &str| Task::Ended(word.into());
        assert_eq!(of_queue("17|3|RUNNING"), of("17", 3, Task::Runs));
        assert_eq!(of_queue("17|0|PENDING"), of("17", 0, Task::Waits));
        assert_eq!(of_queue("17|1|TIMEOUT"), of("17", 1, ended("TIMEOUT")));
        assert_eq!(of_queue("17|N/A|RUNNING"), None);
        assert_eq!(
            of_accounts("17_4|CANCELLED by 0"),
            of("17", 4, ended("CANCELLED"))
        );
        assert_eq!(of_accounts("17_[5-7]|PENDING"), None);
    }
}
