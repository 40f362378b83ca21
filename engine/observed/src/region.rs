//! The region file of a program on the modelled machine: a copy of the one that the user has, which stays as it is. So all plans and instances
//! begin with the same objects, and measuring changes nothing.

use std::path::PathBuf;
use tempfile::TempDir;
use varve_machine::Machine;
use varve_run::Error;
use varve_runtime::{Config, DurableFile, copy_region};

/// A file in a folder of its own; both are gone when this is.
pub struct Copy(TempDir);

impl Copy {
    /// Of the region that a program is to have, if it is to have one: a copy, or a name for a new file if there is none to copy.
    pub fn of(config: &Config) -> Result<Option<Copy>, Error> {
        let Some(file) = &config.durable else {
            return Ok(None);
        };
        let folder = tempfile::Builder::new().prefix("varve-model-").tempdir();
        let copy = Copy(folder.map_err(|e| {
            let remedy = "set TMPDIR to a folder that has room";
            Error::Region(format!("a copy of {}: {e}: {remedy}", file.path.display()))
        })?);
        if file.path.exists() {
            // Of one instant, even if another process has it open.
            copy_region(&file.path, &copy.path(), &mut |_, _| ())
                .map_err(|e| Error::Region(e.to_string()))?;
        }
        Ok(Some(copy))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("a.region")
    }

    /// The settings of the program that gets it.
    pub fn settings(copy: Option<&Copy>, config: &Config) -> Config {
        let durable = config.durable.as_ref().zip(copy);
        Config {
            durable: durable.map(|(file, copy)| DurableFile {
                path: copy.path(),
                ..file.clone()
            }),
            ..config.clone()
        }
    }
}

/// Whether the machine has memory that objects survive in, beside memory that they do not.
pub fn check(machine: &Machine, has_tiers: bool) -> Result<(), Error> {
    match machine.pm.is_some() && has_tiers {
        true => Ok(()),
        false => Err(Error::NotPersistent(machine.name.clone())),
    }
}
