//! Runs: the same requests as those of `varve run`.

use crate::errors::{of_run, wrong};
use crate::machine::Machine;
use crate::policy::{Raised, Scripted};
use crate::runs::{About, Refused, Runs};
use crate::watch::{Watcher, warn, watched};
use crate::work::{Program, Trace, Workload};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use varve_machine::Bytes;
use varve_machine::model::Progress;
use varve_pages::Frames as RealFrames;
use varve_run::request::{EngineRequest, Fast, ObjectsRequest, PagesRequest};
use varve_run::{
    End, Error, GoOn, Keep, RunResult, RunSpec, Work, check_policies, compare, run, run_with,
    side_by_side,
};
use varve_runtime::{Engine, Module};
use varve_sites::{Profile, SitesFile};

/// Options as Python gave them, taken out one by one.
struct Options<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Options<'_, 'py> {
    fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, key: &str) -> PyResult<Option<T>> {
        let Some(value) = self.0.get_item(key)? else {
            return Ok(None);
        };
        match value.is_none() {
            true => Ok(None),
            false => value.extract::<T>().map(Some).map_err(|e| {
                let e: PyErr = e.into();
                let said = e.value(value.py()).to_string();
                wrong(value.py(), format!("{key}={value}: {said}"))
            }),
        }
    }

    /// A text or a number that is read as the command line reads it.
    fn read<T: FromStr<Err: std::fmt::Display>>(&self, key: &str) -> PyResult<Option<T>> {
        let Some(value) = self.0.get_item(key)?.filter(|v| !v.is_none()) else {
            return Ok(None);
        };
        let text = value.str()?.to_string();
        let read = text.parse().map(Some);
        read.map_err(|e| wrong(value.py(), format!("{key}={text}: {e}")))
    }
}

/// Host threads: what was asked for, or one per core.
fn workers(jobs: usize) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    }
}

/// One policy of several: a name, or an object of Python.
enum Chosen {
    Named(String),
    Scripted(Py<PyAny>),
}

/// Runs a workload or a trace under page policies.
#[pyfunction]
pub fn pages(
    py: Python<'_>,
    work: &Bound<'_, PyAny>,
    machine: &Machine,
    policies: Vec<Bound<'_, PyAny>>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Runs> {
    let o = Options(options);
    let mut known = None;
    let work = if let Ok(workload) = work.cast::<Workload>() {
        Work::parse(&workload.get().spec).map_err(|e| wrong(py, e))?
    } else {
        let trace = work.cast::<Trace>()?.get();
        known = Some(trace.footprint(py)?);
        Work::Trace(trace.path.clone())
    };
    let mut request = PagesRequest {
        scale: o.get("scale")?,
        page_bytes: o.read::<Bytes>("page")?.map(|Bytes(b)| b),
        seed: o.get("seed")?.unwrap_or(1),
        cores: o.get("cores")?.unwrap_or(0),
        until_s: o.get("until")?,
        footprint: known,
        ..PagesRequest::new(machine.machine.clone(), work)
    };
    if request.until_s.is_some_and(|s| s.is_nan() || s <= 0.0) {
        return Err(wrong(py, "until: a run takes more than 0 s"));
    }
    let chosen: Vec<Chosen> = policies
        .iter()
        .map(|p| match p.extract::<String>() {
            Ok(name) => Chosen::Named(name),
            Err(_) => Chosen::Scripted(p.clone().unbind()),
        })
        .collect();
    let (base, accesses) = request.base().map_err(|e| of_run(py, &e))?;
    let title = format!("{} on {}", base.work.name(), base.machine.name);
    let mut specs: Vec<(RunSpec, Option<Py<PyAny>>)> = Vec::new();
    for one in chosen {
        match one {
            Chosen::Named(list) => {
                check_policies(&list, &request.machine).map_err(|e| of_run(py, &e))?;
                request.policies = list;
                let of = request.specs(&base).map_err(|e| of_run(py, &e))?;
                specs.extend(of.into_iter().map(|spec| (spec, None)));
            }
            Chosen::Scripted(object) => {
                let policy = object.bind(py).getattr("name")?.extract()?;
                let spec = RunSpec {
                    policy,
                    ..base.clone()
                };
                specs.push((spec, Some(object)));
            }
        }
    }
    let watcher = Watcher::new(specs.len(), accesses, base.until_ns);
    let raised: Raised = Arc::new(Mutex::new(None));
    let workers = workers(o.get("jobs")?.unwrap_or(0));
    let note = |i: usize, p: Option<&Progress>| {
        let well = raised.lock().unwrap_or_else(|e| e.into_inner()).is_none();
        watcher.note(i, p) && well
    };
    let results = watched(py, &watcher, progress, || {
        side_by_side(specs.len(), workers, &note, |i, go_on| {
            let (spec, object) = &specs[i];
            match object {
                None => run(spec, go_on),
                Some(object) => scripted(spec, object, &raised, go_on),
            }
        })
    })?;
    if let Some(e) = raised.lock().unwrap_or_else(|e| e.into_inner()).take() {
        return Err(e);
    }
    let names = specs.iter().map(|(spec, _)| spec.policy.clone());
    let (results, refused) = ended(py, names, results)?;
    for r in &results {
        if let Some(warning) = &r.warning {
            warn(py, warning)?;
        }
    }
    let about = About {
        rows_are: "policy",
        title,
        machine: base.machine.name.clone(),
        seed: base.seed,
        refused,
        out: Vec::new(),
        err: Vec::new(),
    };
    Runs::of(py, about, &results)
}

/// A run under a policy that is written in Python.
fn scripted(
    spec: &RunSpec,
    object: &Py<PyAny>,
    raised: &Raised,
    go_on: GoOn,
) -> Result<RunResult, Error> {
    let mut make = |topology: &varve_pages::Topology| {
        let frames = RealFrames::in_order(topology);
        let made = Python::attach(|py| Scripted::new(py, object, topology, spec.scale, raised));
        let policy: Box<dyn varve_pages::Policy> = match made {
            Ok(policy) => Box::new(policy),
            Err(e) => {
                let mut raised = raised.lock().unwrap_or_else(|e| e.into_inner());
                raised.get_or_insert(e);
                Box::new(Nothing)
            }
        };
        (frames, policy)
    };
    // Python knows this thread for the whole run: each call would otherwise make it known, and forget it again.
    Python::attach(|py| py.detach(|| run_with(spec, &mut make, go_on)))
}

/// Stands for a policy that Python could not make: it places nothing, and what Python raised is told instead.
struct Nothing;

impl varve_pages::Policy for Nothing {
    fn place(&mut self, _: &mut RealFrames, _: &varve_machine::Fault) -> Option<u32> {
        None
    }
}

/// What came out; what did not run is told, if anything did, and raised otherwise.
fn ended<R>(
    py: Python<'_>,
    names: impl Iterator<Item = String>,
    results: Vec<Result<R, Error>>,
) -> PyResult<(Vec<R>, Vec<Refused>)> {
    let (mut done, mut refused, mut first) = (Vec::new(), Vec::new(), None);
    for (name, result) in names.zip(results) {
        match result {
            Ok(result) => done.push(result),
            Err(e) => {
                refused.push((name, e.to_string()));
                first.get_or_insert(e);
            }
        }
    }
    if let Some(e) = first.filter(|_| done.is_empty()) {
        return Err(of_run(py, &e));
    }
    for (name, why) in &refused {
        warn(py, &format!("{name} did not run: {why}"))?;
    }
    Ok((done, refused))
}

/// Runs a WebAssembly program under heap plans.
#[pyfunction]
pub fn objects(
    py: Python<'_>,
    program: &Program,
    machine: &Machine,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Runs> {
    let o = Options(options);
    let engine = EngineRequest {
        heap_max: o.read("heap_max")?,
        nursery: o.read("nursery")?,
        nursery_max: o.read("nursery_max")?,
        tier: o.read("tier")?,
    };
    let mut config = engine.config().map_err(|e| of_run(py, &e))?;
    if let Some(path) = o.get::<PathBuf>("profile")? {
        config.profile = Some(Arc::new(profile(py, &path, program)?));
    }
    let mut request = ObjectsRequest {
        config,
        heap_max: engine.heap_max,
        plans: o.get("plan")?,
        fast: o.read::<Fast>("fast")?,
        page_bytes: o.read::<Bytes>("page")?.map(|Bytes(b)| b),
        instances: o.get("instances")?.unwrap_or(1),
        every: o.get("co_run")?.unwrap_or(false),
        numa: o.read("numa")?.unwrap_or_default(),
        trays: o.get("trays")?,
        seed: o.get("seed")?.unwrap_or(1),
        ..ObjectsRequest::new(machine.machine.clone(), program.program.clone())
    };
    request.check().map_err(|e| of_run(py, &e))?;
    if request.wants_profile() {
        let profiled = py.detach(|| request.profile());
        profiled.map_err(|e| wrong(py, format!("{}: {e}", request.program.file)))?;
    }
    let mut asked = request.runs().map_err(|e| of_run(py, &e))?;
    let names = asked.names.clone();
    let watcher = Watcher::new(names.len(), None, None);
    let workers = workers(o.get("jobs")?.unwrap_or(0));
    let written: Mutex<Option<(Vec<u8>, Vec<u8>)>> = Mutex::new(None);
    let results = watched(py, &watcher, progress, || {
        asked.make(|specs, from| {
            let note = |i: usize, p: Option<&Progress>| watcher.note(from + i, p);
            compare(specs, workers, &Keep::nothing(), &note, &|_, _, end| {
                if let Some(end) = end {
                    wrote(&written, end);
                }
            })
        })
    })?;
    let (results, refused) = ended(py, names.into_iter(), results)?;
    let (out, err) = written
        .into_inner()
        .unwrap_or_else(|e| e.into_inner())
        .unwrap_or_default();
    let about = About {
        rows_are: "plan",
        title: format!("{} on {}", request.program.name(), request.machine.name),
        machine: request.machine.name.clone(),
        seed: request.seed,
        refused,
        out,
        err,
    };
    Runs::of(py, about, &results)
}

/// The program's own output once: of whichever run ends first.
fn wrote(written: &Mutex<Option<(Vec<u8>, Vec<u8>)>>, end: &End) {
    let mut written = written.lock().unwrap_or_else(|e| e.into_inner());
    written.get_or_insert_with(|| (end.out.clone(), end.err.clone()));
}

/// A profile of the program that is to be run.
fn profile(py: Python<'_>, path: &std::path::Path, program: &Program) -> PyResult<Profile> {
    let p = &program.program;
    let profile = Profile::read(path).map_err(|e| wrong(py, e))?;
    let module = Module::new(&Engine::default(), &p.bytes);
    let module = module.map_err(|e| wrong(py, format!("{}: {e}", p.file)))?;
    let fits = module.check_profile(&profile, &path.display().to_string(), p.name());
    fits.map_err(|e| wrong(py, e))?;
    Ok(profile)
}
