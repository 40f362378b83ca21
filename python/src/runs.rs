//! The results of runs.

use crate::errors::wrong;
use crate::table::{self, Table};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde::Serialize;
use serde_json::Value;
use varve_report::columnar::Records;

/// Results of runs side by side: a table, and each run as it is.
#[pyclass(frozen, module = "varve")]
pub struct Runs {
    about: About,
    names: Vec<String>,
    runs: Vec<Value>,
    table: Table,
    lists: Vec<(String, Py<Table>)>,
}

/// Failed runs, and why.
pub type Refused = (String, String);

/// Data of runs beside their results.
#[derive(Default)]
pub struct About {
    /// The subject of rows: policies or plans.
    pub rows_are: &'static str,
    pub title: String,
    pub machine: String,
    pub seed: u64,
    pub refused: Vec<Refused>,
    /// Notes on these runs.
    pub notes: Vec<String>,
    /// Advice.
    pub advice: Vec<String>,
    /// The program's output.
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl About {
    /// Of runs of a program on a machine.
    pub fn new(rows_are: &'static str, program: &str, machine: &str, seed: u64) -> About {
        About {
            rows_are,
            title: format!("{program} on {machine}"),
            machine: machine.into(),
            seed,
            ..About::default()
        }
    }
}

impl Runs {
    pub fn of<R: Serialize>(py: Python<'_>, about: About, results: &[R]) -> PyResult<Runs> {
        let runs = results.iter().map(serde_json::to_value);
        let runs: Vec<Value> = runs.collect::<Result<_, _>>().map_err(|e| wrong(py, e))?;
        let name = |run: &Value| run[about.rows_are].as_str().unwrap_or_default().to_string();
        let names: Vec<String> = runs.iter().map(name).collect();
        let shown: Vec<&str> = names.iter().map(String::as_str).collect();
        let records = Records::of(&runs, about.rows_are, &shown).map_err(|e| wrong(py, e))?;
        let table = Table::of(&records.runs).map_err(|e| wrong(py, e))?;
        let mut lists = Vec::new();
        for (name, columns) in &records.lists {
            let table = Table::of(columns).map_err(|e| wrong(py, e))?;
            lists.push((name.clone(), Py::new(py, table)?));
        }
        Ok(Runs {
            about,
            names,
            runs,
            table,
            lists,
        })
    }

    fn python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(value).map_err(|e| wrong(py, e))?;
        py.import("json")?.call_method1("loads", (text,))
    }
}

#[pymethods]
impl Runs {
    /// The subject of the runs, in a line.
    #[getter]
    fn title(&self) -> &str {
        &self.about.title
    }

    /// The machine's name.
    #[getter]
    fn machine(&self) -> &str {
        &self.about.machine
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.about.seed
    }

    /// Names of the runs: policies or plans.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Failed runs, and why, in lines.
    #[getter]
    fn refused(&self) -> Vec<Refused> {
        self.about.refused.clone()
    }

    /// Notes on these runs, in lines.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.about.notes.clone()
    }

    /// Advice, a sentence each.
    #[getter]
    fn advice(&self) -> Vec<String> {
        self.about.advice.clone()
    }

    /// The program's standard output, of the run that ended first.
    #[getter]
    fn out<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.about.out)
    }

    /// Its standard error.
    #[getter]
    fn err<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.about.err)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.table.names()
    }

    /// Lists in runs that are tables of their own, such as `timeline`.
    #[getter]
    fn lists(&self) -> Vec<String> {
        self.lists.iter().map(|(name, _)| name.clone()).collect()
    }

    /// One of these lists.
    fn list(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let found = self.lists.iter().find(|(n, _)| n == name);
        let found = found.map(|(_, table)| table.clone_ref(py));
        found.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "there is no list `{name}`: there are {}",
                self.lists().join(", ")
            ))
        })
    }

    /// All runs, as `varve run --json` has them in `runs`.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.runs).map_err(|e| wrong(py, e))
    }

    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// A run by its number or its name, as a dictionary.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = match key.extract::<String>() {
            Ok(name) => {
                let at = self.names.iter().position(|n| *n == name);
                at.ok_or_else(|| {
                    let names = self.names.join(", ");
                    PyKeyError::new_err(format!("there is no run `{name}`: there are {names}"))
                })?
            }
            Err(_) => {
                let n = key.extract::<isize>()?;
                let from_end = n + self.runs.len() as isize;
                let at = usize::try_from(if n < 0 { from_end } else { n });
                let at = at.ok().filter(|&at| at < self.runs.len());
                at.ok_or_else(|| {
                    PyIndexError::new_err(format!("there are {} runs", self.runs.len()))
                })?
            }
        };
        Runs::python(py, &self.runs[at])
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        self.table.stream(py)
    }

    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table::framed(slf.as_any(), "pandas")
    }

    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table::framed(slf.as_any(), "polars")
    }

    fn __repr__(&self) -> String {
        let mut text = format!("<varve.Runs {}\n", self.about.title);
        for (name, run) in self.names.iter().zip(&self.runs) {
            let seconds = run["seconds"].as_f64().unwrap_or(f64::NAN);
            let ns = varve_report::fmt::duration_ns(seconds * 1e9);
            text += &format!("  {:<24} {ns:>10}\n", name);
        }
        for (name, why) in &self.about.refused {
            text += &format!("  {name}: not run: {why}\n");
        }
        text.trim_end().to_string() + ">"
    }

    /// The subject of rows: `policy` or `plan`.
    #[getter]
    fn rows_are(&self) -> &'static str {
        self.about.rows_are
    }
}
