//! Runs that replay the same trace go in step, so that it is decoded once for all of them: work that does not depend on
//! the placement is done once. Each has the same result as alone.

use crate::Error;
use std::path::Path;
use std::sync::Arc;
use varve_trace::{SharedTrace, TraceProgram};

/// A trace that a run replays.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Its blocks must have the functions that run.
    pub code: bool,
}

/// Runs that are open at a time, so that a model is in memory of each, unless more than that are made at a time.
const OPEN: usize = 16;

/// See the module. The default is a run by itself.
#[derive(Clone, Default)]
pub struct InStep(Option<Arc<SharedTrace>>);

impl InStep {
    /// Runs of which each replays a trace, or does something else, made `workers` at a time. They go in step if all
    /// replay the same one; each of them reports an error if the trace cannot be read.
    pub fn of<'a>(traces: impl Iterator<Item = Option<Replayed<'a>>>, workers: usize) -> InStep {
        let traces: Option<Vec<Replayed>> = traces.collect();
        let traces = traces.unwrap_or_default();
        let same = |first: &&Replayed| traces.iter().all(|trace| trace.path == first.path);
        let code = traces.iter().any(|trace| trace.code);
        let first = traces.first().filter(same);
        InStep(first.and_then(|trace| SharedTrace::open(trace.path, workers, code).ok()))
    }

    /// How many of `count` runs are open when `workers` are made at a time: those that wait for others are no work.
    pub fn open(&self, count: usize, workers: usize) -> usize {
        match self.0 {
            Some(_) => count.min(workers.max(OPEN)),
            None => workers,
        }
    }

    /// A trace as the program of one of the runs.
    pub(crate) fn program(&self, Replayed { path, code }: Replayed) -> Result<TraceProgram, Error> {
        let program = match &self.0 {
            Some(shared) => TraceProgram::of(shared, code),
            None if code => TraceProgram::open_with_code(path),
            None => TraceProgram::open(path),
        };
        Ok(program?)
    }
}
