//! Runs that replay the same trace go on in step, so that it is decoded once for all of them: what decides nothing about where
//! pages are is done once. Each comes to the result that it comes to alone.

use crate::Error;
use std::path::Path;
use std::sync::Arc;
use varve_trace::{SharedTrace, TraceProgram};

/// Runs that are open at a time, so that a model is in memory of each, unless more than that are made at a time.
const OPEN: usize = 16;

/// See the module. The default is a run by itself.
#[derive(Clone, Default)]
pub struct InStep(Option<Arc<SharedTrace>>);

impl InStep {
    /// Runs of which each replays a trace, or does something else, made `workers` at a time. They go in step if all replay the same
    /// one; whether it can be read, each of them says.
    pub fn of<'a>(mut traces: impl Iterator<Item = Option<&'a Path>>, workers: usize) -> InStep {
        let first = traces.next().flatten();
        let same = first.filter(|first| traces.all(|trace| trace == Some(*first)));
        InStep(same.and_then(|path| SharedTrace::open(path, workers).ok()))
    }

    /// How many of `count` runs are open when `workers` are made at a time: those that wait for others are no work.
    pub fn open(&self, count: usize, workers: usize) -> usize {
        match self.0 {
            Some(_) => count.min(workers.max(OPEN)),
            None => workers,
        }
    }

    /// A trace as the program of one of the runs.
    pub(crate) fn program(&self, path: &Path) -> Result<TraceProgram, Error> {
        let program = match &self.0 {
            Some(shared) => TraceProgram::of(shared),
            None => TraceProgram::open(path),
        };
        Ok(program?)
    }
}
