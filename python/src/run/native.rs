//! The trace of a native program under plans for its allocation sites and its pages.

use super::Asked;
use super::making::{replayed, shown};
use crate::errors::of_run;
use crate::options::Made;
use crate::runs::{About, Runs};
use crate::work::Trace;
use clap::Args;
use pyo3::prelude::*;
use varve_run::request::options::{Plans, Stale, Trays};
use varve_run::request::{NATIVE_MACHINE, NativeRequest, native_profile};

/// The options of such runs.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    plans: Plans,
    #[command(flatten)]
    stale: Stale,
    #[command(flatten)]
    trays: Trays,
}

/// Runs them.
pub fn run(asked: Asked<'_, '_>) -> PyResult<Runs> {
    let py = asked.py;
    let options: Options = asked.given.read(py)?;
    let trace = asked.work.cast::<Trace>()?.get();
    let profile = options.plans.profile.as_deref().map(native_profile);
    let request = NativeRequest {
        profile: profile.transpose().map_err(|e| of_run(py, &e))?,
        plans: options.plans,
        stale: options.stale,
        trays: options.trays,
        seed: options.made.seed,
        ..NativeRequest::new(asked.machine_or(NATIVE_MACHINE)?)
    };
    let runs = py.detach(|| request.runs(&trace.path));
    let mut runs = runs.map_err(|e| of_run(py, &e))?;
    let came = replayed(&asked, trace, &mut runs, &options.made)?;
    let machine = &request.machine.name;
    let about = About {
        notes: runs.notes.clone(),
        ..About::new("plan", &trace.name(), machine, request.seed)
    };
    shown(py, &runs, &came, about)
}
