//! The files of a run.

use super::library::Library;
use crate::error::LiveError;
use crate::report::{Ran, read_lines};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs::DirEntry;
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
        let mut text = std::fs::read(self.report()).unwrap_or_default();
        for (_, line) in self.rooms() {
            text.extend_from_slice(&line);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Processes that left no line: they were killed, perhaps for a system call that their sandbox forbids, or became programs that cannot.
    fn silent(&self) -> BTreeSet<u32> {
        #[derive(serde::Deserialize)]
        struct Process {
            pid: u32,
        }
        let empty = self.rooms().into_iter().filter(|(_, line)| line.is_empty());
        let mut silent: BTreeSet<u32> = empty.map(|(process, _)| process).collect();
        for process in read_lines::<Process>(&self.reported()).0 {
            silent.remove(&process.pid);
        }
        silent
    }

    /// The room that processes made for their lines (`report.PID.TURN`), and what is in it.
    fn rooms(&self) -> Vec<(u32, Vec<u8>)> {
        let room = |entry: std::io::Result<DirEntry>| {
            let path = entry.ok()?.path();
            let (process, _) = path
                .file_name()?
                .to_str()?
                .strip_prefix("report.")?
                .split_once('.')?;
            let mut line = std::fs::read(&path).ok()?;
            let end = line.iter().position(|byte| *byte == 0);
            line.truncate(end.unwrap_or(line.len()));
            Some((process.parse().ok()?, line))
        };
        let entries = std::fs::read_dir(self.path());
        entries.into_iter().flatten().filter_map(room).collect()
    }

    /// The result of the run. `torn` follows the number of lines that are cut short, if there are any.
    pub fn ran<P: DeserializeOwned>(&self, status: ExitStatus, seconds: f64, torn: &str) -> Ran<P> {
        let (processes, bad) = read_lines(&self.reported());
        let mut notes = Vec::new();
        if bad > 0 {
            notes.push(format!("{bad} {torn}"));
        }
        let silent = self.silent();
        if !silent.is_empty() {
            notes.push(silent_note(&silent));
        }
        Ran {
            status,
            seconds,
            processes,
            notes,
        }
    }
}

/// What is said of processes that left no line.
fn silent_note(silent: &BTreeSet<u32>) -> String {
    const NAMED: usize = 4;
    let mut named: Vec<String> = silent.iter().take(NAMED).map(u32::to_string).collect();
    if silent.len() > NAMED {
        named.push(format!("{} more", silent.len() - NAMED));
    }
    let (processes, they) = match silent.len() {
        1 => (
            "1 process".to_string(),
            "it was killed, perhaps for a system call that its sandbox forbids, or became a program",
        ),
        many => (
            format!("{many} processes"),
            "they were killed, perhaps for a system call that their sandbox forbids, or became programs",
        ),
    };
    format!(
        "{processes} left no report ({}): {they} that cannot load the library",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_where_processes_could_leave_them_and_the_silent_are_named() {
        let folder = Folder::new().unwrap();
        folder.write("report", b"{\"pid\":7}\n").unwrap();
        let mut late = b"{\"pid\":8}\n".to_vec();
        late.resize(4096, 0);
        folder.write("report.8.0", &late).unwrap();
        // What process 7 was before it became another program, and one that was killed.
        folder.write("report.7.0", &[0; 16]).unwrap();
        folder.write("report.9.0", &[0; 16]).unwrap();
        assert_eq!(folder.reported(), "{\"pid\":7}\n{\"pid\":8}\n");
        assert_eq!(folder.silent(), BTreeSet::from([9]));
        assert!(
            silent_note(&folder.silent())
                .starts_with("1 process left no report (9): it was killed")
        );
        let many = silent_note(&(1..=6).collect());
        assert!(
            many.starts_with("6 processes left no report (1, 2, 3, 4, 2 more): they"),
            "{many}"
        );
    }
}
