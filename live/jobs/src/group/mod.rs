//! Groups of programs that share a machine, and the TOML that they are written in.
//!
//! ```text
//! read.rs     text -> Group, every problem with its line and remedy
//! keys.rs     a table of the file, key by key
//! inside.rs   how a program's own memory is placed
//! check.rs    what must hold between keys: names, orders, threads
//! ```

mod check;
mod inside;
mod keys;
mod read;

use crate::inside::Inside;
use crate::kinds::{Class, Memory};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use varve_machine::Problem;

pub use read::{load, parse};

/// A program's form on a modelled machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modelled {
    /// A workload, `NAME:key=value,...`.
    Workload(String),
    /// A recorded trace.
    Trace(PathBuf),
    /// A WebAssembly program and its arguments, observed while it runs.
    Managed(PathBuf, Vec<String>),
}

impl Modelled {
    /// The file that it is in, if it is in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Modelled::Workload(_) => None,
            Modelled::Trace(file) | Modelled::Managed(file, _) => Some(file),
        }
    }

    /// Does it run as it is, with the memory and the threads that it has, whatever the scale and the plan?
    pub fn is_fixed(&self) -> bool {
        !matches!(self, Modelled::Workload(_))
    }

    /// A text that is another one for another program.
    pub fn identity(&self) -> String {
        let content = self.file().and_then(varve_run::digest);
        format!("{self:?} {content:?}")
    }
}

/// A program's form on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Live {
    /// A command and its arguments.
    Command(Vec<String>),
    /// A WebAssembly program and its arguments.
    Managed(PathBuf, Vec<String>),
}

/// The fate of the other programs when one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// They go on.
    #[default]
    GoOn,
    /// They are ended.
    Stop,
}

/// One program of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its name in the group.
    pub name: String,
    /// Its form on a model; one of `modelled` and `live` is given.
    pub modelled: Option<Modelled>,
    /// Its form on this machine; if this is missing, a workload runs there, too.
    pub live: Option<Live>,
    /// Threads if no strategy chooses them.
    pub threads: u32,
    /// The memory that a user insists on.
    pub memory: Option<Memory>,
    /// How its own memory is placed where it has fast memory in part.
    pub inside: Option<Inside>,
    /// Bytes that it uses, where a user says so.
    pub bytes: Option<u64>,
    /// Its class, where a user says so.
    pub class: Option<Class>,
    /// Whether it writes much, where a user says so.
    pub write_intensive: Option<bool>,
    /// Programs that must have ended before it starts.
    pub after: Vec<usize>,
    /// Most time that it may take, s.
    pub time_limit_s: Option<f64>,
    /// Variables of its environment; `{threads}`, `{memory}`, `{nodes}` and `{cpus}` are filled in.
    pub env: Vec<(String, String)>,
    /// Line of the file that it begins in.
    pub line: usize,
}

impl Program {
    /// Is there nothing to run on a real machine? A workload can be carried out there, a trace cannot.
    pub fn is_modelled_only(&self) -> bool {
        self.live.is_none() && !matches!(self.modelled, Some(Modelled::Workload(_)))
    }

    /// The command of a real machine, for messages.
    pub fn shown(&self) -> String {
        match &self.live {
            Some(Live::Command(words)) => words.join(" "),
            Some(Live::Managed(file, words)) => format!("{} {}", file.display(), words.join(" ")),
            None => self.name.clone(),
        }
    }

    /// The key of the file that says what it is, for messages.
    pub fn key(&self) -> &'static str {
        match (&self.modelled, &self.live) {
            (Some(Modelled::Workload(_)), _) => "workload",
            (Some(Modelled::Trace(_)), _) => "trace",
            (Some(Modelled::Managed(..)), _) | (None, Some(Live::Managed(..))) => "managed",
            (None, _) => "command",
        }
    }
}

/// Published measurements of the same group, to compare with ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The source.
    pub source: String,
    /// Percent of the baseline's time that a strategy saved.
    pub saved: Vec<(String, f64)>,
}

/// Programs that are given to a machine together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// A description, in a line.
    pub about: String,
    /// Fast memory that it may use, bytes; all that the machine has if missing.
    pub fast: Option<u64>,
    /// Slow memory that it may use, bytes; likewise.
    pub slow: Option<u64>,
    /// Cores that it may use; all of a socket if missing.
    pub cores: Option<u32>,
    /// Programs that run at once in each memory; 0: no limit.
    pub at_once: u32,
    /// The reaction to a failed program.
    pub on_failure: OnFailure,
    /// The programs, in the order in which they were given to the machine.
    pub programs: Vec<Program>,
    /// Published measurements.
    pub published: Published,
    /// The file, for messages.
    pub file: String,
}

impl Group {
    /// A problem of one of its programs.
    pub fn problem(&self, program: usize, key: &str, what: String, remedy: &str) -> Problem {
        let (line, name) = self
            .programs
            .get(program)
            .map_or((1, ""), |p| (p.line, p.name.as_str()));
        Problem {
            file: self.file.clone(),
            line,
            key: match name {
                "" => key.into(),
                name => format!("program `{name}`, {key}"),
            },
            what,
            remedy: remedy.into(),
        }
    }
}
