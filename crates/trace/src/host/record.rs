//! The recorder: a running program on one side, a trace or a live stream of ops on the other.

use super::command::{Mode, resolve};
use super::decode::{Batch, Decoder};
use super::error::RecordError;
use super::launch::{self, Started};
use super::live::LiveProgram;
use super::memory::SharedMemory;
use super::ring::SLOTS;
use super::sink::Sink;
use crate::FileHeader;
use crate::writer::{End, TraceWriter};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::Acquire;

/// How a program is recorded; the default records any program with its allocation sites.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// Under QEMU or by the compiled probe.
    pub mode: Mode,
    /// Record allocations with their call sites.
    pub allocations: bool,
    /// Threads that a live program has on the model; more are not seen.
    pub max_threads: usize,
}

impl Default for RecorderOptions {
    fn default() -> RecorderOptions {
        RecorderOptions {
            mode: Mode::Auto,
            allocations: true,
            max_threads: 16,
        }
    }
}

/// Milliseconds between looks at whether the program has ended, when it does not ring.
const LOOK_EVERY_MS: u32 = 20;

/// A program that runs under a probe. It is killed when this is dropped, and when the thread that started it ends.
pub struct Recorder {
    pub(super) memory: SharedMemory,
    started: Started,
    command: Vec<String>,
    decoders: Vec<Decoder>,
    status: Option<ExitStatus>,
    options: RecorderOptions,
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
        let started = launch::start(&target, options.mode, options.allocations, &memory)?;
        Ok(Recorder {
            memory,
            started,
            command: command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            decoders: vec![Decoder::default(); SLOTS],
            status: None,
            options,
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

    /// Has the process ended? (What it wrote may still have to be taken.)
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

    /// Decodes the next chunk of a slot into `batch`. `false` when there is none now.
    pub(super) fn take(&mut self, slot: usize, batch: &mut Batch) -> bool {
        let (decoder, compiled) = (&mut self.decoders[slot], self.started.compiled);
        self.memory
            .take_chunk(slot, |records, sites| match compiled {
                true => decoder.compiled(records, batch),
                false => decoder.qemu(records, sites, batch),
            })
    }

    /// Decodes what the threads had not published when the process ended; only once, and after the last chunk.
    pub(super) fn take_rest(&mut self, slot: usize, batch: &mut Batch) {
        let (decoder, compiled) = (&mut self.decoders[slot], self.started.compiled);
        self.memory
            .take_rest(slot, |records, sites| match compiled {
                true => decoder.compiled(records, batch),
                false => decoder.qemu(records, sites, batch),
            });
    }

    /// Exit code and signal, once the process has ended.
    pub(super) fn end(&self) -> End {
        End {
            exit_code: self.status.and_then(|status| status.code()),
            signal: self.status.and_then(|status| status.signal()),
            warnings: self.warnings(),
            ..End::default()
        }
    }

    /// What was not seen, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let header = self.memory.header();
        let mut warnings = Vec::new();
        let mut say = |count: u32, what: String| {
            if count > 0 {
                warnings.push(what);
            }
        };
        let (forks, execs) = (header.forks.load(Acquire), header.execs.load(Acquire));
        say(
            forks,
            format!("{forks} child processes were started; only the first process is recorded"),
        );
        say(execs, "the program replaced itself by another one (exec), which is not recorded; record that one by its own name".into());
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
        if self.memory.header().pid.load(Acquire) != 0 {
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

    /// The program as the model runs it, while it runs.
    pub fn live(self) -> LiveProgram {
        LiveProgram::new(self)
    }

    /// Records until the program ends. Interrupts (Ctrl-C) go to the program alone meanwhile, so that its trace
    /// is finished like any other.
    ///
    /// # Errors
    /// The file cannot be written (the program is killed then, and what was written stays readable), or the probe
    /// never began.
    pub fn record_to(self, path: &Path) -> Result<End, RecordError> {
        let writer = TraceWriter::create(path, &self.file_header())?;
        self.record(writer)
    }

    /// What a trace of this recording says about itself.
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
        }
    }

    /// The same as [`Recorder::record_to`], to any writer.
    pub fn record<W: Write>(mut self, writer: TraceWriter<W>) -> Result<End, RecordError> {
        let _quiet = IgnoreInterrupt::new();
        let mut sink = Sink::new(writer);
        let mut batch = Batch::default();
        loop {
            let ended = self.has_ended();
            let mut any = false;
            for slot in 0..self.memory.slots() {
                if self.take(slot, &mut batch) {
                    any = true;
                    sink.put(slot, &mut batch, &self.memory)?;
                }
            }
            if any {
                continue;
            }
            if ended {
                break;
            }
            self.memory.sleep_unless(LOOK_EVERY_MS, |memory| {
                (0..memory.slots()).any(|slot| memory.has_chunk(slot))
            });
        }
        self.check_probe()?;
        for slot in 0..self.memory.slots() {
            self.take_rest(slot, &mut batch);
            sink.put(slot, &mut batch, &self.memory)?;
        }
        let (_, end) = sink.writer.finish(self.end())?;
        Ok(end)
    }
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
struct IgnoreInterrupt {
    before: libc::sighandler_t,
}

impl IgnoreInterrupt {
    fn new() -> IgnoreInterrupt {
        // SAFETY: ignoring a signal runs no code of ours.
        let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        IgnoreInterrupt { before }
    }
}

impl Drop for IgnoreInterrupt {
    fn drop(&mut self) {
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGINT, self.before) };
    }
}
