//! Where a result comes from, and a comparison of runs that carries it.

use crate::pictures::CompanionFile;
use crate::study::pretty;
use crate::{Chart, Error, RunTable, file};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything needed to make a result again. Every file and page carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The machine it ran on or modelled.
    pub machine: String,
    /// The seed of every random choice; 0 if there was none.
    pub seed: u64,
    /// The version of Varve.
    pub version: String,
    /// The command that makes the result again.
    #[serde(default)]
    pub command: String,
}

/// A comparison of runs with its origin and its charts: the file that `varve run` keeps.
///
/// ```
/// use varve_report::{Origin, RunReport, RunTable};
/// let origin = Origin { machine: "cxl-spr".into(), seed: 1, ..Origin::default() };
/// let report = RunReport { origin, table: RunTable::new("sort", "policy"), ..RunReport::default() };
/// let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
/// assert_eq!(json["machine"], "cxl-spr");
/// assert_eq!(json["table"]["rows_are"], "policy");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Where it comes from; in JSON its keys stand beside `table`.
    #[serde(flatten)]
    pub origin: Origin,
    /// One row per run.
    pub table: RunTable,
    /// More about the same runs, or parts of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<RunTable>,
    /// Charts of the same runs, such as throughput over time.
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// Pictures in files of their own, which stand in the same folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<CompanionFile>,
    /// All measurements of each run, in the order of the table's rows: objects of one shape.
    #[serde(default)]
    pub runs: Vec<serde_json::Value>,
}

impl RunReport {
    /// The whole comparison as JSON: `{machine, seed, version, command, table, charts, runs}`.
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// Write the comparison to a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        file::write_atomically(path, self.to_json().as_bytes())
    }

    /// Read a comparison that [`RunReport::write`] wrote.
    pub fn read(path: &Path) -> Result<RunReport, Error> {
        file::read_json(path)
    }
}
