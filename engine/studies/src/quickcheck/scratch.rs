//! Files of a measurement: in a folder of their own, which is gone afterwards with all that is in it.

use std::path::PathBuf;
use tempfile::TempDir;
use varve_runtime::{Checks, Config, DurableFile, Medium};

/// The folder.
pub struct Scratch(TempDir);

impl Scratch {
    /// A new one, where files for the moment are.
    pub fn new() -> Result<Scratch, String> {
        let refuse =
            |e| format!("a folder for the moment: {e}: set TMPDIR to a folder that has room");
        tempfile::Builder::new()
            .prefix("varve-study-")
            .tempdir()
            .map(Scratch)
            .map_err(refuse)
    }

    /// Where a file of this name is to be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The settings of a program whose region is there, and empty.
    pub fn config(&self, checks: Checks, count: bool) -> Config {
        let region = self.file("a.region");
        let _ = std::fs::remove_file(&region);
        Config {
            checks: Some(checks),
            count_checks: count,
            durable: Some(DurableFile::new(&region, Medium::Memory)),
            ..Config::default()
        }
    }
}
