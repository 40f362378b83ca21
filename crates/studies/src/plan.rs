//! The runs of a study by name: declared first, made together, read by the claims.

use crate::{StudyOptions, StudyProgress, Watch};
use std::collections::BTreeMap;
use std::sync::Mutex;
use varve_run::{Error, RunResult, RunSpec, compare};

/// Runs that are asked for. Two names for the same run cost one run.
#[derive(Default)]
pub struct Plan {
    names: Vec<(String, usize)>,
    specs: Vec<RunSpec>,
}

/// What came out, by name.
pub struct Results<R = RunResult> {
    by_name: BTreeMap<String, Result<R, String>>,
}

impl Plan {
    /// Asks for a run under a name.
    pub fn run(&mut self, name: impl Into<String>, spec: RunSpec) {
        let at = self
            .specs
            .iter()
            .position(|s| *s == spec)
            .unwrap_or_else(|| {
                self.specs.push(spec);
                self.specs.len() - 1
            });
        self.names.push((name.into(), at));
    }

    /// Makes all runs. One that fails is an answer of its own; an interrupt ends everything.
    pub fn make(self, options: &StudyOptions, watch: Watch) -> Result<Results, Error> {
        let runs = self.specs.len();
        let done = Mutex::new(0usize);
        let name_of = |i: usize| {
            self.names
                .iter()
                .find(|(_, at)| *at == i)
                .map_or("", |(n, _)| n)
        };
        let outcomes = compare(
            &self.specs,
            options.workers,
            &options.keep,
            &|i, progress| {
                let mut done = done.lock().expect("no holder panics");
                *done += usize::from(progress.is_none());
                watch(&StudyProgress {
                    done: *done,
                    runs,
                    what: name_of(i).into(),
                })
            },
        );
        let kept: Vec<Result<RunResult, String>> = outcomes
            .into_iter()
            .map(settled)
            .collect::<Result<_, _>>()?;
        Ok(Results::new(
            self.names
                .into_iter()
                .map(|(name, at)| (name, kept[at].clone())),
        ))
    }
}

/// What came of a run, where a failure is an answer of its own. An interrupt is none, and ends the study.
pub fn settled<R>(outcome: Result<R, Error>) -> Result<Result<R, String>, Error> {
    match outcome {
        Err(e) if e.is_interrupt() => Err(e),
        other => Ok(other.map_err(|e| e.to_string())),
    }
}

impl<R> Results<R> {
    /// Outcomes with their names.
    pub fn new(outcomes: impl Iterator<Item = (String, Result<R, String>)>) -> Results<R> {
        Results {
            by_name: outcomes.collect(),
        }
    }

    /// A run's result; `None` when it was not asked for or failed.
    pub fn get(&self, name: &str) -> Option<&R> {
        self.by_name.get(name)?.as_ref().ok()
    }

    /// Why runs failed, by name.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name
            .iter()
            .filter_map(|(n, r)| r.as_ref().err().map(|e| (n.as_str(), e.as_str())))
    }

    /// A number from two runs; `None` when one is missing.
    pub fn of_two(&self, a: &str, b: &str, f: impl Fn(&R, &R) -> f64) -> Option<f64> {
        Some(f(self.get(a)?, self.get(b)?)).filter(|x| x.is_finite())
    }
}
