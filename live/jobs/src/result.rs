//! The result of running a group.

use crate::kinds::Memory;
use crate::plan::Strategy;
use crate::policy::order::Reason;
use serde::{Deserialize, Serialize};

/// One program's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Its name.
    pub name: String,
    /// The memory that most of it was in.
    pub memory: Memory,
    /// It was in fast memory in part, its own memory placed.
    #[serde(default)]
    pub in_part: bool,
    /// Its threads.
    pub threads: u32,
    /// When it started, s from the group's start; `None` if it never did.
    pub start_s: Option<f64>,
    /// When it ended, s.
    pub end_s: Option<f64>,
    /// Why it started then.
    pub reason: Option<Reason>,
    /// Exit code, on this machine, of a program that ended by itself.
    pub exit: Option<i32>,
    /// Why it did not end well, in a line.
    pub failure: Option<String>,
    /// Where its output is, on this machine.
    pub log: Option<String>,
}

impl ProgramResult {
    /// How long it ran, s.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.end_s? - self.start_s?)
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// The strategy behind it.
    pub strategy: Strategy,
    /// From the start of the first to the end of the last program, s.
    pub seconds: f64,
    /// Programs in the group's order.
    pub programs: Vec<ProgramResult>,
    /// Bytes whose pages moved to make room.
    pub moved_bytes: u64,
    /// How long that took, s.
    pub moving_s: f64,
    /// Notes on the run, in sentences.
    pub notes: Vec<String>,
    /// Where runs differ by noise, on this machine: the times of all of them, s, ascending. This one is their median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<f64>,
}

impl GroupResult {
    /// How long the whole group took, s; `None` where a program never started: the time of the others says nothing of it.
    pub fn time(&self) -> Option<f64> {
        let all_started = self.programs.iter().all(|p| p.start_s.is_some());
        all_started.then_some(self.seconds)
    }

    /// The median of several runs of one group by one plan, with the times of all; a run that has no time, if there is one. `None` of
    /// nothing.
    pub fn median(mut runs: Vec<GroupResult>) -> Option<GroupResult> {
        if let Some(failed) = runs.iter().position(|r| r.time().is_none() || !r.is_well()) {
            return Some(runs.swap_remove(failed));
        }
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let times = runs.iter().map(|r| r.seconds).collect();
        let middle = runs.len().checked_sub(1)? / 2;
        let median = runs.swap_remove(middle);
        Some(GroupResult { times, ..median })
    }

    /// The least and the most time.
    fn range(&self) -> Option<(f64, f64)> {
        let time = self.time()?;
        Some((
            *self.times.first().unwrap_or(&time),
            *self.times.last().unwrap_or(&time),
        ))
    }

    /// How far runs are apart, in percent of this one; `None` if there was one.
    pub fn spread_percent(&self) -> Option<f64> {
        let (least, most) = self.range().filter(|_| self.times.len() > 1)?;
        Some(100.0 * (most - least) / self.time()?)
    }

    /// Do two times differ by more than noise? A model has none; for a single run on a machine it is unknown.
    pub fn is_apart(&self, other: &GroupResult) -> bool {
        match (self.range(), other.range()) {
            _ if self.times.len() == 1 || other.times.len() == 1 => false,
            (Some(a), Some(b)) => self.times.is_empty() || a.1 < b.0 || b.1 < a.0,
            _ => false,
        }
    }

    /// Percent of another run's time that this one saves, where both have one and differ by more than noise.
    pub fn saves(&self, baseline: &GroupResult) -> Option<f64> {
        if !self.is_apart(baseline) {
            return None;
        }
        Some(100.0 * (1.0 - self.time()? / baseline.time()?))
    }

    /// Did every program end well?
    pub fn is_well(&self) -> bool {
        self.programs.iter().all(|p| p.failure.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64) -> GroupResult {
        GroupResult {
            strategy: Strategy::LINUX,
            seconds,
            programs: Vec::new(),
            moved_bytes: 0,
            moving_s: 0.0,
            notes: Vec::new(),
            times: Vec::new(),
        }
    }

    fn median(times: &[f64]) -> GroupResult {
        GroupResult::median(times.iter().map(|s| run(*s)).collect()).unwrap()
    }

    #[test]
    fn a_saving_is_told_where_runs_do_not_overlap() {
        let linux = median(&[11.0, 10.0, 12.0]);
        assert_eq!(
            (linux.seconds, linux.times.clone()),
            (11.0, vec![10.0, 11.0, 12.0])
        );
        assert!((linux.spread_percent().unwrap() - 18.18).abs() < 0.01);
        assert_eq!(
            median(&[9.0, 10.5, 8.0]).saves(&linux),
            None,
            "within the noise"
        );
        let saved = median(&[6.0, 5.0, 5.5]).saves(&linux).unwrap();
        assert!((saved - 50.0).abs() < 1e-9);
        assert_eq!(
            median(&[5.0]).saves(&median(&[10.0])),
            None,
            "the noise is unknown"
        );
        assert_eq!(run(5.0).saves(&run(10.0)), Some(50.0), "a model has none");
        assert!(GroupResult::median(Vec::new()).is_none());
    }
}
