//! Common parts of all replays of recorded programs: the subject on the command line, and its recording.

use super::files;
use super::recording::{self, CommandTrace};
use crate::args::run::job::RunSubject;
use crate::args::run::model::{Marked, Windows};
use crate::ui::{self, Failure, wrong};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempPath;
use varve_report::pictures::{By as FlameBy, Flame, Stack};
use varve_run::request::native_profile;
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, names};
use varve_trace::End;
use varve_trace::host::{Extent, RecorderOptions};

/// The subject of the run, for a title.
pub fn name(work: &RunSubject) -> String {
    match work {
        RunSubject::Named(path) => varve_run::Work::Trace(path.into()).name(),
        RunSubject::Command(words) => shown(words),
    }
}

/// A profile of a native program.
pub fn profile(path: &Path) -> Result<Profile, Failure> {
    files::exists(
        path,
        "no such profile",
        "make one with `varve profile -o FILE.sites -- COMMAND`",
    )?;
    native_profile(path).map_err(wrong)
}

/// The part of a command that is recorded.
pub fn recording(marked: &Marked, windows: &Windows) -> RecorderOptions {
    RecorderOptions {
        marked: marked.marked,
        extent: windows.extent(),
        ..RecorderOptions::default()
    }
}

/// A trace to replay.
pub struct Recorded {
    /// Its file.
    pub path: PathBuf,
    /// Accesses in it, if that is known without reading it.
    pub accesses: Option<u64>,
    /// How the command ended that was recorded now.
    pub end: Option<End>,
    /// It has not ended: this is what it did so far.
    pub goes_on: bool,
    /// Of a command, it vanishes with this, and what comes besides.
    _kept: Option<TempPath>,
}

impl From<CommandTrace> for Recorded {
    fn from(trace: CommandTrace) -> Recorded {
        Recorded {
            path: trace.path.to_path_buf(),
            accesses: Some(trace.end.ops - trace.end.touches),
            end: Some(trace.end),
            goes_on: trace.goes_on,
            _kept: Some(trace.path),
        }
    }
}

/// The trace to replay; a command is recorded.
pub fn trace(work: &RunSubject, options: RecorderOptions) -> Result<Recorded, Failure> {
    match work {
        RunSubject::Named(path) => named(path, &options),
        RunSubject::Command(words) => Ok(recording::record(words, options)?.into()),
    }
}

/// A trace that was recorded before: what limits a recording has no place there.
pub fn named(path: &str, options: &RecorderOptions) -> Result<Recorded, Failure> {
    let option = match options.extent {
        _ if options.marked => "--marked",
        Extent::Whole | Extent::Thinning(_) => "",
        Extent::Sample(_) => "--sample",
        Extent::Window { .. } => "--skip or --for",
    };
    if !option.is_empty() {
        return Err(wrong(format!(
            "{option} limits the recording of a command, and {path} is a recording: leave it out"
        )));
    }
    let reader = files::open_trace(Path::new(path))?;
    Ok(Recorded {
        path: path.into(),
        accesses: reader.end().map(|end| end.ops - end.touches),
        end: None,
        goes_on: false,
        _kept: None,
    })
}

/// A command as one writes it.
pub fn shown(words: &[OsString]) -> String {
    let words = words.iter().map(|word| ui::quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

/// Where threads wait, by the calls that lead to memory: in a replay that is `slow`, and in one that is `fast`, if there is one.
pub fn flame(
    title: &str,
    (fast, slow): (Option<&str>, &str),
    keys: &[Key],
    stacks: &[Counts],
) -> Flame {
    let stacks = keys.iter().zip(stacks).map(|(key, counts)| Stack {
        frames: names::calls(key),
        fast_ns: counts.fast_ns,
        slow_ns: counts.slow_ns,
    });
    Flame {
        by: FlameBy::Memory,
        title: title.into(),
        fast: fast.map(String::from),
        slow: slow.into(),
        stacks: stacks.collect(),
    }
}
