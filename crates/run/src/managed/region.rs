//! The region file of a program on the modelled machine: a copy of the one that the user has, which stays as it is. So all plans and instances
//! begin with the same objects, and what is measured changes nothing.

use crate::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use varve_machine::Machine;
use varve_runtime::{Config, DurableFile, copy_region};

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
            // Of one instant, whoever has it open.
            copy_region(&file.path, &copy.0, &mut |_, _| ())
                .map_err(|e| Error::Region(e.to_string()))?;
        }
        Ok(Some(copy))
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
