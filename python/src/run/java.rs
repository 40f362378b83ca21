//! The trace of a Java virtual machine under plans for its generations and its pages.

use super::Asked;
use super::making::{replayed, shown};
use crate::errors::of_run;
use crate::options::Made;
use crate::runs::{About, Runs};
use crate::work::Trace;
use clap::Args;
use pyo3::prelude::*;
use varve_run::request::options::Generations;
use varve_run::request::{JavaRequest, NATIVE_MACHINE, recorded};

/// The options of such runs.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    generations: Generations,
}

/// Runs them.
pub fn run(asked: Asked<'_, '_>) -> PyResult<Runs> {
    let py = asked.py;
    let options: Options = asked.given.read(py)?;
    let trace = asked.work.cast::<Trace>()?.get();
    let request = JavaRequest {
        options: options.generations,
        seed: options.made.seed,
        ..JavaRequest::new(asked.machine_or(NATIVE_MACHINE)?)
    };
    let runs = py.detach(|| request.runs(recorded(&trace.path, None)?));
    let mut runs = runs.map_err(|e| of_run(py, &e))?;
    let came = replayed(&asked, trace, &mut runs, &options.made)?;
    let machine = &request.machine.name;
    let about = About {
        notes: runs.notes.clone(),
        ..About::new("plan", &trace.name(), machine, request.seed)
    };
    shown(py, &runs, &came, about)
}
