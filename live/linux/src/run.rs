//! Running an unmodified program with its pages placed.

use crate::error::LiveError;
use crate::launch::{self, Folder, STOPPED, library};
use crate::options::LiveOptions;
use crate::place::bins::Bins;
use crate::place::conflicts::Conflicts;
use crate::place::pagemap::frames_readable;
use crate::place::reserve::Unit;
use crate::place::table::{BinTable, Member};
use crate::program;
use crate::report::LiveReport;
use crate::verdict::machine_conflicts;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Runs `words` (a program and its arguments) with its pages placed, waits for it, and reports. The
/// program's input and output are the caller's. Programs that it starts are placed too.
///
/// # Errors
/// [`LiveError`]: the frame numbers are hidden, the cache is impossible, the program is not found, cannot
/// load the shim, or cannot be started. A program that fails is no error; see [`crate::Ran::status`].
pub fn run(words: &[OsString], options: &LiveOptions) -> Result<LiveReport, LiveError> {
    let mut command = launch::command(words)?;
    let bins = options.bins()?;
    frames_readable()?;
    launch::loadable(command.get_program(), program::why_not_loadable)?;

    let folder = Folder::new()?;
    launch::preload(&mut command, &folder.library(&library::PAGES)?);
    // The start time makes the name of the run differ from an earlier run of the same process number.
    let nanos = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |d| d.as_nanos() as u64);
    let run_name = (u64::from(std::process::id()) << 32 | nanos & 0xffff_ffff).max(1);
    let mut table = BinTable::open(&options.table_dir, bins, run_name)?;
    command.envs(environment(options, &folder.report(), run_name));

    let mut watch = Watch {
        bins,
        run_name,
        least_bytes: options.threshold_bytes,
        seen: None,
        placed: 0,
        notes: Vec::new(),
    };
    let ended = launch::run(command, |running| {
        running.wait_and(|_| {
            watch.look(&table);
            Ok(())
        })
    })?;
    table.tidy();
    BinTable::tidy_all(&options.table_dir);

    let mut ran = folder.ran(ended.status, ended.seconds, STOPPED);
    ran.notes.splice(0..0, watch.notes);
    if ran.processes.is_empty() {
        ran.notes.push(silent(&ended.status, watch.seen.is_some()));
    }
    let seen_unplaced = watch
        .seen
        .map_or(0, |c| c.pages.saturating_sub(watch.placed));
    Ok(LiveReport {
        ran,
        seen: watch.seen,
        seen_unplaced,
    })
}

/// Why no process has reported.
fn silent(status: &ExitStatus, seen: bool) -> String {
    if !seen {
        return "the program asked for no memory at or above the threshold, so nothing was placed"
            .into();
    }
    let why = status
        .signal()
        .map_or("it ended without exit handlers".into(), |s| {
            format!("it was killed by signal {s}")
        });
    format!("the program left no report: {why}; the counts from outside are valid")
}

/// The variables that the shim reads (`shim/config.rs`).
fn environment(
    options: &LiveOptions,
    report: &Path,
    run_name: u64,
) -> Vec<(&'static str, OsString)> {
    let limits = options.effective_limits();
    let unit = match options.pages.unit() {
        Unit::Base => "4k",
        Unit::Huge => "2m",
    };
    vec![
        ("VARVE_LIVE_BINS", options.cache_bytes.to_string().into()),
        ("VARVE_LIVE_WAYS", options.ways.to_string().into()),
        ("VARVE_LIVE_PAGES", unit.into()),
        (
            "VARVE_LIVE_THRESHOLD",
            options.threshold_bytes.to_string().into(),
        ),
        ("VARVE_LIVE_LAZY", options.lazy_bytes.to_string().into()),
        ("VARVE_LIVE_EXTRA", limits.extra_factor.to_string().into()),
        ("VARVE_LIVE_ROUNDS", limits.rounds.to_string().into()),
        (
            "VARVE_LIVE_MEMORY_PERCENT",
            limits.memory_percent.to_string().into(),
        ),
        ("VARVE_LIVE_HEAP", u8::from(options.heap).to_string().into()),
        ("VARVE_LIVE_REPORT", report.into()),
        ("VARVE_LIVE_TABLE", options.table_dir.clone().into()),
        ("VARVE_LIVE_RUN", run_name.to_string().into()),
    ]
}

/// Samples the processes of the run while they live.
struct Watch {
    bins: Bins,
    run_name: u64,
    least_bytes: usize,
    seen: Option<Conflicts>,
    placed: u64,
    notes: Vec<String>,
}

impl Watch {
    fn look(&mut self, table: &BinTable) {
        let members = table.members(self.run_name);
        let placed: u64 = members.iter().map(|m| m.pages).sum();
        let leaving = members.iter().any(|m| m.leaving);
        // Reading page maps costs time, so sample again only when there is half as much more memory, or at the end.
        if placed > 0 && (leaving || placed > self.placed + self.placed / 2) {
            let pids: Vec<u32> = members.iter().map(|m| m.pid).collect();
            match machine_conflicts(&pids, self.bins, self.least_bytes) {
                Ok(now) if self.seen.is_none_or(|s| now.pages >= s.pages) => {
                    // While a process holds candidates, these would count as the program's.
                    let steps =
                        |m: &[Member]| m.iter().map(|m| (m.pid, m.step)).collect::<Vec<_>>();
                    let quiet = members.iter().all(|m| m.step % 2 == 0);
                    if quiet && steps(&table.members(self.run_name)) == steps(&members) {
                        self.seen = Some(now);
                        self.placed = placed;
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    let note = format!("could not read the program's page map: {error}");
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
            }
        }
        for member in members.iter().filter(|m| m.leaving) {
            table.dismiss(member.pid);
        }
    }
}
