//! Errors of recording a program, each in one line with a remedy.

use crate::TraceError;
use std::path::PathBuf;

/// That a command is not there: a path, or a name that is looked up.
fn no_command(name: &str) -> &'static str {
    match name.contains('/') {
        true => "no such program",
        false => "no such command on PATH",
    }
}

/// Why a program cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It was stopped.
    #[error("the recording was stopped")]
    Stopped,
    /// This host has no probe.
    #[error(
        "recording native programs needs a 64-bit x86 Linux host; record there and replay the trace here"
    )]
    Host,
    /// No QEMU.
    #[error(
        "recording an unmodified program needs qemu-x86_64 (Debian, Ubuntu: apt install qemu-user), or compile it with `varve cc`"
    )]
    NoQemu,
    /// The command does not exist.
    #[error("{name}: {}", no_command(.0), name = .0)]
    NotFound(String),
    /// Nothing to run.
    #[error("no command given; write it after `--`")]
    Empty,
    /// The file cannot be read or run.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Not a program for this processor.
    #[error("{path}: {what}")]
    NotRunnable {
        /// The file.
        path: PathBuf,
        /// Kind of the file, and the remedy.
        what: String,
    },
    /// A compiled probe was asked for, but the program has none.
    #[error("{0}: was not compiled with `varve cc`; leave the mode to varve, or compile it so")]
    NotCompiled(PathBuf),
    /// Marks are seen by QEMU alone.
    #[error(
        "{0}: was compiled with `varve cc`, and --marked, --sample, --skip and --for are for programs that were not: compile it without, or leave them out"
    )]
    Marked(PathBuf),
    /// The compiler cannot be used this way.
    #[error("varve cc: {0}")]
    Compiler(String),
    /// The probe said nothing.
    #[error("the program ended before its probe began: {0}")]
    NoProbe(String),
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
