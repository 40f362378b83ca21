//! Samples of a command, or of a process that runs already.

use super::hardware::{Event, Hardware, Hit};
use super::observe::{Process, SeenRange, SeenSite};
use super::table::SlotTable;
use super::used::{self, Mapping};
use super::{Source, WINDOW};
use crate::error::LiveError;
use crate::launch::{self, Folder, Running};
use crate::nodes::Kinds;
use crate::objects::{Compiled, SiteMap, load, why_not_placeable};
use crate::probe::Topology;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How samples are taken.
pub struct AccessSampling<'a> {
    /// Scans per second. Long scans are less frequent, so that they take at most a quarter of a processor.
    pub rate: f64,
    /// When to stop; `None` for the program's end. A command that is there still is asked to end.
    pub time: Option<Duration>,
    /// Set to stop it.
    pub stop: &'a AtomicBool,
    /// Events that sample accesses: opened if they can be, see [`super::hardware`]. Without any, the kernel is asked which pages are
    /// used.
    pub events: &'a [Event],
}

/// The observations.
#[derive(Debug, Default)]
pub struct SampledMemory {
    /// The program's file.
    pub program: PathBuf,
    /// The command, as the process has it.
    pub command: Vec<String>,
    /// Allocation sites of all its processes.
    pub sites: Vec<SeenSite>,
    /// Other memory: of each process its own.
    pub ranges: Vec<SeenRange>,
    /// Files of its code.
    pub files: Vec<String>,
    /// How it was seen what is used, of its first process.
    pub source: Source,
    /// Why the events that were wanted could not be had, if so; and what they missed.
    pub notes: Vec<String>,
    /// Whether the shim reports objects.
    pub has_objects: bool,
    /// Whether writes are distinguished from reads.
    pub has_writes: bool,
    /// Looks, of all processes.
    pub looks: u64,
    /// Seconds between the first scan and the last.
    pub seconds: f64,
    /// How a command ended; `None` for a process that runs on.
    pub status: Option<ExitStatus>,
}

/// Why nothing can be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampledError {
    /// The command; see [`LiveError`].
    #[error("{0}")]
    Live(#[from] LiveError),
    /// There is no such process.
    #[error("--pid {0}: no such process")]
    Gone(u32),
    /// It belongs to another user.
    #[error("--pid {0}: the process is another user's; sample it as that user, or as root")]
    Foreign(u32),
    /// It has no memory.
    #[error("--pid {0}: it has no memory of its own: it is part of the kernel, or has ended")]
    NoMemory(u32),
    /// The kernel does not tell.
    #[error(
        "/proc/{process}/clear_refs: {error}; the kernel does not report accessed pages (CONFIG_PROC_PAGE_MONITOR)"
    )]
    NotTold {
        /// The process.
        process: u32,
        /// The system's error.
        error: io::Error,
    },
}

/// Whether a command can be sampled: the program's file.
///
/// # Errors
/// As [`command`], before anything runs.
pub fn can_run(words: &[OsString]) -> Result<PathBuf, SampledError> {
    let name = words.first().ok_or(LiveError::NoCommand)?;
    let file = launch::loadable(name, why_not_placeable)?;
    let process = std::process::id();
    used::forget(process).map_err(|error| SampledError::NotTold { process, error })?;
    Ok(file)
}

/// Runs a command under the shim and samples it, and processes that it starts.
///
/// # Errors
/// [`SampledError`]: the program cannot be started, or the kernel does not report accessed pages.
pub fn command(
    words: &[OsString],
    sampling: &AccessSampling,
) -> Result<SampledMemory, SampledError> {
    let file = can_run(words)?;
    let mut command = launch::command(words)?;
    let folder = Folder::new()?;
    load(&mut command, &folder, &nothing_placed()?)?;
    // Signals that end programs stop the samples, and the command with them.
    let mut running = Running::start(command, None)?;
    // Before it has many threads.
    let mut accesses = Accesses::begin(running.id(), sampling.events);
    let mut all: Vec<Process> = Vec::new();
    let mut status = None;
    // The first scan is of a program that has begun.
    const START: Duration = Duration::from_millis(1);
    for _ in 0..1000 {
        let ended = running.ended().is_ok_and(|status| status.is_some());
        let table = |id| table(&folder, id).is_some();
        if ended || numbers(&folder).into_iter().any(table) {
            break;
        }
        std::thread::sleep(START);
    }
    let begun = Instant::now();
    looking(sampling, |last| {
        for id in numbers(&folder) {
            if all.iter().all(|p| p.id != id)
                && let Some(table) = table(&folder, id)
            {
                let process = Process::new(id, Some(table));
                // The kernel's monitor watches the first process.
                let first = all.is_empty() && !accesses.are_sampled();
                all.push(if first { process.with_damon() } else { process });
            }
        }
        accesses.take();
        for process in &mut all {
            // Ended processes were scanned before.
            let _ = accesses.look(process);
        }
        status = running.ended().ok().flatten();
        status.is_none() && !last
    });
    let seconds = begun.elapsed().as_secs_f64();
    all.iter_mut().for_each(Process::end);
    let status = status.unwrap_or_else(|| running.end());
    let words = words.iter().map(|w| w.to_string_lossy().into_owned());
    Ok(SampledMemory {
        program: file.canonicalize().unwrap_or(file),
        command: words.collect(),
        seconds,
        status: Some(status),
        ..accesses.seen_of(together(all))
    })
}

/// Whether a process can be sampled.
///
/// # Errors
/// [`SampledError`]: there is no such process, or it may not be observed.
pub fn can_attach(process: u32) -> Result<(), SampledError> {
    mappings_of(process).map(drop)
}

/// The mappings of a process, of which the kernel has forgotten what was used.
fn mappings_of(process: u32) -> Result<Vec<Mapping>, SampledError> {
    let why = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => SampledError::Gone(process),
        ErrorKind::PermissionDenied => SampledError::Foreign(process),
        _ if error.raw_os_error() == Some(libc::ESRCH) => SampledError::NoMemory(process),
        _ => SampledError::NotTold { process, error },
    };
    used::forget(process).map_err(why)?;
    let mappings = used::look(process).map_err(why)?;
    match mappings.is_empty() {
        true => Err(SampledError::NoMemory(process)),
        false => Ok(mappings),
    }
}

/// Samples a process that runs already, under the shim or not.
///
/// # Errors
/// As [`can_attach`].
pub fn attach(process: u32, sampling: &AccessSampling) -> Result<SampledMemory, SampledError> {
    let mappings = mappings_of(process)?;
    let folder = PathBuf::from(format!("/proc/{process}"));
    let arguments = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let program = std::fs::read_link(folder.join("exe")).unwrap_or_default();
    let name = format!(".{process}");
    let shared = mappings.iter().filter(|m| m.rights.ends_with('s'));
    let table = shared
        .filter(|m| m.path.ends_with(&name))
        .find_map(|m| SlotTable::open(&folder.join(format!("root{}", m.path))).ok());
    let mut accesses = Accesses::begin(process, sampling.events);
    let mut one = Process::new(process, table);
    if !accesses.are_sampled() {
        one = one.with_damon();
    }
    let begun = Instant::now();
    looking(sampling, |_| {
        accesses.take();
        accesses.look(&mut one).is_ok()
    });
    let words = arguments.split(|b| *b == 0).filter(|w| !w.is_empty());
    Ok(SampledMemory {
        program,
        command: words
            .map(|w| String::from_utf8_lossy(w).into_owned())
            .collect(),
        seconds: begun.elapsed().as_secs_f64(),
        ..accesses.seen_of(together(vec![one]))
    })
}

/// Accesses that the processor samples, if it does.
struct Accesses {
    hardware: Option<Hardware>,
    mechanism: &'static str,
    /// By process, since the last scan.
    hits: HashMap<u32, Vec<Hit>>,
    notes: Vec<String>,
}

impl Accesses {
    fn begin(process: u32, events: &[Event]) -> Accesses {
        let mut accesses = Accesses {
            hardware: None,
            mechanism: events.first().map_or("", |event| event.mechanism),
            hits: HashMap::new(),
            notes: Vec::new(),
        };
        if !events.is_empty() {
            match Hardware::begin(process, events) {
                Ok(hardware) => accesses.hardware = Some(hardware),
                Err(why) => accesses.notes.push(format!(
                    "hardware sampling failed for this program, so its pages were scanned: {why}"
                )),
            }
        }
        accesses
    }

    fn are_sampled(&self) -> bool {
        self.hardware.is_some()
    }

    /// Takes what was sampled since the last time.
    fn take(&mut self) {
        self.hits.clear();
        for hit in self.hardware.iter_mut().flat_map(Hardware::take) {
            self.hits.entry(hit.process).or_default().push(hit);
        }
    }

    fn look(&self, process: &mut Process) -> io::Result<()> {
        match self.hardware {
            Some(_) => {
                let hits = self.hits.get(&process.id);
                process.look_at(hits.map_or(&[], Vec::as_slice))
            }
            None => process.look(WINDOW),
        }
    }

    fn seen_of(self, mut seen: SampledMemory) -> SampledMemory {
        seen.notes = self.notes;
        if let Some(hardware) = self.hardware {
            seen.source = Source::Hardware(self.mechanism);
            if hardware.lost > 0 {
                seen.notes.push(format!(
                    "{} of the processor's samples were lost",
                    hardware.lost
                ));
            }
        }
        seen
    }
}

/// Calls `look` periodically, until it returns that it is over or the time is up. Its argument is whether it is the last call.
fn looking(sampling: &AccessSampling, mut look: impl FnMut(bool) -> bool) {
    let begun = Instant::now();
    let period = Duration::from_secs_f64(1.0 / sampling.rate);
    loop {
        let over = sampling.time.is_some_and(|time| begun.elapsed() >= time);
        let last = over || sampling.stop.load(Ordering::Relaxed);
        let looked = processor_time();
        if !look(last) || last {
            return;
        }
        let took = processor_time().saturating_sub(looked);
        let rest = period.saturating_sub(WINDOW + took).max(3 * took);
        let left = sampling
            .time
            .map(|time| time.saturating_sub(begun.elapsed()));
        std::thread::sleep(rest.min(left.unwrap_or(rest)));
    }
}

/// Processor time of this thread so far.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: filled in by the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processes that have a file of samples in a folder.
fn numbers(folder: &Folder) -> Vec<u32> {
    let names = std::fs::read_dir(folder.path())
        .into_iter()
        .flatten()
        .flatten();
    let number = |name: OsString| name.to_str()?.strip_prefix("samples.")?.parse().ok();
    names
        .filter_map(|entry| number(entry.file_name()))
        .collect()
}

/// The samples of a process, once it has begun to write them.
fn table(folder: &Folder, id: u32) -> Option<SlotTable> {
    SlotTable::open(&folder.file(&format!("samples.{id}"))).ok()
}

/// A map by which all objects stay where the kernel puts them.
fn nothing_placed() -> Result<Compiled, LiveError> {
    let (topology, _) = Topology::read(Path::new("/"));
    let with_memory = topology.nodes.iter().filter(|n| n.bytes > 0);
    let mut nodes: Vec<u32> = with_memory.map(|n| n.id).collect();
    if nodes.is_empty() {
        nodes.push(0);
    }
    let map = SiteMap {
        sites: Vec::new(),
        variables: Vec::new(),
        default_tier: None,
        budget_bytes: 0,
        kinds: Kinds {
            fast: nodes.clone(),
            slow: nodes,
        },
    };
    map.compile(&mut |_| None).map_err(LiveError::SiteMap)
}

/// Merges the observations of several processes.
fn together(all: Vec<Process>) -> SampledMemory {
    let mut seen = SampledMemory::default();
    for process in all {
        if process.has_damon() {
            seen.source = Source::Damon;
        }
        seen.has_objects |= process.has_table();
        seen.has_writes |= process.with_writes > 0;
        seen.looks += process.looks;
        for file in process.files {
            if !seen.files.contains(&file) {
                seen.files.push(file);
            }
        }
        seen.sites.extend(process.sites);
        seen.ranges.extend(process.ranges.into_values());
    }
    seen
}
