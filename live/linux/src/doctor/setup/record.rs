//! The record of changes, in a file that outlives us. It is written anew before each change, by a name of its own that then takes its
//! place: whenever we are killed, the file is whole.

use super::Step;
use crate::lock::Lock;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Changes, the oldest first. What was changed is gone after a restart, and so is the file, below `/run`.
#[derive(Debug)]
pub struct Record {
    file: PathBuf,
    steps: Vec<Step>,
    _lock: Lock,
}

impl Record {
    /// Reads what is there below a root. Others wait until we let go of it.
    ///
    /// # Errors
    /// The file cannot be read, or is not a record; another process has it locked.
    pub fn open(root: &Path) -> Result<Record, String> {
        let lock = Lock::named(&format!("varve-doctor-{}", root.display()));
        let lock = lock.map_err(|e| format!("no lock: {e}"))?;
        let _lock = lock.ok_or(
            "another `varve machine --doctor` is changing the set-up: wait until it has ended",
        )?;
        let file = root.join("run/varve/doctor.json");
        let steps = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|e| format!("{}: {e}: not what was changed", file.display()))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(format!("{}: {e}", file.display())),
        };
        Ok(Record { file, steps, _lock })
    }

    /// Adds a change that is about to be made.
    ///
    /// # Errors
    /// It cannot be written: the change is not to be made.
    pub fn add(&mut self, step: &Step) -> Result<(), String> {
        self.steps.push(step.clone());
        self.write().inspect_err(|_| {
            self.steps.pop();
        })
    }

    /// The changes, the oldest first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes a change out, which was not made or was reverted. An empty record is no file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take_out(&mut self, at: usize) -> Result<(), String> {
        self.steps.remove(at);
        self.write()
    }

    /// Tries whether changes can be kept at all, and leaves nothing behind.
    ///
    /// # Errors
    /// They cannot: nothing is to be changed.
    pub fn can_be_kept(&self) -> Result<(), String> {
        match self.steps.is_empty() {
            true => {
                let beside = self.file.with_extension("new");
                let folder = self.file.parent().unwrap_or(Path::new("."));
                let tried = fs::create_dir_all(folder).and_then(|()| fs::write(&beside, ""));
                let _ = fs::remove_file(&beside);
                let _ = fs::remove_dir(folder);
                tried.map_err(|e| self.why(&e))
            }
            false => self.write(),
        }
    }

    fn why(&self, e: &io::Error) -> String {
        format!(
            "{}: changes cannot be recorded there: {e}{}",
            self.file.display(),
            super::change::remedy(e)
        )
    }

    fn write(&self) -> Result<(), String> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let write = || -> io::Result<()> {
            if self.steps.is_empty() {
                fs::remove_file(&self.file)?;
                // Others may have files there.
                let _ = fs::remove_dir(folder);
                return Ok(());
            }
            fs::create_dir_all(folder)?;
            let beside = self.file.with_extension("new");
            let mut file = fs::File::create(&beside)?;
            file.write_all(serde_json::to_string(&self.steps)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.file)
        };
        write().map_err(|e| self.why(&e))
    }
}
