//! A run as a process of its own: what it prints, or why it failed.

use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use varve_report::RunReport;

/// How often it is asked whether a run has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Why a run has no result.
pub enum Failed {
    /// It was stopped.
    Stopped,
    /// In one line.
    Because(String),
}

/// Runs `varve` with these words in a folder, until it ends or is to stop.
pub fn run(
    words: &[String],
    folder: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<RunReport, Failed> {
    let because = |e: std::io::Error| Failed::Because(format!("cannot be started: {e}"));
    let own = std::env::current_exe().map_err(because)?;
    // Files instead of pipes: no thread has to read them while it runs.
    let mut printed = tempfile::tempfile().map_err(because)?;
    let mut said = tempfile::tempfile().map_err(because)?;
    let mut child = Command::new(own)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(printed.try_clone().map_err(because)?)
        .stderr(said.try_clone().map_err(because)?)
        .spawn()
        .map_err(because)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(because)? {
            break status;
        }
        if stopped() {
            end(&mut child);
            return Err(Failed::Stopped);
        }
        std::thread::sleep(LOOK);
    };
    // A Ctrl-C reaches the whole group of processes.
    if stopped() {
        return Err(Failed::Stopped);
    }
    let text = |file: &mut std::fs::File| {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        read.map(|_| text).map_err(because)
    };
    if !status.success() {
        let said = text(&mut said)?;
        let mut lines = said.lines().filter_map(|line| line.strip_prefix("varve: "));
        let last = lines.rfind(|line| !line.starts_with("note: "));
        return Err(Failed::Because(match last {
            Some(line) => line.into(),
            None => format!("ended with {status}"),
        }));
    }
    let printed = text(&mut printed)?;
    serde_json::from_str(&printed).map_err(|e| Failed::Because(format!("printed no result: {e}")))
}

/// Asks a process to end, and waits for it.
fn end(child: &mut Child) {
    if let Some(process) = rustix::process::Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
    let _ = child.wait();
}
