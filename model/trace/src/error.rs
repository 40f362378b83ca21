//! Errors of traces, each in one line with place and remedy.

use std::path::PathBuf;

/// Why a trace cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The disk filled up while recording.
    #[error(
        "{path}: the disk is full after {bytes} bytes of trace ({ops} ops); the recorded part stays readable"
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes in whole blocks that reached the file.
        bytes: u64,
        /// Ops in them.
        ops: u64,
    },
    /// It is something else.
    #[error("{path}: not a varve trace (it does not begin with VARVETRC){hint}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Guess at the file's format, and the remedy.
        hint: &'static str,
    },
    /// Written by another version.
    #[error(
        "{path}: trace format version {found}, this varve reads version {known}; record it again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        found: u32,
        /// Version that this code reads.
        known: u32,
    },
    /// It is cut off before anything in it can be replayed.
    #[error(
        "{path}: cut off at byte {offset}, before its first block of accesses is whole ({why}); record it again"
    )]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that is part of nothing whole.
        offset: u64,
        /// Why it is none.
        why: String,
    },
    /// A sample of a run that was over before its first window.
    #[error(
        "{path}: no window of the sample fell into the run, which was {skipped} instructions; sample more of it, such as 20%, or record it whole"
    )]
    NoWindow {
        /// The file.
        path: PathBuf,
        /// Instructions of the run.
        skipped: u64,
    },
    /// A sample without its end.
    #[error(
        "{path}: a sample that was cut off: how much of the run its windows stand for is said at its end; record it again"
    )]
    CutSample {
        /// The file.
        path: PathBuf,
    },
    /// A block cannot be believed.
    #[error("{path}: damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the block.
        offset: u64,
        /// The problem.
        what: &'static str,
    },
}
