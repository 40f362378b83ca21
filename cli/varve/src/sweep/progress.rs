//! Points by what is known of them: from their results, and from the scheduler that runs their tasks.

use super::slurm::{Task, Tasks};
use super::standing::Known;
use super::submission::{self, Submission};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use varve_run::State;

/// The state of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Done,
    /// In a task that runs.
    Running,
    /// In a task that waits.
    Waiting,
    /// With the reason.
    Failed(String),
    Missing,
}

/// The tasks that points were given to: the last one of each.
pub struct Given<'a> {
    /// The number of the submission, and the place of its task, by the name of a point.
    tasks: HashMap<&'a str, (usize, usize)>,
    submissions: &'a BTreeMap<usize, Submission>,
}

impl<'a> Given<'a> {
    pub fn of(submissions: &'a BTreeMap<usize, Submission>) -> Given<'a> {
        let mut tasks = HashMap::new();
        for (number, submission) in submissions {
            if submission.job.is_none() {
                continue;
            }
            for (at, name) in submission.points.iter().enumerate() {
                tasks.insert(&name[..], (*number, at % submission.tasks.max(1)));
            }
        }
        Given { tasks, submissions }
    }

    /// The task of a point, as the scheduler calls it.
    fn task(&self, name: &str) -> Option<(usize, &str, usize)> {
        let (number, place) = *self.tasks.get(name)?;
        let job = self.submissions[&number].job.as_deref()?;
        Some((number, job, place))
    }

    /// Whether the scheduler still has to do with it, and how.
    fn under_way(&self, name: &str, tasks: &Tasks) -> Option<Stage> {
        let (_, job, place) = self.task(name)?;
        match tasks.get(&(job.to_string(), place))? {
            Task::Runs => Some(Stage::Running),
            Task::Waits => Some(Stage::Waiting),
            Task::Ended(_) => None,
        }
    }

    /// How its task ended, if that explains that there is no result.
    fn ended(&self, name: &str, tasks: &Tasks, out: &Path) -> Option<String> {
        let (number, job, place) = self.task(name)?;
        let Task::Ended(word) = tasks.get(&(job.to_string(), place))? else {
            return None;
        };
        let log = submission::file(out, number, &format!("-{place}.log"));
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let said = text.lines().rfind(|line| line.starts_with("varve: "));
        let said = match said {
            Some(line) => line["varve: ".len()..].to_string(),
            None => format!("see {}", log.display()),
        };
        Some(format!("task {place} of job {job} ended as {word}: {said}"))
    }
}

/// The state of each point.
pub fn stages(points: &[Known], given: &Given, tasks: &Tasks, out: &Path) -> Vec<Stage> {
    let stage = |point: &Known| {
        if point.state == State::Done {
            return Stage::Done;
        }
        if let Some(stage) = given.under_way(&point.name, tasks) {
            return stage;
        }
        let why = point.failed.clone();
        match why.or_else(|| given.ended(&point.name, tasks, out)) {
            Some(why) => Stage::Failed(why),
            None => Stage::Missing,
        }
    };
    points.iter().map(stage).collect()
}
