//! The kinds of runs, and which options each takes. What is given and is not among them is refused.

use super::Given;
use crate::errors::wrong;
use crate::run::{java, native, objects, pages};
use clap::{Arg, Args, Command};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use varve_spec::nearest;

/// A kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A workload or a trace under page policies.
    Pages,
    /// The trace of a native program under plans.
    Native,
    /// The trace of a Java virtual machine under plans.
    Java,
    /// A WebAssembly program under heap plans.
    Objects,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Pages, Kind::Native, Kind::Java, Kind::Objects];

    /// The subject of such runs, in a few words.
    pub fn whose(self) -> &'static str {
        match self {
            Kind::Pages => "a workload or a trace under page policies",
            Kind::Native => "the trace of a native program under plans",
            Kind::Java => "the trace of a Java program under plans",
            Kind::Objects => "a WebAssembly program",
        }
    }

    /// A command with the options of such runs.
    fn command(self) -> Command {
        match self {
            Kind::Pages => pages::Options::augment_args(bare()),
            Kind::Native => native::Options::augment_args(bare()),
            Kind::Java => java::Options::augment_args(bare()),
            Kind::Objects => objects::Options::augment_args(bare()),
        }
    }

    fn takes(self, key: &str) -> bool {
        named(&self.command(), key).is_some()
    }

    /// Checks that such runs take all given options. `plannable` is work that runs under heap plans if some are named.
    pub fn check(self, py: Python<'_>, given: &Given<'_>, plannable: bool) -> PyResult<()> {
        match given.keys().find(|key| !self.takes(key)) {
            Some(key) => Err(self.refusal(py, key, plannable)),
            None => Ok(()),
        }
    }

    /// An option that others take, if any do.
    fn refusal(self, py: Python<'_>, key: &str, plannable: bool) -> PyErr {
        let takes = |kind: &Kind| kind.takes(key);
        let others: Vec<Kind> = Kind::ALL.into_iter().filter(takes).collect();
        let whose: Vec<&str> = others.iter().map(|kind| kind.whose()).collect();
        let whose = match &whose[..] {
            [] => return unknown(key),
            [whose] => whose.to_string(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let remedy = match plannable && others.contains(&Kind::Native) {
            true => "leave it out, or name plans, such as plan=\"all\"",
            false => "leave it out",
        };
        let this = self.whose();
        wrong(
            py,
            format!("`{key}` is not for {this}, but for {whose}: {remedy}"),
        )
    }
}

/// A command without options of its own, whose words are options from the first on.
pub fn bare() -> Command {
    let command = Command::new("run").no_binary_name(true);
    command.disable_help_flag(true).disable_version_flag(true)
}

/// The option that Python calls so: by its long name or another one of it, with lines below for dashes.
pub fn named<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    let is = |name: &str| name.replace('-', "_") == key;
    command.get_arguments().find(|arg| {
        let others = arg.get_all_aliases().unwrap_or_default();
        arg.get_long().is_some_and(is) || others.into_iter().any(is)
    })
}

/// The error for an unknown option, as Python words it, with the name that was meant.
fn unknown(key: &str) -> PyErr {
    let all = listed();
    let names = all.iter().map(|(name, _, _)| &**name);
    let meant = nearest(key, names).map(|name| format!(": did you mean `{name}`?"));
    PyTypeError::new_err(format!(
        "run() got an unexpected keyword argument `{key}`{}",
        meant.unwrap_or_default()
    ))
}

/// An option: its name, what it says, and what is run with it.
pub type Listed = (String, String, Vec<&'static str>);

/// All options.
#[pyfunction(name = "options")]
pub fn listed() -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for kind in Kind::ALL {
        for arg in kind.command().get_arguments() {
            let name = arg.get_long().unwrap_or_default().replace('-', "_");
            match all.iter_mut().find(|(known, _, _)| *known == name) {
                Some((_, _, whose)) => whose.push(kind.whose()),
                None => all.push((name, about(arg), vec![kind.whose()])),
            }
        }
    }
    all
}

/// Its help, with the default that it has.
fn about(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let is_flag = !arg.get_action().takes_values();
    match arg.get_default_values() {
        [default] if !is_flag => format!("{help} [default: {}]", default.to_string_lossy()),
        _ => help,
    }
}
