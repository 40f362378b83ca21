//! A command whose virtual machines load the agent.

use super::report::{self, SeenMachines};
use super::{AllocationSampling, JavaError, agent, options};
use crate::launch::{self, Folder, Running};
use crate::program;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitStatus;

/// Runs a command, waits for it, and returns the allocations of each Java virtual machine that it starts. The program's input and
/// output are the caller's.
///
/// # Errors
/// [`JavaError`]: the program is not found or cannot be started, no virtual machine reported its allocations. A program that
/// fails is no error; see [`SeenMachines::status`].
pub fn command(
    words: &[OsString],
    sampling: &AllocationSampling,
) -> Result<SeenMachines, JavaError> {
    let mut command = launch::command(words)?;
    program::find(command.get_program())?;
    let folder = Folder::new()?;
    let (agent, options) = (agent(&folder)?, options(&folder.report(), sampling));
    launch::add_agent(&mut command, &agent, OsStr::new(&options));
    let ended = launch::run(command, |running| wait(running, sampling))?;
    report::read(&folder.reported(), Some(ended.status))
}

/// Waits for the command; after its time it is asked to end.
fn wait(running: &mut Running, sampling: &AllocationSampling) -> io::Result<ExitStatus> {
    if let Some(time) = sampling.time {
        if let Some(status) = running.wait_for(time)? {
            return Ok(status);
        }
        running.ask_to_end();
    }
    running.wait()
}
