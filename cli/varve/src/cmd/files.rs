//! Files that a user names: what is wrong with them is said before any work is done, with what to do about it.

use crate::ui::{self, Failure, wrong};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use varve_run::Error;
use varve_trace::{Footprint, TraceError, TraceReader};

/// Opens a trace.
pub fn open_trace(path: &Path) -> Result<TraceReader, Failure> {
    exists(
        path,
        "no such trace",
        &format!(
            "record one with `varve trace -o {} -- COMMAND`",
            path.display()
        ),
    )?;
    TraceReader::open(path).map_err(|e| of_trace(&e))
}

/// A trace's error with a remedy where the reader knows none.
pub fn of_trace(e: &TraceError) -> Failure {
    match e {
        // The hint names the file's actual kind, and so the remedy.
        TraceError::Foreign { hint, .. } if hint.contains("first") => wrong(e),
        TraceError::Foreign { .. } => wrong(format!(
            "{e}; record one with `varve trace`, or turn another tool's into one with `varve trace import`"
        )),
        _ => wrong(e),
    }
}

/// The same for a run's errors.
pub fn of_input(e: &Error) -> Failure {
    match e {
        Error::Trace(e) => of_trace(e),
        e => wrong(e),
    }
}

/// Can `path` be read as a file? `missing` says what is not there, `remedy` what to do.
pub fn exists(path: &Path, missing: &str, remedy: &str) -> Result<(), Failure> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => Err(wrong(format!("{shown}: a folder; name a file in it"))),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(wrong(format!("{shown}: {missing}; {remedy}")))
        }
        // Opening it reports other errors.
        _ => Ok(()),
    }
}

/// Can a file be made at `path`? Found out before a program is recorded for nothing.
pub fn can_be_made(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(wrong(format!(
            "{shown}: a folder; name a file in it with --output"
        )));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(wrong(format!(
            "{shown}: there is no folder {}; make it, or choose another --output",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// The footprint of a trace, measured with `jobs` threads (0: one per core).
pub fn footprint(path: &Path, jobs: usize) -> Result<Footprint, Failure> {
    let reader = open_trace(path)?;
    let bar = ui::spinner("reading the trace");
    let footprint = Footprint::read(&reader, ui::workers(jobs));
    bar.finish_and_clear();
    footprint.map_err(|e| of_trace(&e))
}

/// Whether the file begins as modules in binary form do, or is called like one.
pub fn is_wasm(file: &str) -> bool {
    let mut magic = [0; 4];
    let begins = File::open(file).and_then(|mut f| f.read_exact(&mut magic));
    (begins.is_ok() && magic == *b"\0asm") || file.ends_with(".wasm")
}
