//! Common parts of `varve profile`: the file that a run is added to, and the sampled program.

use super::{files, live};
use crate::args::ProfileArgs;
use crate::ui::{Done, Failure, failed, wrong};
use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use varve_report::write_atomically;
use varve_sites::{ProfileError, SitesFile};

/// The profile that this run's counts are added to. What is wrong is said before the program runs.
pub fn before<P: SitesFile>(a: &ProfileArgs) -> Result<Option<P>, Failure> {
    if !a.output.exists() || a.output.is_dir() {
        files::can_be_made(&a.output)?;
        return Ok(None);
    }
    if !a.add {
        return Err(wrong(format!(
            "{}: there already: add this run to it with --add, or name another file with -o",
            a.output.display()
        )));
    }
    P::read(&a.output).map(Some).map_err(|e| match e {
        ProfileError::Kind { .. } => wrong(format!("{e}; name another file with -o")),
        e => wrong(e),
    })
}

/// Writes a profile, added to what was there before, and gives what is written.
pub fn keep<P: SitesFile + Clone>(
    a: &ProfileArgs,
    before: Option<P>,
    profile: P,
) -> Result<P, Failure> {
    let profile = match before {
        None => profile,
        Some(mut sum) => {
            sum.merge(&profile).map_err(wrong)?;
            sum
        }
    };
    write_atomically(&a.output, profile.text().as_bytes()).map_err(failed)?;
    Ok(profile)
}

/// The subject of sampling.
pub enum SampledTarget<'a> {
    /// A process that runs already.
    Process(u32),
    /// A command.
    Command(&'a [OsString]),
}

/// The subject of sampling; `how` is the beginning of a command line that says so.
pub fn sampled<'a>(a: &'a ProfileArgs, how: &str) -> Result<SampledTarget<'a>, Failure> {
    match (a.live.pid, &a.command[..]) {
        (Some(process), []) => Ok(SampledTarget::Process(process)),
        (None, command @ [_, ..]) => Ok(SampledTarget::Command(command)),
        (Some(_), _) => Err(wrong(
            "--pid samples a process that runs: leave the command out",
        )),
        (None, []) => Err(wrong(format!(
            "nothing to profile: give --pid NUMBER, or a command: `{how} -o FILE.sites -- COMMAND`"
        ))),
    }
}

/// How the program ended, if it is known; what we have ended ourselves did not fail.
pub fn ended(a: &ProfileArgs, status: Option<ExitStatus>, stop: &AtomicBool) -> Done {
    match status {
        Some(status) if a.live.time.is_none() && !stop.load(Ordering::Relaxed) => {
            live::ended(&status)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
