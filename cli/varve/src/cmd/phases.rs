//! `--pima-log`: a line for each phase and decision of plans that sample.

use crate::ui::{Failure, wrong};
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the lines go.
pub struct Log {
    out: Box<dyn Write + Send>,
    to: PathBuf,
    failed: bool,
}

impl Log {
    /// Standard error for `-`, or a file.
    pub fn open(to: &Path) -> Result<Log, Failure> {
        let out: Box<dyn Write + Send> = match to.as_os_str() == "-" {
            true => Box::new(std::io::stderr()),
            false => Box::new(File::create(to).map_err(|e| {
                wrong(format!(
                    "{}: {e}; name a file that can be written for --pima-log",
                    to.display()
                ))
            })?),
        };
        Ok(Log {
            out,
            to: to.into(),
            failed: false,
        })
    }

    /// Writes a line. If that fails, the program continues without its log, after one warning.
    pub fn line(&mut self, line: &dyn Display) {
        if let Err(e) = writeln!(self.out, "{line}")
            && !std::mem::replace(&mut self.failed, true)
        {
            crate::ui::message!("{}: {e}; the log of phases ends here", self.to.display());
        }
    }
}
