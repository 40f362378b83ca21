//! Options as Python gives them, by keyword. They become words, which the structures of `varve_run::request::options` read as they
//! read those of the command line: a new option there is one here.

mod kind;
mod said;
mod words;

pub use kind::{Kind, listed};

use crate::errors::wrong;
use clap::{Args, FromArgMatches};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How runs are made, whatever they are.
#[derive(Args, Clone, Copy, Debug)]
pub struct Made {
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Runs at a time; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
}

/// The given options: names and values, of which none is `None`.
pub struct Given<'py>(Vec<(String, Bound<'py, PyAny>)>);

impl<'py> Given<'py> {
    /// Reads a dictionary.
    pub fn of(options: &Bound<'py, PyDict>) -> PyResult<Given<'py>> {
        let given = options.iter().filter(|(_, value)| !value.is_none());
        let given = given.map(|(key, value)| Ok((key.extract()?, value)));
        given.collect::<PyResult<_>>().map(Given)
    }

    /// Whether an option was given.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(given, _)| given == key)
    }

    /// Takes one out, for which no word stands.
    pub fn take(&mut self, key: &str) -> Option<Bound<'py, PyAny>> {
        let at = self.0.iter().position(|(given, _)| given == key)?;
        Some(self.0.swap_remove(at).1)
    }

    /// The names.
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// The options of a kind of run, which takes all that was given: see [`Kind::check`].
    pub fn read<T: Args + FromArgMatches>(&self, py: Python<'py>) -> PyResult<T> {
        let command = T::augment_args(kind::bare());
        let mut words = Vec::new();
        for (key, value) in &self.0 {
            if let Some(arg) = kind::named(&command, key) {
                words.extend(words::of(arg, key, value)?);
            }
        }
        let read = command.try_get_matches_from(words);
        let read = read.and_then(|matches| T::from_arg_matches(&matches));
        read.map_err(|e| wrong(py, said::line(&e)))
    }
}
