//! The medium of a region file, and when the file is synced.

use clap::ValueEnum;
use std::time::Duration;

/// A kind of medium.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Persistent memory, mapped with MAP_SYNC: cache lines are written back and fenced
    Dax,
    /// An ordinary file: fdatasync
    File,
    /// As dax, on any file: survives a crash of the program, but not of the machine
    Memory,
}

/// When a file is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Commit,
    Every(Duration),
}

/// When a file is synced, as a user writes it.
pub fn sync(text: &str) -> Result<Sync, String> {
    if text == "commit" {
        return Ok(Sync::Commit);
    }
    match varve_spec::written::seconds(text) {
        Some(s) if (1e-4..=86_400.0).contains(&s) => Ok(Sync::Every(Duration::from_secs_f64(s))),
        Some(_) => Err("an interval is 100us to a day".into()),
        None => Err(format!(
            "`{text}` is neither commit nor an interval such as 100ms"
        )),
    }
}
