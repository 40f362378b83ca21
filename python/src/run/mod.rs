//! Runs: the same requests as those of `varve run`.
//!
//! | file | job |
//! |---|---|
//! | `pages` | a workload or a trace under page policies; `policies`: some of them in Python |
//! | `native`, `java` | a trace under plans |
//! | `objects` | a WebAssembly program under heap plans |
//! | `making` | what all have: runs are made while Python looks, and what came of them is sorted |

pub mod java;
mod making;
pub mod native;
pub mod objects;
pub mod pages;
mod policies;

use crate::errors::wrong;
use crate::machine::Machine;
use crate::options::{Given, Kind};
use crate::runs::Runs;
use crate::work::{Program, Trace};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use varve_run::jvm::is_recorded_in;
use varve_trace::TraceReader;

/// The request.
pub struct Asked<'a, 'py> {
    pub py: Python<'py>,
    pub work: &'a Bound<'py, PyAny>,
    pub machine: Option<&'a Machine>,
    pub given: Given<'py>,
    pub progress: Option<&'a Bound<'py, PyAny>>,
}

impl Asked<'_, '_> {
    /// The machine; where none is given, the one of that name.
    fn machine_or(&self, default: &str) -> PyResult<varve_machine::Machine> {
        match self.machine {
            Some(machine) => Ok(machine.machine.clone()),
            None => varve_tier::machine(default).map_err(|e| wrong(self.py, e)),
        }
    }
}

/// Runs work as its kind and the options say: a trace under page policies, unless plans are named for it.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    work: &Bound<'_, PyAny>,
    machine: Option<&Machine>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Runs> {
    let given = Given::of(options)?;
    let trace = work.cast::<Trace>().ok().map(|trace| trace.get());
    let kind = match trace {
        _ if work.cast::<Program>().is_ok() => Kind::Objects,
        Some(trace) if given.has("plan") && !given.has("policy") => of_plans(py, trace)?,
        _ => Kind::Pages,
    };
    kind.check(py, &given, trace.is_some() && !given.has("policy"))?;
    let asked = Asked {
        py,
        work,
        machine,
        given,
        progress,
    };
    match kind {
        Kind::Pages => pages::run(asked),
        Kind::Native => native::run(asked),
        Kind::Java => java::run(asked),
        Kind::Objects => objects::run(asked),
    }
}

/// Whose plans a trace runs under.
fn of_plans(py: Python<'_>, trace: &Trace) -> PyResult<Kind> {
    let reader = TraceReader::open(&trace.path).map_err(|e| wrong(py, e))?;
    match is_recorded_in(&reader) {
        true => Ok(Kind::Java),
        false => Ok(Kind::Native),
    }
}
