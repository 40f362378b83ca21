//! The part of the Python package that is Rust: it hands what Python asks for to `varve-run`, as the command line does, and what
//! comes out back as Arrow columns.
//!
//! ```text
//! machine.rs   machines
//! work.rs      workloads, traces, WebAssembly programs
//! policy.rs    page policies that are written in Python; frames.rs: the frames that they see
//! options/     options by keyword, as words that the command line's structures read
//! run/         runs: which kind, and the request of each
//! watch.rs     Python while a run goes on: signals, progress
//! runs.rs      results; table.rs: as Arrow
//! lists.rs     which policies, plans and workloads there are
//! errors.rs    exceptions
//! ```

mod errors;
mod frames;
mod lists;
mod machine;
mod options;
mod policy;
mod run;
mod runs;
mod table;
mod watch;
mod work;

use pyo3::prelude::*;

/// The module `varve._varve`; users import `varve`.
#[pymodule]
fn _varve(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", varve_run::VERSION)?;
    m.add_class::<machine::Machine>()?;
    m.add_class::<machine::Node>()?;
    m.add_class::<work::Workload>()?;
    m.add_class::<work::Trace>()?;
    m.add_class::<work::Program>()?;
    m.add_class::<frames::Frames>()?;
    m.add_class::<frames::Fault>()?;
    m.add_class::<runs::Runs>()?;
    m.add_class::<table::Table>()?;
    m.add_function(wrap_pyfunction!(machine::machines, m)?)?;
    m.add_function(wrap_pyfunction!(lists::policies, m)?)?;
    m.add_function(wrap_pyfunction!(lists::plans, m)?)?;
    m.add_function(wrap_pyfunction!(lists::workloads, m)?)?;
    m.add_function(wrap_pyfunction!(work::work, m)?)?;
    m.add_function(wrap_pyfunction!(work::record, m)?)?;
    m.add_function(wrap_pyfunction!(options::listed, m)?)?;
    m.add_function(wrap_pyfunction!(run::run, m)?)?;
    Ok(())
}
