//! Names of compiled code for Linux's `perf`: a file with a line for each piece, its address, size and name
//! (tools/perf/Documentation/jit-interface.txt of the kernel's sources).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The file in which `perf` finds names of code that this process compiles: `/tmp/perf-PID.map`. It stays when the process
/// ends, since `perf report` reads it afterwards.
#[derive(Debug)]
pub struct PerfMap {
    path: PathBuf,
    /// None once it could not be written: a program is not stopped for that.
    file: Mutex<Option<File>>,
}

impl PerfMap {
    /// Makes the file; one of an earlier process of this number goes.
    ///
    /// # Errors
    /// The system's error.
    pub fn create() -> io::Result<PerfMap> {
        let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
        // Everybody may write into /tmp, so nothing that is there already is followed or written into.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(PerfMap {
            path,
            file: Mutex::new(Some(file)),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Code of that many bytes has this name from now on.
    pub(crate) fn add(&self, start: usize, bytes: usize, name: &str) {
        let mut file = self.file.lock().unwrap_or_else(|e| e.into_inner());
        let name = name.replace('`', "").replace('\n', " ");
        // One write for a line, so that a reader sees whole lines while the file grows.
        let line = format!("{start:x} {bytes:x} {name}\n");
        if file
            .as_mut()
            .is_some_and(|f| f.write_all(line.as_bytes()).is_err())
        {
            *file = None;
        }
    }
}
