//! The region file of a program on the modelled machine: a copy of the one that the user has, which stays as it is. So all plans and instances
//! begin with the same objects, and what is measured changes nothing.

use crate::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use varve_machine::Machine;
use varve_runtime::{Config, DurableFile, DurableLock};

/// A file that is gone when this is.
pub struct Copy(PathBuf);

impl Copy {
    /// Of the region that a program is to have, if it is to have one: a copy, or a name for a new file if there is none to copy.
    pub fn of(config: &Config) -> Result<Option<Copy>, Error> {
        static COPIES: AtomicU64 = AtomicU64::new(0);
        let Some(file) = &config.durable else {
            return Ok(None);
        };
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("varve-model-{}-{number}.region", std::process::id());
        let copy = Copy(std::env::temp_dir().join(name));
        if file.path.exists() {
            // Nobody changes it meanwhile.
            let _lock = DurableLock::take(&file.path).map_err(|e| Error::Region(e.to_string()))?;
            copy.fill(&file.path)?;
        }
        Ok(Some(copy))
    }

    fn fill(&self, from: &Path) -> Result<(), Error> {
        let copied = std::fs::copy(from, &self.0);
        copied.map(|_| ()).map_err(|e| {
            Error::Region(format!(
                "{}: cannot be copied to {}, as a run on a model wants it: {e}",
                from.display(),
                self.0.display()
            ))
        })
    }

    /// The settings of the program that gets it.
    pub fn settings(copy: Option<&Copy>, config: &Config) -> Config {
        let durable = config.durable.as_ref().zip(copy);
        Config {
            durable: durable.map(|(file, copy)| DurableFile {
                path: copy.0.clone(),
                ..file.clone()
            }),
            ..config.clone()
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Whether the machine has memory that objects survive in, beside memory that they do not.
pub fn check(machine: &Machine, has_tiers: bool) -> Result<(), Error> {
    match machine.pm.is_some() && has_tiers {
        true => Ok(()),
        false => Err(Error::NotPersistent(machine.name.clone())),
    }
}
