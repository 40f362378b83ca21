//! How far a sweep is: which of its points have a result.

use super::point::{Keys, words};
use super::spec::Sweep;
use std::path::Path;
use varve_report::RunReport;
use varve_run::{Keep, State, result_name};

/// Where the results of a sweep are, in its folder.
pub fn store(out: &Path) -> Keep {
    Keep::in_folder(&out.join("points"))
}

/// A point as it stands.
pub struct Known {
    pub state: State,
    /// The name of its result.
    pub name: String,
    /// The reason why there is none, if a run was tried.
    pub failed: Option<String>,
}

/// All points of a sweep, by number.
pub struct Standing {
    pub points: Vec<Known>,
}

impl Standing {
    pub fn of(sweep: &Sweep, keep: &Keep, keys: &Keys) -> Standing {
        let known = |number| {
            let key = keys.of(&words(sweep, number));
            let state = keep.state(&key);
            let open = state != State::Done;
            Known {
                state,
                name: result_name(&key),
                failed: open.then(|| keep.failure(&key)).flatten(),
            }
        };
        Standing {
            points: (0..sweep.points()).map(known).collect(),
        }
    }

    /// Numbers of the points that have to be run.
    pub fn missing(&self) -> Vec<usize> {
        let missing = |number: &usize| self.points[*number].state != State::Done;
        (0..self.points.len()).filter(missing).collect()
    }

    /// How many results of another build there are.
    pub fn others(&self) -> usize {
        let other = |point: &&Known| point.state == State::Other;
        self.points.iter().filter(other).count()
    }

    /// Reads the results of all points that are done. What turns out to be none is missing from then on.
    pub fn read(&mut self, sweep: &Sweep, keep: &Keep, keys: &Keys) -> Vec<(usize, RunReport)> {
        let mut reports = Vec::new();
        for (number, point) in self.points.iter_mut().enumerate() {
            if point.state != State::Done {
                continue;
            }
            match keep.get(&keys.of(&words(sweep, number))) {
                Some(report) => reports.push((number, report)),
                None => point.state = State::Missing,
            }
        }
        reports
    }
}
