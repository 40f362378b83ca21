//! Running an unmodified program with its objects placed.

use super::map::SiteMap;
use super::modules::Modules;
use super::report::{ObjectProcess, ObjectReport};
use super::running::{Requests, Running, RunningProcess};
use crate::error::LiveError;
use crate::interrupts::Interrupts;
use crate::nodes::{Kinds, NodeMemory};
use crate::report::read_lines;
use crate::{program, shim};
use object::{Object, ObjectSymbol};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How to run a program with its objects placed.
#[derive(Clone, Debug, Default)]
pub struct ObjectOptions {
    /// Files of modules that the program loads while it runs, where sites in them have to be told apart by their callers.
    /// Its own file and the libraries it is linked with are found without.
    pub modules: Vec<PathBuf>,
    /// What SIGUSR1 to this process does while the program runs: it tells what is so by then. The signal is taken over from the
    /// first such run on.
    pub on_request: Option<fn(&Running)>,
}

/// Processes of a run whose use of fast memory is added up; more than these have the whole budget each.
const PROCESSES: usize = 1024;
/// Bytes of one in the shared file: its number, and its bytes of fast memory.
const SLOT: usize = 16;
/// Time between two looks at which processes are still there.
const PERIOD: Duration = Duration::from_millis(10);

/// Runs `command` (a program and its arguments) with its objects placed, waits for it, and reports. The program's input and
/// output are the caller's. Programs that it starts are placed too.
///
/// # Errors
/// [`LiveError`]: the nodes cannot be used, the map contradicts itself, the program is not found, cannot load the shim, or
/// cannot be started. A program that fails is no error; see [`ObjectReport::status`].
pub fn run(
    command: &[OsString],
    map: &SiteMap,
    options: &ObjectOptions,
) -> Result<ObjectReport, LiveError> {
    let (name, arguments) = command.split_first().ok_or(LiveError::NoCommand)?;
    let file = program::find(name)?;
    if let Some(why) = why_not_placeable(&file) {
        return Err(LiveError::NotLoadable { program: file, why });
    }
    NodeMemory::new(map.kinds.clone())?;
    let mut modules = Modules::new(&file, &options.modules);
    let compiled = map
        .compile(&mut |module| modules.find(module))
        .map_err(LiveError::SiteMap)?;

    let dir = tempfile::tempdir().map_err(|error| LiveError::File {
        what: "cannot make a directory in",
        path: std::env::temp_dir(),
        error,
    })?;
    let path = |name: &str| dir.path().join(name);
    let (library, map_file, report_file, share_file) = (
        path("libvarve_objects.so"),
        path("sites.map"),
        path("report.jsonl"),
        path("share"),
    );
    let words: Vec<u8> = compiled
        .words
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    written(&library, shim::write_objects(&library))?;
    written(&map_file, std::fs::write(&map_file, words))?;
    written(
        &share_file,
        std::fs::write(&share_file, [0; PROCESSES * SLOT]),
    )?;
    let share = written(
        &share_file,
        File::options().read(true).write(true).open(&share_file),
    )?;

    let start_error = |error| LiveError::Start {
        program: PathBuf::from(name),
        error,
    };
    let mut child = Command::new(name);
    child
        .args(arguments)
        .env("LD_PRELOAD", shim::preload(&library));
    child.env("VARVE_OBJECTS_MAP", &map_file);
    child.env("VARVE_OBJECTS_REPORT", &report_file);
    child.env("VARVE_OBJECTS_SHARE", &share_file);
    // For whoever looks at the program while it runs.
    child.env("VARVE_OBJECTS_SAMPLES", path("samples"));
    let interrupts = Interrupts::left_to_the_program();
    let mut requests = options.on_request.map(|tell| (Requests::begin(), tell));
    let begun = Instant::now();
    let child = child.spawn().map_err(start_error)?;
    interrupts.begin(&child);
    let ended = until_end(child, &share, |slots| {
        if let Some((requests, tell)) = &mut requests
            && requests.asked()
        {
            tell(&Running {
                elapsed: begun.elapsed(),
                budget_bytes: map.budget_bytes,
                processes: running(slots, &map.kinds),
            });
        }
    });
    interrupts.end();
    let status = ended.map_err(start_error)?;
    let seconds = begun.elapsed().as_secs_f64();

    let text = std::fs::read_to_string(&report_file).unwrap_or_default();
    let (processes, torn) = read_lines(&text);
    let mut notes = compiled.notes;
    notes.extend(notes_about(&processes, torn, map));
    Ok(ObjectReport {
        status,
        seconds,
        groups: compiled.groups,
        processes,
        notes,
    })
}

/// Why objects of the program in this file cannot be placed; `None` when they can, or it is a script.
pub fn why_not_placeable(path: &Path) -> Option<String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Some("objects are placed on x86-64 alone".into());
    }
    program::why_not_loadable(path).or_else(|| {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        // Sanitizers bring allocators of their own, which have to be the first.
        let sanitizers = [
            ("__asan_init", "AddressSanitizer"),
            ("__tsan_init", "ThreadSanitizer"),
            ("__msan_init", "MemorySanitizer"),
        ];
        let has = |symbol: &str| file.dynamic_symbols().any(|s| s.name() == Ok(symbol));
        let (_, name) = sanitizers.into_iter().find(|(symbol, _)| has(symbol))?;
        Some(format!(
            "it is built with {name}, which has an allocator of its own; build it without"
        ))
    })
}

fn written<T>(path: &Path, result: std::io::Result<T>) -> Result<T, LiveError> {
    result.map_err(|error| LiveError::File {
        what: "cannot write",
        path: path.into(),
        error,
    })
}

/// The processes that take part of the budget.
fn running(slots: &[u8], kinds: &Kinds) -> Vec<RunningProcess> {
    let word = |slot: &[u8], at: usize| {
        u64::from_le_bytes(*slot[at..].first_chunk().expect("eight bytes"))
    };
    let taken = slots.chunks(SLOT).filter(|slot| word(slot, 0) != 0);
    let look =
        |slot: &[u8]| RunningProcess::look(word(slot, 0) as u32, word(slot, 8) as i64, kinds);
    taken.filter_map(look).collect()
}

fn until_end(
    mut child: Child,
    share: &File,
    mut look: impl FnMut(&[u8]),
) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // What a process had that was killed is free again.
        let mut slots = [0; PROCESSES * SLOT];
        share.read_exact_at(&mut slots, 0)?;
        look(&slots);
        for (index, slot) in slots.chunks(SLOT).enumerate() {
            let process = u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"));
            if process != 0 && !Path::new(&format!("/proc/{process}")).exists() {
                share.write_all_at(&[0; SLOT], (index * SLOT) as u64)?;
            }
        }
        std::thread::sleep(PERIOD);
    }
}

fn notes_about(processes: &[ObjectProcess], torn: usize, map: &SiteMap) -> Vec<String> {
    let mut notes = Vec::new();
    if torn > 0 {
        notes.push(format!(
            "{torn} processes were stopped while they wrote their report"
        ));
    }
    if processes.is_empty() {
        notes.push("no process left a report: it was killed, ended without exit handlers, or became a program that cannot load the shim".into());
    }
    for process in processes {
        let who = format!("{} ({})", process.program, process.pid);
        if let Some(why) = &process.idle {
            notes.push(format!("{who}: objects are not placed: {why}"));
        }
        for module in &process.other_build {
            notes.push(format!("{who}: {module} is another build than the profile's, so nothing of it is placed; profile this build, or find its functions by name with --stale"));
        }
        let (pages, elsewhere) = process.pages_elsewhere(&map.kinds);
        if elsewhere > 0 {
            notes.push(format!("{who}: {elsewhere} of {pages} pages that were looked at are on other nodes than asked for: theirs were full"));
        }
    }
    notes
}
