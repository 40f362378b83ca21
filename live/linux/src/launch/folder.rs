//! The files of a run.

use super::library::Library;
use crate::error::LiveError;
use crate::report::{Ran, read_lines};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use tempfile::TempDir;

/// Of lines that are cut short, behind their number.
pub(crate) const STOPPED: &str = "processes were stopped while they wrote their report";

/// A folder that goes with the run, and all files in it.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Where temporary files are.
    pub fn new() -> Result<Folder, LiveError> {
        Folder::below(&std::env::temp_dir())
    }

    /// In another folder.
    pub fn below(folder: &Path) -> Result<Folder, LiveError> {
        let made = tempfile::Builder::new().prefix("varve-").tempdir_in(folder);
        made.map(Folder)
            .map_err(LiveError::file("cannot make a directory in", folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where a file of this name is, or will be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, and gives its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, LiveError> {
        let path = self.file(name);
        let written = std::fs::write(&path, bytes);
        written.map_err(LiveError::file("cannot write", &path))?;
        Ok(path)
    }

    /// Writes a library, and gives its path.
    pub fn library(&self, library: &Library) -> Result<PathBuf, LiveError> {
        self.write(library.name, library.bytes)
    }

    /// The file into which each process writes a line when it ends.
    pub fn report(&self) -> PathBuf {
        self.file("report")
    }

    /// The content of that file.
    pub fn reported(&self) -> String {
        std::fs::read_to_string(self.report()).unwrap_or_default()
    }

    /// The result of the run. `torn` follows the number of lines that are cut short, if there are any.
    pub fn ran<P: DeserializeOwned>(&self, status: ExitStatus, seconds: f64, torn: &str) -> Ran<P> {
        let (processes, bad) = read_lines(&self.reported());
        Ran {
            status,
            seconds,
            processes,
            notes: (bad > 0)
                .then(|| format!("{bad} {torn}"))
                .into_iter()
                .collect(),
        }
    }
}
