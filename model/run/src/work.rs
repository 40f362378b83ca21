//! Workloads of runs.

use crate::{Error, InStep, Replayed, RunSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use varve_access::Program;
use varve_workloads::registry;

/// A program for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A workload by name and parameters, such as `gups:bytes=96GiB`.
    Workload(String),
    /// A recorded trace.
    Trace(PathBuf),
    /// A command that is traced while it runs; only its words.
    Command(Vec<String>),
}

impl Work {
    /// Reads `NAME:key=value,...` or the path of a trace (a text that names a file, or ends in `.trace`).
    ///
    /// # Errors
    /// A workload that is unknown or has a wrong parameter.
    pub fn parse(text: &str) -> Result<Work, Error> {
        if text.ends_with(".trace") || std::path::Path::new(text).is_file() {
            return Ok(Work::Trace(text.into()));
        }
        registry::parse(text)?;
        Ok(Work::Workload(text.into()))
    }

    /// A short name.
    pub fn name(&self) -> String {
        match self {
            Work::Workload(text) => text.clone(),
            Work::Trace(path) => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            Work::Command(words) => words.join(" "),
        }
    }

    /// The program, ready to run at the scale and with the seed of `spec`.
    pub(crate) fn program(
        &self,
        spec: &RunSpec,
        in_step: &InStep,
    ) -> Result<Box<dyn Program>, Error> {
        match self {
            Work::Workload(text) => {
                let mut text = text.clone();
                // The user's own parameters win; scale and seed are set only where they are missing.
                for (key, value) in [("scale", spec.scale as u64), ("seed", spec.seed)] {
                    if !varve_spec::gives(&text, key) {
                        text = varve_spec::with(&text, key, value);
                    }
                }
                Ok(registry::build(&text)?)
            }
            Work::Trace(path) => {
                let code = spec.pictures;
                Ok(Box::new(in_step.program(Replayed { path, code })?))
            }
            Work::Command(words) => {
                let why = format!("`{}` must be started by its recorder", words.join(" "));
                Err(Error::Run(varve_machine::model::RunError::Program(why)))
            }
        }
    }
}
