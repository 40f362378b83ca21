//! CommandRecording a command for replays. It runs on a thread of its own, so that there may be an answer before the command ends.

use super::trace;
use crate::ui::{self, Failure, failed, wrong};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempPath;
use varve_trace::host::{EarlyTrace, RecordError, Recorder, RecorderOptions};
use varve_trace::{End, TraceError};

/// A command that is recorded.
pub struct CommandRecording {
    marked: bool,
    kept: Option<TempPath>,
    so_far: Option<TempPath>,
    news: Receiver<News>,
    /// Nobody waits for it any more.
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread that records has to say.
enum News {
    /// It has begun, or not; with what will be lost.
    Begun(Result<Vec<String>, RecordError>),
    SoFar(End),
    Ended(Result<End, RecordError>),
}

/// A trace of a command.
pub struct CommandTrace {
    /// Its file, which vanishes with this.
    pub path: TempPath,
    /// How the command ended.
    pub end: End,
    /// It has not ended.
    pub goes_on: bool,
}

/// Records a command into a private file.
pub fn record(command: &[OsString], options: RecorderOptions) -> Result<CommandTrace, Failure> {
    CommandRecording::start(command, options, None)?.next()
}

/// A recorder of a command that has begun.
pub fn recorder(command: &[OsString], options: RecorderOptions) -> Result<Recorder, Failure> {
    let recorder = Recorder::start(command, options).map_err(wrong)?;
    note(recorder.warnings());
    Ok(recorder)
}

fn note(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        ui::message!("varve: note: {line}");
    }
}

fn file() -> Result<TempPath, Failure> {
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix("varve-").suffix(".trace").tempfile();
    let file = file.map_err(|e| {
        failed(format!(
            "a file for what is recorded: {e}: set TMPDIR to a folder that has room"
        ))
    })?;
    Ok(file.into_temp_path())
}

impl CommandRecording {
    /// Starts a command. `first`: if it runs for longer than that, there is a trace of what it did so far.
    pub fn start(
        command: &[OsString],
        options: RecorderOptions,
        first: Option<Duration>,
    ) -> Result<CommandRecording, Failure> {
        // While it is recorded, Ctrl-C is the command's alone; afterwards this flag gets it.
        ui::stop_flag();
        let (kept, so_far) = (file()?, first.map(|_| file()).transpose()?);
        let (say, news) = channel();
        let paths = (kept.to_path_buf(), so_far.as_ref().map(|p| p.to_path_buf()));
        let (command, marked) = (command.to_vec(), options.marked);
        let given_up = Arc::new(AtomicBool::new(false));
        let goes_on = {
            let given_up = given_up.clone();
            move || !ui::stopped() && !given_up.load(Ordering::Relaxed)
        };
        // The command ends with the thread that started it.
        let thread = std::thread::spawn(move || {
            let recorder = match Recorder::start(&command, options) {
                Ok(recorder) => recorder,
                Err(e) => return tell(&say, News::Begun(Err(e))),
            };
            tell(&say, News::Begun(Ok(recorder.warnings())));
            let mut told = |end| tell(&say, News::SoFar(end));
            let so_far = first
                .zip(paths.1.as_deref())
                .map(|(after, path)| EarlyTrace {
                    after,
                    path,
                    told: &mut told,
                });
            let end = recorder.record_while(&goes_on, &paths.0, so_far);
            tell(&say, News::Ended(end));
        });
        let recording = CommandRecording {
            marked,
            kept: Some(kept),
            so_far,
            news,
            given_up,
            thread: Some(thread),
        };
        match recording.news.recv() {
            Ok(News::Begun(begun)) => note(begun.map_err(wrong)?),
            _ => return Err(died()),
        }
        Ok(recording)
    }

    /// Waits for the next trace: of what the command did so far, once that takes long, and of all of it.
    pub fn next(&mut self) -> Result<CommandTrace, Failure> {
        let bar = self.kept.as_deref().map(trace::spinner);
        let news = self.news.recv();
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if ui::stopped() {
            return Err(ui::interrupted());
        }
        let (path, end, goes_on) = match news {
            Ok(News::SoFar(end)) => (self.so_far.take(), end, true),
            Ok(News::Ended(end)) => (self.kept.take(), end.map_err(unrecorded)?, false),
            _ => return Err(died()),
        };
        if !goes_on {
            note(trace::ended(&end).into_iter().chain(trace::part(&end)));
        }
        // The end of a thread is an op of no instructions.
        if self.marked && end.instructions == 0 {
            return Err(wrong(
                "--marked: the command never looked up the file /varve/record/begin, so nothing was recorded: leave --marked out",
            ));
        }
        let path = path.ok_or_else(died)?;
        Ok(CommandTrace { path, end, goes_on })
    }
}

impl Drop for CommandRecording {
    /// The command ends, and what its recorder needed is gone.
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Who asked may have gone.
fn tell(say: &Sender<News>, news: News) {
    let _ = say.send(news);
}

fn died() -> Failure {
    failed("the thread that records has died")
}

/// The failure of a recording, whose file is gone.
fn unrecorded(e: RecordError) -> Failure {
    match e {
        RecordError::Trace(TraceError::DiskFull { path, bytes, .. }) => failed(format!(
            "{}: the disk is full after {bytes} bytes of trace: set TMPDIR to a folder that has room, or record less with --sample 1%",
            path.display()
        )),
        e => failed(e),
    }
}
