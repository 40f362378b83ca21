//! Running an unmodified program with its objects placed.

use super::map::{Compiled, Group, SiteMap};
use super::modules::Modules;
use super::report::{ObjectProcess, ObjectReport};
use super::running::{Requests, Running, RunningProcess};
use crate::error::LiveError;
use crate::launch::{self, Folder, STOPPED, library};
use crate::nodes::{Kinds, NodeMemory};
use crate::program;
use object::{Object, ObjectSymbol};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// How to run a program with its objects placed.
#[derive(Clone, Debug, Default)]
pub struct ObjectOptions {
    /// Files of modules that the program loads while it runs, where sites in them have to be told apart by their callers.
    /// Its own file and the libraries it is linked with are found without.
    pub modules: Vec<PathBuf>,
    /// The action of SIGUSR1 to this process while the program runs: it gets the state so far. The signal is taken over from the
    /// first such run on.
    pub on_request: Option<fn(&Running)>,
}

/// Processes of a run whose use of fast memory is added up; more than these have the whole budget each.
const PROCESSES: usize = 1024;
/// Bytes of one in the shared file: its number, and its bytes of fast memory.
const SLOT: usize = 16;

/// Runs `words` (a program and its arguments) with its objects placed, waits for it, and reports. The program's input and
/// output are the caller's. Programs that it starts are placed too.
///
/// # Errors
/// [`LiveError`]: as [`PreparedObjects::new`], and the program cannot be started. A program that fails is no error; see
/// [`crate::Ran::status`].
pub fn run(
    words: &[OsString],
    map: &SiteMap,
    options: &ObjectOptions,
) -> Result<ObjectReport, LiveError> {
    let mut command = launch::command(words)?;
    let prepared = PreparedObjects::new(&mut command, map, &options.modules)?;
    let mut requests = options.on_request.map(|tell| (Requests::begin(), tell));
    let ended = launch::run(command, |program| {
        program.wait_and(|program| {
            let slots = prepared.look()?;
            if let Some((requests, tell)) = &mut requests
                && requests.asked()
            {
                tell(&Running {
                    elapsed: program.begun().elapsed(),
                    budget_bytes: map.budget_bytes,
                    processes: running(&slots, &map.kinds),
                });
            }
            Ok(())
        })
    })?;
    Ok(prepared.report(ended.status, ended.seconds))
}

/// A command whose objects will be placed, for a caller that starts it and waits for it. It is to live until the program has ended: its
/// files are removed with it.
#[derive(Debug)]
pub struct PreparedObjects {
    folder: Folder,
    /// Each process's share of the budget.
    share: File,
    groups: Vec<Group>,
    notes: Vec<String>,
    kinds: Kinds,
}

impl PreparedObjects {
    /// Adds to a command, which has its program already, what places its objects. `modules` are as in [`ObjectOptions::modules`].
    ///
    /// # Errors
    /// [`LiveError`]: the nodes cannot be used, the map contradicts itself, the program is not found, cannot load the shim, or
    /// files cannot be written.
    pub fn new(
        command: &mut Command,
        map: &SiteMap,
        modules: &[PathBuf],
    ) -> Result<PreparedObjects, LiveError> {
        let file = launch::loadable(command.get_program(), why_not_placeable)?;
        NodeMemory::new(map.kinds.clone())?;
        let mut modules = Modules::new(&file, modules);
        let compiled = map
            .compile(&mut |module| modules.find(module))
            .map_err(LiveError::SiteMap)?;

        let folder = Folder::new()?;
        load(command, &folder, &compiled)?;
        let share_file = folder.write("share", &[0; PROCESSES * SLOT])?;
        let share = File::options().read(true).write(true).open(&share_file);
        let share = share.map_err(LiveError::file("cannot write", &share_file))?;
        command
            .env("VARVE_OBJECTS_REPORT", folder.report())
            .env("VARVE_OBJECTS_SHARE", &share_file);
        Ok(PreparedObjects {
            folder,
            share,
            groups: compiled.groups,
            notes: compiled.notes,
            kinds: map.kinds.clone(),
        })
    }

    /// To be called now and then while the program runs: what a process had of the budget that was killed is free again. Gives the
    /// shares as they were.
    ///
    /// # Errors
    /// The file of the shares cannot be read or written any more.
    pub fn look(&self) -> std::io::Result<Shares> {
        let mut slots = [0; PROCESSES * SLOT];
        self.share.read_exact_at(&mut slots, 0)?;
        for (index, slot) in slots.chunks(SLOT).enumerate() {
            let process = u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"));
            if process != 0 && !Path::new(&format!("/proc/{process}")).exists() {
                self.share.write_all_at(&[0; SLOT], (index * SLOT) as u64)?;
            }
        }
        Ok(Shares(slots))
    }

    /// The report, once the program has ended with `status` after `seconds`.
    pub fn report(self, status: ExitStatus, seconds: f64) -> ObjectReport {
        let mut ran = self.folder.ran(status, seconds, STOPPED);
        if ran.processes.is_empty() && ran.notes.is_empty() {
            ran.notes.push(
                "no process left a report: it became a program that cannot load the library".into(),
            );
        }
        ran.notes.splice(0..0, self.notes);
        ran.notes.extend(notes_about(&ran.processes, &self.kinds));
        ObjectReport {
            ran,
            groups: self.groups,
        }
    }
}

/// Has a command load the allocator, which reads this map.
pub(crate) fn load(
    command: &mut Command,
    folder: &Folder,
    map: &Compiled,
) -> Result<(), LiveError> {
    launch::preload(command, &folder.library(&library::OBJECTS)?);
    command
        .env(
            "VARVE_OBJECTS_MAP",
            folder.write("sites.map", &map.bytes())?,
        )
        // For a process that samples the program while it runs.
        .env("VARVE_OBJECTS_SAMPLES", folder.file("samples"));
    Ok(())
}

/// The share of each process of a run in its budget.
pub struct Shares([u8; PROCESSES * SLOT]);

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

/// The processes that take part of the budget.
fn running(Shares(slots): &Shares, kinds: &Kinds) -> Vec<RunningProcess> {
    let word = |slot: &[u8], at: usize| {
        u64::from_le_bytes(*slot[at..].first_chunk().expect("eight bytes"))
    };
    let taken = slots.chunks(SLOT).filter(|slot| word(slot, 0) != 0);
    let look =
        |slot: &[u8]| RunningProcess::look(word(slot, 0) as u32, word(slot, 8) as i64, kinds);
    taken.filter_map(look).collect()
}

fn notes_about(processes: &[ObjectProcess], kinds: &Kinds) -> Vec<String> {
    let mut notes = Vec::new();
    for process in processes {
        let who = format!("{} ({})", process.program, process.pid);
        if let Some(why) = &process.idle {
            notes.push(format!("{who}: objects are not placed: {why}"));
        }
        if process.sandboxed {
            notes.push(format!("{who}: it forbade itself system calls (seccomp); mappings were not placed from then on, and it is not known where its pages are"));
        }
        for module in &process.other_build {
            notes.push(format!("{who}: {module} is another build than the profile's, so nothing of it is placed; profile this build, or find its functions by name with --stale"));
        }
        let (pages, elsewhere) = process.pages_elsewhere(kinds);
        if elsewhere > 0 {
            notes.push(format!("{who}: {elsewhere} of {pages} pages checked are on other nodes than requested: those were full"));
        }
    }
    notes
}
