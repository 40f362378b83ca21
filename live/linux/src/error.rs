//! Errors, each in one line with its remedy.

use crate::nodes::NodeError;
use crate::place::error::PlaceError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a live run, a placement or a reading did not happen.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Frame numbers, memory, or the shared table; see [`PlaceError`].
    #[error("{0}")]
    Place(#[from] PlaceError),
    /// The memory nodes; see [`NodeError`].
    #[error("{0}")]
    Nodes(#[from] NodeError),
    /// A map of sites that cannot be.
    #[error("the site map: {0}")]
    SiteMap(String),
    /// No command was given.
    #[error("no command to run: give one after `--`, such as `-- ./program argument`")]
    NoCommand,
    /// The size of the DRAM cache is not known.
    #[error(
        "the kernel reports no DRAM cache on this machine (/sys/devices/system/node/node*/memory_side_cache): give its size, such as --bins 48GiB; or place objects by allocation site: --sites FILE.sites --fast 8GiB, with a file of `varve profile -o FILE.sites -- COMMAND`"
    )]
    NoCache,
    /// Nodes have DRAM caches of different sizes.
    #[error(
        "the nodes of this machine have different DRAM caches ({0}): bind the program to one node, and give the size of that node's with --bins"
    )]
    SeveralCaches(String),
    /// The command is not a program that can be found.
    #[error("{name}: {}", no_command(.0), name = .0.display())]
    NotFound(PathBuf),
    /// The program cannot load the shim.
    #[error("cannot place the memory of {program}: {why}")]
    NotLoadable {
        /// The program file.
        program: PathBuf,
        /// The problem, and the remedy.
        why: String,
    },
    /// The program could not be started.
    #[error("cannot start {program:?}: {error}")]
    Start {
        /// The program as given.
        program: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file of the run could not be written or read.
    #[error("{what} {path}: {error}")]
    File {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// That a command is not there: a path, or a name that is looked up.
fn no_command(name: &Path) -> &'static str {
    match name.components().count() {
        1 => "no such command on PATH",
        _ => "no such program",
    }
}

impl LiveError {
    /// Makes an error about a file of what the system said.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LiveError {
        let path = path.into();
        move |error| LiveError::File { what, path, error }
    }
}
