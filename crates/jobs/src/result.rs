//! What came of running a group.

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
    /// What was decided by.
    pub strategy: Strategy,
    /// From the start of the first to the end of the last program, s.
    pub seconds: f64,
    /// Programs in the group's order.
    pub programs: Vec<ProgramResult>,
    /// Bytes whose pages moved to make room.
    pub moved_bytes: u64,
    /// How long that took, s.
    pub moving_s: f64,
    /// What should be known of the run, in sentences.
    pub notes: Vec<String>,
}

impl GroupResult {
    /// How long the whole group took, s; `None` where a program never started: the time of the others says nothing of it.
    pub fn time(&self) -> Option<f64> {
        let all_started = self.programs.iter().all(|p| p.start_s.is_some());
        all_started.then_some(self.seconds)
    }

    /// Percent of another run's time that this one saves, where both have one.
    pub fn saves(&self, baseline: &GroupResult) -> Option<f64> {
        Some(100.0 * (1.0 - self.time()? / baseline.time()?))
    }

    /// Did every program end well?
    pub fn is_well(&self) -> bool {
        self.programs.iter().all(|p| p.failure.is_none())
    }
}
