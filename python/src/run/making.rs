//! Common parts of all kinds of runs: they run on threads of their own while Python waits, and their results are sorted.

use super::Asked;
use crate::errors::of_run;
use crate::options::Made;
use crate::runs::{About, Runs};
use crate::watch::{Watcher, warn, watched};
use crate::work::Trace;
use pyo3::prelude::*;
use varve_machine::model::Progress;
use varve_report::fmt;
use varve_run::{Compared, Comparison, Ended, Error, Keep, Of, Outcomes, Spec, answer, compare};

/// The results of some runs.
pub type Answers<C> = Vec<Result<Of<C>, Error>>;

/// Calls of Python between a user and here: `varve.run`.
const CALLS: i32 = 1;

/// The length of runs, as far as it is known.
#[derive(Clone, Copy, Default)]
pub struct Length {
    /// Accesses that each makes.
    pub accesses: Option<u64>,
    /// When each ends, ns.
    pub until_ns: Option<u64>,
}

/// Host threads: what was asked for, or one per core.
pub fn workers(made: &Made) -> usize {
    match made.jobs {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    }
}

/// Makes all runs of a comparison by `make`, which gets some of them, the number of the first, and the watcher of their progress.
pub fn all<C: Comparison + Send>(
    asked: &Asked<'_, '_>,
    comparison: &mut C,
    length: Length,
    make: impl Fn(&[C::Spec], usize, &Watcher) -> Answers<C> + Sync,
) -> PyResult<Outcomes<Of<C>>> {
    let py = asked.py;
    let runs = comparison.names().len();
    let watcher = Watcher::new(runs, length.accesses, length.until_ns);
    let answers = watched(py, &watcher, asked.progress, || {
        answer(comparison, |specs, from| make(specs, from, &watcher))
    })?;
    let answers = answers.map_err(|e| of_run(py, &e))?;
    Ok(Outcomes::of(comparison, answers))
}

/// Makes some runs side by side, as the command line does.
pub fn side_by_side<S: Spec>(
    specs: &[S],
    from: usize,
    workers: usize,
    watcher: &Watcher,
    ended: Ended<S>,
) -> Vec<Result<S::Result, Error>> {
    let note = |run: usize, progress: Option<&Progress>| watcher.note(from + run, progress);
    compare(specs, workers, &Keep::nothing(), &note, ended)
}

/// Makes all runs of a comparison that replay a trace.
pub fn replayed<C: Comparison + Send>(
    asked: &Asked<'_, '_>,
    trace: &Trace,
    comparison: &mut C,
    made: &Made,
) -> PyResult<Outcomes<Of<C>>> {
    let length = Length {
        accesses: trace.accesses(),
        until_ns: None,
    };
    let workers = workers(made);
    all(asked, comparison, length, |specs, from, watcher| {
        side_by_side(specs, from, workers, watcher, &|_, _, _| {})
    })
}

/// The runs that are shown, with advice. Failed runs are warnings if there is a result all the same, and exceptions otherwise.
pub fn shown<C: Comparison>(
    py: Python<'_>,
    comparison: &C,
    came: &Outcomes<Of<C>>,
    mut about: About,
) -> PyResult<Runs> {
    if came.is_nothing() {
        let asked = came.failed.iter().find(|run| run.role.is_asked());
        if let Some(run) = asked.or(came.failed.first()) {
            return Err(of_run(py, &run.why));
        }
    }
    for run in &came.failed {
        let why = run.why.to_string();
        warn(py, &format!("{} did not run: {why}", run.name), CALLS)?;
        about.refused.push((run.name.clone(), why));
    }
    let results = came.shown();
    for warning in results.iter().filter_map(|result| result.warning()) {
        warn(py, warning, CALLS)?;
    }
    let size = |bytes: u64| fmt::bytes(bytes as f64);
    about.advice = comparison.advise(came, &size).said;
    Runs::of(py, about, &results)
}
