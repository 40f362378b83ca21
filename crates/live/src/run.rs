//! Running an unmodified program with its pages placed.

use crate::error::LiveError;
use crate::interrupts::Interrupts;
use crate::options::LiveOptions;
use crate::place::bins::Bins;
use crate::place::conflicts::Conflicts;
use crate::place::pagemap::frames_readable;
use crate::place::reserve::Unit;
use crate::place::table::{Member, Table};
use crate::program;
use crate::report::{LiveReport, read_lines};
use crate::shim;
use crate::verdict::machine_conflicts;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Runs `command` (a program and its arguments) with its pages placed, waits for it, and reports. The
/// program's input and output are the caller's. Programs that it starts are placed too.
///
/// # Errors
/// [`LiveError`]: the frame numbers are hidden, the cache is impossible, the program is not found, cannot
/// load the shim, or cannot be started. A program that fails is no error; see [`LiveReport::status`].
pub fn run(command: &[OsString], options: &LiveOptions) -> Result<LiveReport, LiveError> {
    let (name, arguments) = command.split_first().ok_or(LiveError::NoCommand)?;
    let bins = options.bins()?;
    frames_readable()?;
    let file = program::find(name)?;
    if let Some(why) = program::why_not_loadable(&file) {
        return Err(LiveError::NotLoadable { program: file, why });
    }

    let dir = tempfile::tempdir().map_err(|error| LiveError::File {
        what: "cannot make a directory in",
        path: std::env::temp_dir(),
        error,
    })?;
    let library = dir.path().join("libvarve_live.so");
    shim::write(&library).map_err(|error| LiveError::File {
        what: "cannot write",
        path: library.clone(),
        error,
    })?;
    let report_file = dir.path().join("report.jsonl");

    // The start time makes the name of the run differ from an earlier run of the same process number.
    let nanos = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |d| d.as_nanos() as u64);
    let run_name = (u64::from(std::process::id()) << 32 | nanos & 0xffff_ffff).max(1);
    let mut table = Table::open(&options.table_dir, bins, run_name)?;

    let mut child = Command::new(name);
    child
        .args(arguments)
        .envs(environment(options, &library, &report_file, run_name));
    let interrupts = Interrupts::left_to_the_program();
    let begun = Instant::now();
    let child = child.spawn().map_err(|error| LiveError::Start {
        program: PathBuf::from(name),
        error,
    })?;
    interrupts.begin(&child);
    let mut watch = Watch {
        bins,
        run_name,
        least_bytes: options.threshold_bytes,
        seen: None,
        placed: 0,
        notes: Vec::new(),
    };
    let ended = watch.until_end(child, &table);
    interrupts.end();
    let status = ended.map_err(|error| LiveError::Start {
        program: PathBuf::from(name),
        error,
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    table.tidy();
    Table::tidy_all(&options.table_dir);

    let text = std::fs::read_to_string(&report_file).unwrap_or_default();
    let (processes, torn) = read_lines(&text);
    let mut notes = watch.notes;
    notes.extend(notes_about(
        &status,
        torn,
        processes.is_empty(),
        watch.seen.is_some(),
    ));
    let seen_unplaced = watch
        .seen
        .map_or(0, |c| c.pages.saturating_sub(watch.placed));
    Ok(LiveReport {
        status,
        seconds,
        processes,
        seen: watch.seen,
        seen_unplaced,
        notes,
    })
}

fn notes_about(status: &ExitStatus, torn: usize, silent: bool, seen: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if torn > 0 {
        notes.push(format!(
            "{torn} processes were stopped while they wrote their report"
        ));
    }
    if silent && !seen {
        notes.push(
            "the program asked for no memory at or above the threshold, so nothing was placed"
                .into(),
        );
    } else if silent {
        let signal = std::os::unix::process::ExitStatusExt::signal(status);
        let why = signal.map_or("it ended without exit handlers".into(), |s| {
            format!("it was killed by signal {s}")
        });
        notes.push(format!(
            "the program left no report: {why}; what was seen from outside stands"
        ));
    }
    notes
}

/// The variables that the shim reads (`shim/config.rs`).
fn environment(
    options: &LiveOptions,
    library: &Path,
    report: &Path,
    run_name: u64,
) -> Vec<(&'static str, OsString)> {
    let limits = options.effective_limits();
    let unit = match options.pages.unit() {
        Unit::Base => "4k",
        Unit::Huge => "2m",
    };
    vec![
        ("LD_PRELOAD", shim::preload(library)),
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

/// Looks at the processes of the run while they live.
struct Watch {
    bins: Bins,
    run_name: u64,
    least_bytes: usize,
    seen: Option<Conflicts>,
    placed: u64,
    notes: Vec<String>,
}

/// Time between two looks; a process that ends with placed memory waits this long at most.
const PERIOD: Duration = Duration::from_millis(10);

impl Watch {
    fn until_end(&mut self, mut child: Child, table: &Table) -> std::io::Result<ExitStatus> {
        loop {
            self.look(table);
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(PERIOD);
        }
    }

    fn look(&mut self, table: &Table) {
        let members = table.members(self.run_name);
        let placed: u64 = members.iter().map(|m| m.pages).sum();
        let leaving = members.iter().any(|m| m.leaving);
        // Reading page maps costs time, so look again only when there is half as much more, or at the end.
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
                    let note =
                        format!("could not look at the program's page map from outside: {error}");
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
