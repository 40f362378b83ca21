//! Running an unmodified program with its objects placed.

use super::ledger::PROCESSES;
use super::map::{Compiled, Group, SiteMap};
use super::modules::Modules;
use super::places::Looks;
use super::report::{ObjectProcess, ObjectReport};
use super::running::{Requests, Running, RunningProcess};
use super::share::{Share, Taker};
use crate::error::LiveError;
use crate::launch::{self, Folder, STOPPED, library};
use crate::nodes::{Kinds, NodeMemory};
use crate::program;
use object::{Object, ObjectSymbol};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Mutex;

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
            let takers = prepared.takers();
            if let Some((requests, tell)) = &mut requests
                && requests.asked()
            {
                tell(&Running {
                    elapsed: program.begun().elapsed(),
                    budget_bytes: map.budget_bytes,
                    processes: running(&takers, &map.kinds),
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
    /// What each process and each group has.
    share: Share,
    looks: Mutex<Looks>,
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
        let share_file = folder.file("share");
        let share = Share::new(&share_file, compiled.groups.len());
        let share = share.map_err(LiveError::file("cannot write", &share_file))?;
        command
            .env("VARVE_OBJECTS_REPORT", folder.report())
            .env("VARVE_OBJECTS_SHARE", &share_file);
        Ok(PreparedObjects {
            folder,
            share,
            looks: Mutex::new(Looks::begin()),
            groups: compiled.groups,
            notes: compiled.notes,
            kinds: map.kinds.clone(),
        })
    }

    /// To be called now and then while the program runs: what a process had that was killed is free again, and it is looked where
    /// memory is.
    pub fn look(&self) {
        self.takers();
    }

    /// The same. Gives the processes that take part of the budget.
    fn takers(&self) -> Vec<Taker> {
        let takers = self.share.takers();
        if let Ok(mut looks) = self.looks.lock() {
            looks.look(&takers, &self.kinds);
        }
        takers
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
        if let crowded @ 1.. = self.share.crowded() {
            ran.notes.push(format!(
                "{crowded} processes were too many at a time ({PROCESSES}): their memory is in no peak, and each had the whole budget"
            ));
        }
        ObjectReport {
            ran,
            groups: self.groups,
            lived: self.share.lived(),
            all: self.share.all(),
            places: self.looks.into_inner().ok().and_then(Looks::most),
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

/// What is so by now in the processes that take part of the budget.
fn running(takers: &[Taker], kinds: &Kinds) -> Vec<RunningProcess> {
    let look = |taker: &Taker| RunningProcess::look(taker.pid, taker.fast_bytes, kinds);
    takers.iter().filter_map(look).collect()
}

fn notes_about(processes: &[ObjectProcess], kinds: &Kinds) -> Vec<String> {
    let mut notes = Notes::default();
    for process in processes {
        let mut note = |what: String| notes.add(process, what);
        if let Some(why) = &process.idle {
            note(format!("objects are not placed: {why}"));
        }
        if process.sandboxed {
            note("it forbade itself system calls (seccomp); mappings were not placed from then on, and it is not known where its pages are".into());
        }
        for module in &process.other_build {
            note(format!(
                "{module} is another build than the profile's, so nothing of it is placed; profile this build, or find its functions by name with --stale"
            ));
        }
        if process.colored_blocks > 0 {
            note(format!(
                "varve_mcolor was given {} bytes of malloc's blocks, which stay where they are: take varve_malloc for these, or mmap",
                process.colored_blocks
            ));
        }
        let (pages, elsewhere) = process.pages_elsewhere(kinds);
        if elsewhere > 0 {
            note(format!(
                "{elsewhere} of {pages} pages checked are on other nodes than requested: those were full"
            ));
        }
    }
    notes.said()
}

/// What is to be said of processes: each thing once, with the first process of which it is so, and how many there are.
#[derive(Default)]
struct Notes(Vec<(String, String, usize)>);

impl Notes {
    fn add(&mut self, process: &ObjectProcess, what: String) {
        match self.0.iter_mut().find(|(_, said, _)| *said == what) {
            Some((_, _, processes)) => *processes += 1,
            None => {
                let who = format!("{} ({})", process.program, process.pid);
                self.0.push((who, what, 1));
            }
        }
    }

    fn said(self) -> Vec<String> {
        let said = |(who, what, processes)| match processes {
            1 => format!("{who}: {what}"),
            2 => format!("{who} and another process: {what}"),
            _ => format!("{who} and {} other processes: {what}", processes - 1),
        };
        self.0.into_iter().map(said).collect()
    }
}
