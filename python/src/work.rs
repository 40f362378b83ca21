//! The subjects of runs: workloads, traces, WebAssembly programs.

use crate::errors::{failed, wrong};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use varve_observed::ManagedProgram;
use varve_trace::host::{Recorder, RecorderOptions};
use varve_trace::{Footprint, TraceInfo, TraceReader};

/// A workload, `name` or `name:key=value,...`.
#[pyclass(frozen, module = "varve")]
pub struct Workload {
    pub spec: String,
}

#[pymethods]
impl Workload {
    #[new]
    fn new(py: Python<'_>, spec: String) -> PyResult<Workload> {
        varve_workloads::registry::parse(&spec).map_err(|e| wrong(py, e))?;
        Ok(Workload { spec })
    }

    #[getter]
    fn spec(&self) -> &str {
        &self.spec
    }

    fn __repr__(&self) -> String {
        format!("<varve.Workload {}>", self.spec)
    }
}

/// A recorded program.
#[pyclass(frozen, module = "varve")]
pub struct Trace {
    pub path: PathBuf,
    /// Its content, read once.
    pub info: TraceInfo,
}

impl Trace {
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
        let info = py.detach(|| TraceReader::open(&path).and_then(|r| TraceInfo::read(&r)));
        let info = info.map_err(|e| wrong(py, e))?;
        Ok(Trace { path, info })
    }

    /// How much memory it touches, as a run has to know.
    pub fn footprint(&self, py: Python<'_>) -> PyResult<Footprint> {
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
        let read = || TraceReader::open(&self.path).and_then(|r| Footprint::read(&r, workers));
        py.detach(read).map_err(|e| wrong(py, e))
    }

    /// Accesses of a run, if its recording has ended well.
    pub fn accesses(&self) -> Option<u64> {
        let reader = TraceReader::open(&self.path).ok()?;
        reader.end().map(|end| end.ops - end.touches)
    }

    /// Its name in titles.
    pub fn name(&self) -> String {
        varve_run::Work::Trace(self.path.clone()).name()
    }
}

#[pymethods]
impl Trace {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
        Trace::open(py, path)
    }

    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Accesses and marks in it.
    #[getter]
    fn ops(&self) -> u64 {
        self.info.ops
    }

    #[getter]
    fn instructions(&self) -> u64 {
        self.info.instructions
    }

    #[getter]
    fn reads(&self) -> u64 {
        self.info.reads
    }

    #[getter]
    fn writes(&self) -> u64 {
        self.info.writes
    }

    #[getter]
    fn threads(&self) -> usize {
        self.info.threads.len()
    }

    #[getter]
    fn footprint_bytes(&self) -> u64 {
        self.info.footprint_bytes()
    }

    /// Why it ends early, if it does.
    #[getter]
    fn cut(&self) -> Option<&str> {
        self.info.cut.as_deref()
    }

    fn __repr__(&self) -> String {
        format!(
            "<varve.Trace {}: {} ops>",
            self.path.display(),
            self.info.ops
        )
    }
}

/// A WebAssembly program and what it is given.
#[pyclass(frozen, module = "varve")]
pub struct Program {
    pub program: ManagedProgram,
}

#[pymethods]
impl Program {
    #[new]
    #[pyo3(signature = (path, arguments=Vec::new(), *, input=Vec::new(), invoke=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        arguments: Vec<String>,
        input: Vec<u8>,
        invoke: Option<String>,
    ) -> PyResult<Program> {
        let shown = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|e| {
            let line = format!("{shown}: {e}; name a WebAssembly module");
            wrong(py, line)
        })?;
        let arguments = arguments.into_iter().map(String::into_bytes);
        Ok(Program {
            program: ManagedProgram {
                arguments: arguments.collect(),
                input: input.into(),
                invoke,
                ..ManagedProgram::new(&shown, bytes)
            },
        })
    }

    #[getter]
    fn path(&self) -> &str {
        &self.program.file
    }

    #[getter]
    fn arguments(&self) -> Vec<String> {
        let words = self.program.arguments.iter();
        words
            .map(|w| String::from_utf8_lossy(w).into_owned())
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<varve.Program {}>", self.program.file)
    }
}

/// Whether the file begins as modules in binary form do, or is called like one.
fn is_wasm(path: &Path) -> bool {
    let mut magic = [0; 4];
    let begins = std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut magic));
    let called = path.extension().is_some_and(|e| e == "wasm");
    (begins.is_ok() && magic == *b"\0asm") || called
}

/// Parses a text or path as `varve run` does: a module, a trace, or a workload. Work is returned unchanged.
#[pyfunction]
pub fn work<'py>(py: Python<'py>, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let done = what.cast::<Workload>().is_ok()
        || what.cast::<Trace>().is_ok()
        || what.cast::<Program>().is_ok();
    if done {
        return Ok(what.clone());
    }
    let Ok(path) = what.extract::<PathBuf>() else {
        return Err(PyTypeError::new_err(format!(
            "work is a Workload, a Trace, a Program, or a text such as `varve run` takes, and no {}",
            what.get_type().name()?
        )));
    };
    if is_wasm(&path) {
        let program = Program::new(py, path, Vec::new(), Vec::new(), None)?;
        return Ok(Bound::new(py, program)?.into_any());
    }
    let text = path.to_string_lossy().into_owned();
    let parsed = varve_run::Work::parse(&text).map_err(|e| wrong(py, e))?;
    match parsed {
        varve_run::Work::Trace(path) => Ok(Bound::new(py, Trace::open(py, path)?)?.into_any()),
        _ => Ok(Bound::new(py, Workload { spec: text })?.into_any()),
    }
}

/// Records what a command does into a file, as `varve trace` does.
#[pyfunction]
pub fn record(py: Python<'_>, command: Vec<OsString>, path: PathBuf) -> PyResult<Trace> {
    if command.is_empty() {
        return Err(wrong(py, "the command has no words"));
    }
    let recorded = py.detach(|| {
        let recorder = Recorder::start(&command, RecorderOptions::default());
        let recorder = recorder.map_err(|e| (true, e.to_string()))?;
        let warnings = recorder.warnings();
        let end = recorder.record_to(&path);
        end.map(|_| warnings).map_err(|e| (false, e.to_string()))
    });
    // The command saw Ctrl-C too, and has ended.
    py.check_signals()?;
    let warnings = recorded.map_err(|(input, line)| match input {
        true => wrong(py, line),
        false => failed(py, line),
    })?;
    for line in warnings {
        crate::watch::warn(py, &line, 0)?;
    }
    Trace::open(py, path)
}
