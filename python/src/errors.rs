//! Exceptions. Their classes are in Python (`varve/_errors.py`), since each is a kind of a built-in one too.

use pyo3::prelude::*;
use std::fmt::Display;

/// Wrong input: `varve.InputError`, which is a `ValueError`.
pub fn wrong(py: Python<'_>, line: impl Display) -> PyErr {
    raised(py, "InputError", &line.to_string())
}

/// Work that failed: `varve.RunError`, which is a `RuntimeError`.
pub fn failed(py: Python<'_>, line: impl Display) -> PyErr {
    raised(py, "RunError", &line.to_string())
}

/// The exception of a run: the arguments are wrong, or the work failed.
pub fn of_run(py: Python<'_>, e: &varve_run::Error) -> PyErr {
    use varve_run::Error;
    match e {
        Error::Run(_) | Error::Managed { .. } | Error::Exit { .. } => failed(py, e),
        e => wrong(py, e),
    }
}

fn raised(py: Python<'_>, class: &str, line: &str) -> PyErr {
    let class = py.import("varve._errors").and_then(|m| m.getattr(class));
    match class.and_then(|class| class.call1((line,))) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}
