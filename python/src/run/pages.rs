//! A workload or a trace under page policies.

use super::Asked;
use super::making::{Length, all, shown, workers};
use super::policies::PolicyRuns;
use crate::errors::{of_run, wrong};
use crate::options::Made;
use crate::runs::{About, Runs};
use crate::work::{Trace, Workload};
use clap::Args;
use pyo3::prelude::*;
use varve_run::Work;
use varve_run::request::options::{PageSize, Pages};
use varve_run::request::{DEFAULT_MACHINE, PagesRequest};
use varve_spec::Bytes;

/// The options of such runs.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    pages: Pages,
    #[command(flatten)]
    page: PageSize,
}

/// Runs them. The policies are a list of names and of objects.
pub fn run(mut asked: Asked<'_, '_>) -> PyResult<Runs> {
    let py = asked.py;
    let policies = asked.given.take("policy");
    let options: Options = asked.given.read(py)?;
    let mut known = None;
    let work = if let Ok(workload) = asked.work.cast::<Workload>() {
        Work::parse(&workload.get().spec).map_err(|e| wrong(py, e))?
    } else {
        let trace = asked.work.cast::<Trace>()?.get();
        known = Some(trace.footprint(py)?);
        Work::Trace(trace.path.clone())
    };
    let request = PagesRequest {
        options: options.pages,
        page_bytes: options.page.page.map(|Bytes(b)| b),
        seed: options.made.seed,
        footprint: known,
        ..PagesRequest::new(asked.machine_or(DEFAULT_MACHINE)?, work)
    };
    let (base, accesses) = request.base().map_err(|e| of_run(py, &e))?;
    let policies: Option<Vec<Bound<'_, PyAny>>> = policies.map(|p| p.extract()).transpose()?;
    let mut runs = PolicyRuns::new(py, request, &base, policies)?;
    let length = Length {
        accesses,
        until_ns: base.until_ns(),
    };
    let workers = workers(&options.made);
    let maker = runs.maker(workers);
    let came = all(&asked, &mut runs, length, |specs, from, watcher| {
        maker.make(specs, from, watcher)
    })?;
    if let Some(e) = maker.raised() {
        return Err(e);
    }
    let about = About::new("policy", &base.work.name(), &base.machine.name, base.seed);
    shown(py, &runs, &came, about)
}
