//! The recorder: a running program on one side, a trace or a live stream of ops on the other.

use super::command::{RecorderOptions, resolve};
use super::error::RecordError;
use super::launch::{self, Started};
use super::memory::{SharedMemory, ThreadState};
use super::ring::{PROCESSES, SLOTS};
use super::sink::Sink;
use super::templates::Registry;
use super::walk::{RawEvent, Runs, Walker};
use super::windows::Windows;
use crate::FileHeader;
use crate::format::Part;
use crate::schedule::Extent;
use crate::writer::{End, StackRange, TraceWriter};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

/// Milliseconds between checks whether the program has ended, when it does not ring.
const LOOK_EVERY_MS: u32 = 20;

/// A trace of what a program did so far, for those who do not wait for its end.
pub struct EarlyTrace<'a> {
    /// So long it runs before.
    pub after: Duration,
    /// The file.
    pub path: &'a Path,
    /// Is told when the file is there. The program goes on.
    pub told: &'a mut dyn FnMut(End),
}

/// A program that runs under a probe. It is killed when this is dropped, and when the thread that started it ends.
pub struct Recorder {
    pub(super) memory: SharedMemory,
    started: Started,
    command: Vec<String>,
    walkers: Vec<Walker>,
    registry: Registry,
    /// Programs that compiled ones became, but that are not recorded.
    lost_execs: u32,
    status: Option<ExitStatus>,
    options: RecorderOptions,
    windows: Windows,
    static_target: bool,
}

impl Recorder {
    /// Starts a command. Its standard input, output and error stay the caller's.
    ///
    /// # Errors
    /// The command cannot be run or recorded; see [`RecordError`].
    pub fn start(command: &[OsString], options: RecorderOptions) -> Result<Recorder, RecordError> {
        let target = resolve(command)?;
        let memory = SharedMemory::new().map_err(|source| RecordError::Io {
            path: "memfd".into(),
            source,
        })?;
        let (windows, quiet) = Windows::begin(options.extent, memory.header());
        let quiet = quiet || options.marked;
        memory.header().quiet.store(u32::from(quiet), Release);
        let started = launch::start(&target, &options, &memory)?;
        Ok(Recorder {
            memory,
            started,
            command: command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            walkers: (0..SLOTS).map(|_| Walker::default()).collect(),
            registry: Registry::default(),
            lost_execs: 0,
            status: None,
            options,
            windows,
            static_target: target.is_static,
        })
    }

    /// The command's name without its folder.
    pub fn name(&self) -> String {
        let first = self.command.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first).to_string()
    }

    pub(super) fn max_threads(&self) -> usize {
        self.options.max_threads.clamp(1, SLOTS)
    }

    /// Has the process ended? (Its last records may still have to be taken.)
    pub(super) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            // a process that cannot be waited for is not ours any more
            self.status = self
                .started
                .child
                .try_wait()
                .unwrap_or(Some(ExitStatus::from_raw(0)));
        }
        self.status.is_some()
    }

    /// The same, as far as it was known when last asked.
    pub(super) fn known_to_have_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Hands the next chunk of a slot to `out`. `false` when there is none now.
    pub(super) fn take(&mut self, slot: usize, out: &mut impl Runs) -> bool {
        let (walker, registry) = (&mut self.walkers[slot], &mut self.registry);
        let compiled = self.started.compiled;
        self.memory.take_chunk(slot, |words, sites| {
            walker.walk(words, sites, compiled, registry, out)
        })
    }

    /// The same for records that a thread had not published when its process ended; only once, and after the last
    /// chunk.
    pub(super) fn take_rest(&mut self, slot: usize, out: &mut impl Runs) {
        let (walker, registry) = (&mut self.walkers[slot], &mut self.registry);
        let compiled = self.started.compiled;
        self.memory.take_rest(slot, |words, sites| {
            walker.walk(words, sites, compiled, registry, out)
        });
    }

    /// Child processes that have gone: calls `rest` for each slot of a thread that did not end by itself, when all
    /// that it published has been taken, and makes room for others.
    pub(super) fn bury<E>(
        &mut self,
        mut rest: impl FnMut(&mut Recorder, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in 0..PROCESSES {
            let process = &self.memory.header().table[entry];
            let (pid, number) = (process.pid.load(Acquire), process.number.load(Acquire));
            // the first is our own child, which is waited for
            if pid == 0 || number == 0 || is_alive(pid) {
                continue;
            }
            let mine: Vec<usize> = (0..self.memory.slots())
                .filter(|&slot| {
                    let state = self.memory.state(slot);
                    let lives = matches!(state, ThreadState::Running | ThreadState::Waiting);
                    lives && self.memory.process_of(slot) == number
                })
                .collect();
            if mine.iter().any(|&slot| self.memory.has_chunk(slot)) {
                continue;
            }
            for slot in mine {
                rest(self, slot)?;
                self.memory.end_slot(slot);
            }
            let process = &self.memory.header().table[entry];
            self.lost_execs += process.replaced.load(Acquire);
            process.pid.store(0, Release);
        }
        Ok(())
    }

    /// Exit code and signal, once the process has ended.
    pub(super) fn end(&self) -> End {
        let skipped = self.memory.header().skipped.load(Acquire);
        End {
            exit_code: self.status.and_then(|status| status.code()),
            signal: self.status.and_then(|status| status.signal()),
            warnings: self.warnings(),
            skipped_instructions: match self.options.extent {
                Extent::Whole => 0,
                _ => skipped,
            },
            windows: match self.options.extent {
                Extent::Sample(_) | Extent::Thinning(_) if skipped > 0 => {
                    self.windows.shares(skipped, self.memory.header())
                }
                _ => Vec::new(),
            },
            touches: self.walkers.iter().map(|walker| walker.touches).sum(),
            ..End::default()
        }
    }

    /// Threads that run now, rather than wait in the system.
    fn running(&self) -> u32 {
        let runs = |&slot: &usize| self.memory.state(slot) == ThreadState::Running;
        (0..self.memory.slots()).filter(runs).count() as u32
    }

    /// Losses of the recording, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let header = self.memory.header();
        let mut warnings = Vec::new();
        let mut say = |count: u32, what: String| {
            if count > 0 {
                warnings.push(what);
            }
        };
        let spawned = header.spawned.load(Acquire);
        let arrived = header.arrived.load(Acquire).saturating_sub(1);
        let first = header
            .table
            .iter()
            .find(|entry| entry.pid.load(Acquire) != 0 && entry.number.load(Acquire) == 0);
        let replaced = first.map_or(0, |entry| entry.replaced.load(Acquire));
        let execs = replaced + self.lost_execs + spawned.saturating_sub(arrived);
        let lost = header.lost_processes.load(Acquire);
        let alive = header.table.iter().filter(|entry| {
            let pid = entry.pid.load(Acquire);
            pid != 0 && entry.number.load(Acquire) != 0 && is_alive(pid)
        });
        let alive = alive.count() as u32;
        say(
            execs,
            format!(
                "{execs} programs that were started by exec are not recorded, since they were not compiled with `varve cc`"
            ),
        );
        say(
            lost,
            format!(
                "{lost} processes are not recorded: set-user-id, for another processor, or more than {PROCESSES} at once"
            ),
        );
        if self.status.is_some() {
            say(
                alive,
                format!(
                    "{alive} child processes outlived the program; nothing after its end is recorded"
                ),
            );
        }
        let threads = header.lost_threads.load(Acquire);
        say(
            threads,
            format!("{threads} threads beyond {SLOTS} at once were not recorded"),
        );
        let sites = header.lost_sites.load(Acquire);
        say(
            sites,
            format!(
                "the table of code is full: {sites} instructions count wrongly, their addresses are right"
            ),
        );
        say(
            u32::from(self.static_target && self.options.allocations && !self.started.compiled),
            "the program is statically linked, so its allocations have no call sites".into(),
        );
        warnings
    }

    /// Did the probe ever begin?
    pub(super) fn check_probe(&self) -> Result<(), RecordError> {
        if self.memory.header().processes.load(Acquire) != 0 {
            return Ok(());
        }
        let why = match self.status {
            Some(status) if status.code() == Some(1) => {
                "QEMU has no plugin support or refused the plugin; Debian's qemu-user 7.2 works"
                    .to_string()
            }
            Some(status) => status.to_string(),
            None => "it is still starting".to_string(),
        };
        Err(RecordError::NoProbe(why))
    }

    /// Records until the program ends. Interrupts (Ctrl-C) go to the program alone meanwhile, so that its trace
    /// is finished like any other.
    ///
    /// # Errors
    /// The file cannot be written (the program is killed then, and the written part stays readable), or the probe never
    /// began.
    pub fn record_to(self, path: &Path) -> Result<End, RecordError> {
        let writer = TraceWriter::create(path, &self.file_header())?;
        self.record(writer)
    }

    /// The same while `goes_on` says so; then the program is killed. One that runs for longer than that has a trace of what it did
    /// so far.
    ///
    /// # Errors
    /// As [`Recorder::record_to`], of both files; [`RecordError::Stopped`].
    pub fn record_while(
        self,
        goes_on: &dyn Fn() -> bool,
        path: &Path,
        mut so_far: Option<EarlyTrace>,
    ) -> Result<End, RecordError> {
        let writer = TraceWriter::create(path, &self.file_header())?;
        let began = Instant::now();
        self.record_and(writer, |recorder, sink| {
            if !goes_on() {
                return Err(RecordError::Stopped);
            }
            if let Some(so_far) = so_far.take_if(|so_far| began.elapsed() >= so_far.after) {
                let end = recorder.end_of(sink);
                match sink.writer.so_far(so_far.path, end) {
                    Ok(end) => (so_far.told)(end),
                    // The run is worth more than its early trace, which takes no room then.
                    Err(_) => drop(std::fs::File::create(so_far.path)),
                }
            }
            Ok(())
        })
    }

    /// Header of a trace of this recording.
    pub fn file_header(&self) -> FileHeader {
        let (source, instructions) = match self.started.compiled {
            true => (
                "compiled",
                "estimated: from the distance in the code between two instrumented accesses, within about 30 %",
            ),
            false => ("qemu", "counted: every guest instruction that QEMU ran"),
        };
        let version = env!("CARGO_PKG_VERSION").to_string();
        FileHeader {
            command: self.command.clone(),
            source: source.into(),
            instructions: instructions.into(),
            notes: [("recorder".to_string(), format!("varve {version}"))].into(),
            part: match self.options.extent {
                Extent::Whole if self.options.marked => Some(Part::Window),
                Extent::Whole => None,
                Extent::Sample(share) => Some(Part::Sample {
                    ppm: (share * 1e6) as u32,
                }),
                Extent::Thinning(_) => Some(Part::Thinning),
                Extent::Window { .. } => Some(Part::Window),
            },
        }
    }

    /// The same as [`Recorder::record_to`], to any writer.
    pub fn record<W: Write>(self, writer: TraceWriter<W>) -> Result<End, RecordError> {
        self.record_and(writer, |_, _| Ok(()))
    }

    /// Calls `each` again and again while the program runs.
    fn record_and<W: Write>(
        mut self,
        writer: TraceWriter<W>,
        mut each: impl FnMut(&Recorder, &mut Sink<W>) -> Result<(), RecordError>,
    ) -> Result<End, RecordError> {
        let _quiet = IgnoreInterrupt::new();
        let mut sink = Sink::new(writer, self.started.compiled);
        let mut looked = Instant::now();
        let mut any = false;
        loop {
            // asked before the last chunks are taken, so that none can be missed; there is no need while they keep coming
            let ended = !any && self.has_ended();
            any = false;
            for slot in 0..self.memory.slots() {
                if self.take(slot, sink.coder(slot)) {
                    any = true;
                    sink.put(slot, &self.memory, &self.registry)?;
                }
            }
            let running = self.running();
            self.windows
                .step(sink.total(), running, self.memory.header());
            sink.warm = self.windows.warm();
            if looked.elapsed().as_millis() >= u128::from(LOOK_EVERY_MS) {
                looked = Instant::now();
                self.bury(|recorder, slot| {
                    recorder.take_rest(slot, sink.coder(slot));
                    // Its process was ended with it, and what that had is gone.
                    let tick = recorder.memory.header().tick.fetch_add(1, AcqRel);
                    sink.coder(slot).event(RawEvent::Exit { tick });
                    sink.put(slot, &recorder.memory, &recorder.registry)
                })?;
            }
            if any {
                each(&self, &mut sink)?;
                continue;
            }
            if ended {
                break;
            }
            each(&self, &mut sink)?;
            let most = self.windows.wake_ms().unwrap_or(LOOK_EVERY_MS);
            self.memory.sleep_unless(most.min(LOOK_EVERY_MS), |memory| {
                (0..memory.slots()).any(|slot| memory.has_chunk(slot))
            });
        }
        self.check_probe()?;
        for slot in 0..self.memory.slots() {
            self.take_rest(slot, sink.coder(slot));
            sink.coder(slot).close();
            sink.put(slot, &self.memory, &self.registry)?;
        }
        let end = self.end_of(&mut sink);
        let (_, end) = sink.writer.finish(end)?;
        Ok(end)
    }

    /// The end of a trace, as far as the program has come.
    fn end_of<W: Write>(&self, sink: &mut Sink<W>) -> End {
        let mut end = self.end();
        if sink.resident.hidden {
            end.warnings.push(
                "/proc/PID/pagemap cannot be read: what the program touched between windows is known by its accesses alone, so that \
                 it takes less memory here than it did"
                    .into(),
            );
        }
        sink.update_modules(&self.memory);
        end.modules = sink.modules.loaded(!self.started.compiled);
        let stack = |(process, start, end)| StackRange {
            process,
            start,
            end,
        };
        end.stacks = sink.modules.stacks().into_iter().map(stack).collect();
        end.java = sink.java.clone();
        end.colors = sink.colors;
        end
    }
}

/// Does a process with this number exist?
fn is_alive(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let asked = unsafe { libc::kill(pid as libc::pid_t, 0) };
    asked == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.memory.close();
        if !self.has_ended() {
            // errors mean that it has gone by itself
            let _ = self.started.child.kill();
            let _ = self.started.child.wait();
        }
    }
}

/// While it lives, interrupts from the terminal do not end this process.
pub(super) struct IgnoreInterrupt {
    before: libc::sighandler_t,
}

impl IgnoreInterrupt {
    pub fn new() -> IgnoreInterrupt {
        // SAFETY: ignoring a signal runs no code of ours.
        let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        IgnoreInterrupt { before }
    }
}

impl Drop for IgnoreInterrupt {
    fn drop(&mut self) {
        // SAFETY: puts back the old handler.
        unsafe { libc::signal(libc::SIGINT, self.before) };
    }
}
