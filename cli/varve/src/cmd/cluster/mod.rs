//! Points of a sweep or a study that a scheduler runs.

pub mod status;
pub mod submit;

use crate::sweep::slurm::Silent;
use crate::sweep::standing::Known;
use crate::ui::{Failure, failed};
use std::collections::BTreeMap;
use std::path::Path;
use varve_run::Keep;

/// Failed points that are named.
pub const NAMED: usize = 10;

/// Points with results in a folder that all nodes see.
pub trait ClusterWork {
    /// The name of its jobs.
    fn name(&self) -> &str;

    /// Where its submissions are.
    fn out(&self) -> &Path;

    /// The store of its results.
    fn keep(&self) -> &Keep;

    /// All points that are known now.
    fn points(&self) -> Result<Vec<Point>, Failure>;

    /// Files that the points are made of, with their digests; asked after the points.
    fn files(&self) -> BTreeMap<String, String>;

    /// The command that makes a share of a submission, with whole paths, and as a shell understands it.
    fn command(&self) -> Result<String, Failure>;
}

/// A point as it stands, and as people know it.
pub struct Point {
    pub known: Known,
    /// Its description.
    pub shown: String,
    /// The command that makes it alone, if there is one.
    pub command: Option<String>,
}

/// Points, apart from what people know of them.
fn split(points: Vec<Point>) -> (Vec<Known>, Vec<(String, Option<String>)>) {
    let split = points.into_iter().map(|p| (p.known, (p.shown, p.command)));
    split.unzip()
}

/// Slurm does not answer.
pub fn no_slurm(silent: Silent) -> Failure {
    match silent {
        Silent::Absent(program) => failed(format!(
            "no scheduler was found: `{program}` is not installed here; run this on a host with Slurm's commands, or print a script with --emit"
        )),
        Silent::Said(line) => failed(line),
    }
}
