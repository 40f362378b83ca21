//! The runs of a study by name: declared first, made together, read by the claims.

use crate::{StudyOptions, StudyProgress, Watch};
use std::collections::BTreeMap;
use std::sync::Mutex;
use varve_run::{Error, RunResult, RunSpec, Spec, compare};

/// Runs that are asked for. Two names for the same run cost one run.
pub struct Plan<S = RunSpec> {
    names: Vec<(String, usize)>,
    specs: Vec<S>,
    /// The identities that distinguish the runs.
    identities: Vec<Option<String>>,
}

/// Results, by name.
pub struct Results<R = RunResult> {
    by_name: BTreeMap<String, Result<R, String>>,
    /// A run that another process makes, and that is not there yet.
    elsewhere: Option<String>,
}

impl<S> Default for Plan<S> {
    fn default() -> Plan<S> {
        Plan {
            names: Vec::new(),
            specs: Vec::new(),
            identities: Vec::new(),
        }
    }
}

impl<S: Spec> Plan<S> {
    /// Asks for a run under a name. A name that was asked for before is that run.
    pub fn run(&mut self, name: impl Into<String>, spec: S) {
        let name = name.into();
        if self.names.iter().any(|(known, _)| *known == name) {
            return;
        }
        let identity = spec.identity();
        let known = self
            .identities
            .iter()
            .position(|i| i.is_some() && *i == identity);
        let at = known.unwrap_or_else(|| {
            self.specs.push(spec);
            self.identities.push(identity);
            self.specs.len() - 1
        });
        self.names.push((name, at));
    }

    /// Makes all runs. One that fails is an answer of its own; an interrupt ends everything.
    pub fn make(self, options: &StudyOptions, watch: Watch) -> Result<Results<S::Result>, Error> {
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
            &|_, _, _| {},
        );
        let mut kept = Vec::new();
        let mut elsewhere = None;
        for outcome in outcomes {
            match outcome {
                Err(e) if e.is_interrupt() => return Err(e),
                Err(Error::Elsewhere(what)) => {
                    kept.push(Err(format!("{what} is not there yet")));
                    elsewhere.get_or_insert(what);
                }
                other => kept.push(other.map_err(|e| e.to_string())),
            }
        }
        let by_name = self
            .names
            .iter()
            .map(|(name, at)| (name.clone(), kept[*at].clone()))
            .collect();
        Ok(Results { by_name, elsewhere })
    }
}

impl<R> Results<R> {
    /// Asked before runs that depend on these.
    ///
    /// # Errors
    /// One of them is made by another process, and is not there yet.
    pub fn all_there(&self) -> Result<(), Error> {
        match &self.elsewhere {
            Some(what) => Err(Error::Elsewhere(what.clone())),
            None => Ok(()),
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
