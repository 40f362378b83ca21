//! Why a group cannot be profiled, planned or run; each in one line with its remedy.

use std::path::PathBuf;
use varve_machine::Problem;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {error}; give a group's TOML file, such as examples/group1.toml", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The group is wrong; all problems, one a line.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Group(Vec<Problem>),
    /// A machine whose memory is all alike.
    #[error(
        "machine `{0}` has no slow memory beside its DRAM, so programs cannot be placed: take another one, such as optane-6230n"
    )]
    OneMemory(String),
    /// Memory of a machine that the nodes are not known of.
    #[error(
        "the fast and slow nodes of `{0}`, where the file runs, are not known: name them with --nodes fast=0,slow=1"
    )]
    NoNodes(String),
    /// The modelled form of a program cannot be run.
    #[error(transparent)]
    Run(#[from] varve_run::Error),
    /// Something on this machine.
    #[error("{0}")]
    Live(String),
}

impl Error {
    /// Did a user end it?
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Error::Run(e) if e.is_interrupt())
    }
}

impl varve_run::Failed for Error {
    fn is_interrupt(&self) -> bool {
        Error::is_interrupt(self)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Error {
        Error::Group(vec![problem])
    }
}

impl From<varve_machine::model::RunError> for Error {
    fn from(error: varve_machine::model::RunError) -> Error {
        Error::Run(error.into())
    }
}
