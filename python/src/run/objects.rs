//! A WebAssembly program under heap plans.

use super::Asked;
use super::making::{Length, all, shown, side_by_side, workers};
use crate::errors::{of_run, wrong};
use crate::options::Made;
use crate::runs::{About, Runs};
use crate::work::Program;
use clap::Args;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use varve_observed::request::Heap;
use varve_observed::request::ObjectsRequest;
use varve_observed::{End, PlanResult};
use varve_run::request::options::{Instances, PageSize, Plans, Trays};
use varve_spec::Bytes;

/// The options of such runs.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    plans: Plans,
    #[command(flatten)]
    page: PageSize,
    #[command(flatten)]
    instances: Instances,
    #[command(flatten)]
    trays: Trays,
    #[command(flatten)]
    heap: Heap,
}

/// A program's standard output and standard error.
type Written = Mutex<Option<(Vec<u8>, Vec<u8>)>>;

/// Runs them.
pub fn run(asked: Asked<'_, '_>) -> PyResult<Runs> {
    let py = asked.py;
    let Some(machine) = asked.machine else {
        return Err(wrong(
            py,
            "a WebAssembly program needs a machine: machine=\"optane-6242\", for example",
        ));
    };
    let options: Options = asked.given.read(py)?;
    let program = &asked.work.cast::<Program>()?.get().program;
    let mut config = options.heap.config().map_err(|e| of_run(py, &e))?;
    if let Some(path) = &options.plans.profile {
        let known = py.detach(|| program.known(path));
        config.profile = Some(Arc::new(known.map_err(|e| wrong(py, e))?));
    }
    let mut request = ObjectsRequest {
        config,
        heap_max: options.heap.heap_max,
        plans: options.plans,
        page_bytes: options.page.page.map(|Bytes(b)| b),
        instances: options.instances,
        trays: options.trays,
        seed: options.made.seed,
        ..ObjectsRequest::new(machine.machine.clone(), program.clone())
    };
    request.check().map_err(|e| of_run(py, &e))?;
    if request.wants_profile() {
        let profiled = py.detach(|| request.profile());
        profiled.map_err(|e| wrong(py, format!("{}: {e}", request.program.file)))?;
    }
    let mut runs = request.runs().map_err(|e| of_run(py, &e))?;
    let written = Written::default();
    let ended = |_: usize, _: &PlanResult, end: Option<&End>| {
        // Of whichever run ends first.
        let mut written = written.lock().unwrap_or_else(|e| e.into_inner());
        if written.is_none() {
            *written = end.map(|end| (end.out.clone(), end.err.clone()));
        }
    };
    let workers = workers(&options.made);
    let came = all(
        &asked,
        &mut runs,
        Length::default(),
        |specs, from, watcher| side_by_side(specs, from, workers, watcher, &ended),
    )?;
    let written = written.into_inner().unwrap_or_else(|e| e.into_inner());
    let (out, err) = written.unwrap_or_default();
    let machine = &request.machine.name;
    let about = About {
        out,
        err,
        ..About::new("plan", request.program.name(), machine, request.seed)
    };
    shown(py, &runs, &came, about)
}
