//! A command whose virtual machines load the agent.

use super::report::{self, Seen};
use super::{JavaError, Sampling, agent, options};
use crate::error::LiveError;
use crate::interrupts::Interrupts;
use crate::java::run::JAVA_OPTIONS;
use crate::program;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often it is looked whether a command is to end before its own end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs `command`, waits for it, and tells of the allocations of each Java virtual machine that it starts. The program's input and
/// output are the caller's.
///
/// # Errors
/// [`JavaError`]: the program is not found or cannot be started, no virtual machine has told of its allocations. A program that
/// fails is no error; see [`Seen::status`].
pub fn command(words: &[OsString], sampling: &Sampling) -> Result<Seen, JavaError> {
    let (name, arguments) = words.split_first().ok_or(LiveError::NoCommand)?;
    program::find(name)?;
    let folder = tempfile::tempdir().map_err(|error| LiveError::File {
        what: "cannot make a directory in",
        path: std::env::temp_dir(),
        error,
    })?;
    let (agent, report) = (agent(folder.path())?, folder.path().join("report"));
    let mut given = std::env::var_os(JAVA_OPTIONS).unwrap_or_default();
    if !given.is_empty() {
        given.push(" ");
    }
    given.push("-agentpath:");
    given.push(&agent);
    given.push("=");
    given.push(options(&report, sampling));
    let mut child = Command::new(name);
    child.args(arguments).env(JAVA_OPTIONS, given);
    let start_error = |error| LiveError::Start {
        program: PathBuf::from(name),
        error,
    };
    let interrupts = Interrupts::left_to_the_program();
    let mut child = child.spawn().map_err(start_error)?;
    interrupts.begin(&child);
    let ended = wait(&mut child, sampling);
    interrupts.end();
    let status = ended.map_err(start_error)?;
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    report::read(&text, Some(status))
}

/// Waits for the command; after its time it is asked to end.
fn wait(child: &mut Child, sampling: &Sampling) -> std::io::Result<ExitStatus> {
    let Some(time) = sampling.time else {
        return child.wait();
    };
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // SAFETY: takes no memory; the child has not been waited for, so that its number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    child.wait()
}
