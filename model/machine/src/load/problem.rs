//! Problems that a machine file can have, each with its place and remedy.

use std::fmt;
use std::path::PathBuf;

/// One problem of a machine, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File, or the machine's name when it did not come from one.
    pub file: String,
    /// Line, from 1; 0 when the machine did not come from a file.
    pub line: usize,
    /// Dotted key; empty for a file that is not TOML.
    pub key: String,
    /// The problem.
    pub what: String,
    /// Its remedy.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if self.line > 0 {
            write!(f, "{}:", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, " {}:", self.key)?;
        }
        write!(f, " {}; {}", self.what, self.remedy)
    }
}

/// A machine that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No built-in machine and no file has this name.
    #[error("no machine is called `{name}`; known are {}{}", known.join(", "), meant.as_ref().map(|m| format!(" (did you mean `{m}`?)")).unwrap_or_default())]
    Unknown {
        /// Name asked for.
        name: String,
        /// Names that would have worked.
        known: Vec<String>,
        /// The nearest of them.
        meant: Option<String>,
    },
    /// The file could not be read.
    #[error("{}: {cause}; give a readable machine file or the name of a built-in machine", path.display())]
    Read {
        /// File asked for.
        path: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// The file was read and is wrong; all problems are listed, one a line.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Problem>),
}

impl LoadError {
    /// The problems of an invalid file; empty for the other errors.
    pub fn problems(&self) -> &[Problem] {
        match self {
            LoadError::Invalid(problems) => problems,
            _ => &[],
        }
    }
}
