//! Loads the agent into a virtual machine that runs, as the JDK's own tools do.
//!
//! ```text
//! /tmp/.attach_pidN      made by us, then SIGQUIT: the machine opens its door (without the file it would print its threads)
//! /tmp/.java_pidN        its door, a socket: "1", "load", agent, "true" (an absolute path), options, each ends in a zero byte
//! the answer             a line with a number, 0 for well, and words
//! ```
//!
//! N is the process's number in its own namespace, and `/tmp` is its own too (`/proc/PID/root/tmp`).

use super::report::{self, SeenMachines};
use super::{AllocationSampling, JavaError, agent, options};
use crate::error::LiveError;
use crate::launch::Folder;
use crate::probe::sysfs::{field, own_number};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a machine may take to open its door, or to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The option of a machine that does not allow attaching.
const CLOSED: &[u8] = b"-XX:+DisableAttachMechanism";
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A virtual machine that runs.
struct Target {
    process: u32,
    /// Its number as it knows it.
    own_number: u32,
    user: u32,
    /// Its `/tmp`, for us, and whether that is ours too.
    tmp: PathBuf,
}

/// Is the process a Java virtual machine?
pub fn is_java(process: u32) -> bool {
    target(process).is_ok()
}

/// Whether a process can be attached to, as far as that is known before.
///
/// # Errors
/// As [`attach`].
pub fn can_attach(process: u32) -> Result<(), JavaError> {
    target(process).map(drop)
}

fn target(process: u32) -> Result<Target, JavaError> {
    let proc = PathBuf::from(format!("/proc/{process}"));
    let user = match fs::metadata(&proc) {
        Ok(folder) => folder.uid(),
        Err(_) => return Err(JavaError::Gone(process)),
    };
    let maps = match fs::read_to_string(proc.join("maps")) {
        Ok(maps) => maps,
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return Err(JavaError::Foreign(process));
        }
        Err(_) => return Err(JavaError::Gone(process)),
    };
    if !maps.lines().any(|line| line.ends_with("/libjvm.so")) {
        return Err(JavaError::NotJava(process));
    }
    let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
    let words = fs::read(proc.join("cmdline")).unwrap_or_default();
    let refuses = words.split(|b| *b == 0).any(|word| word == CLOSED);
    // It would die of the signal, or print its threads.
    if refuses || !catches_quit(&status) {
        return Err(JavaError::Closed(process));
    }
    Ok(Target {
        process,
        own_number: own_number(&status).unwrap_or(process),
        user,
        tmp: tmp(&proc),
    })
}

/// `/tmp` of a process: by its own name where it is ours too, so that it can be tidied up after the process has ended.
fn tmp(proc: &Path) -> PathBuf {
    let theirs = proc.join("root/tmp");
    let id = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    match id(&theirs) == id(Path::new("/tmp")) {
        true => "/tmp".into(),
        false => theirs,
    }
}

/// Does the process handle SIGQUIT?
fn catches_quit(status: &str) -> bool {
    let caught = field(status, "SigCgt").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    caught.is_some_and(|set| set & 1 << (libc::SIGQUIT - 1) != 0)
}

/// Samples the allocations of a virtual machine that runs, until the time is over, it is asked to stop, or it ends. It runs on
/// afterwards.
///
/// # Errors
/// [`JavaError`]: there is no such machine, it belongs to another user, or it does not take the agent.
pub fn attach(process: u32, sampling: &AllocationSampling) -> Result<SeenMachines, JavaError> {
    let target = target(process)?;
    let folder = Folder::below(&target.tmp)?;
    let readable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), readable)
        .map_err(LiveError::file("cannot share", folder.path()))?;
    let library = agent(&folder)?;
    // The machine's user writes it.
    let report = folder.write("report", b"")?;
    // SAFETY: asks the kernel for a number.
    if target.user != unsafe { libc::geteuid() } {
        std::os::unix::fs::chown(&report, Some(target.user), None)
            .map_err(LiveError::file("cannot hand over", &report))?;
    }
    let theirs = |path: &Path| match path.strip_prefix(&target.tmp) {
        Ok(rest) => Path::new("/tmp").join(rest),
        Err(_) => path.into(),
    };
    let (library, begin) = (theirs(&library), options(&theirs(&report), sampling));
    target.load(&library, &begin)?;
    let read = || folder.reported();
    let begun = Instant::now();
    let on = || {
        !sampling.stop.load(Ordering::Relaxed)
            && sampling.time.is_none_or(|time| begun.elapsed() < time)
    };
    // A line before the end says why there are no samples, or that the machine has ended.
    while on() && read().is_empty() && target.is_there() {
        std::thread::sleep(LOOK_EVERY);
    }
    if read().is_empty() && target.is_there() {
        target.load(&library, "end")?;
    }
    report::read(&read(), None)
}

impl Target {
    fn is_there(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process));
        // A zombie has ended too.
        stat.is_ok_and(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, s)| !s.starts_with(['Z', 'X']))
        })
    }

    fn silent(&self, error: io::Error) -> JavaError {
        JavaError::Silent {
            process: self.process,
            error,
        }
    }

    /// Has the machine load an agent.
    fn load(&self, agent: &Path, options: &str) -> Result<(), JavaError> {
        let mut door = self.door()?;
        let answer = ask(&mut door, &agent.display().to_string(), options);
        let answer = answer.map_err(|error| self.silent(error))?;
        refusal(&answer).map_or(Ok(()), |said| {
            Err(JavaError::Refused {
                process: self.process,
                said,
            })
        })
    }

    /// The machine's socket, which it opens when it is asked to.
    fn door(&self) -> Result<UnixStream, JavaError> {
        let path = self.tmp.join(format!(".java_pid{}", self.own_number));
        if !path.exists() {
            self.knock(&path)?;
        }
        let door = UnixStream::connect(&path).map_err(|error| self.silent(error))?;
        let patient = door.set_read_timeout(Some(PATIENCE));
        patient.map_err(|error| self.silent(error))?;
        Ok(door)
    }

    fn knock(&self, door: &Path) -> Result<(), JavaError> {
        let asks = self.tmp.join(format!(".attach_pid{}", self.own_number));
        fs::write(&asks, "").map_err(LiveError::file("cannot write", &asks))?;
        // The machine accepts it only from its own user and from root.
        let _ = std::os::unix::fs::chown(&asks, Some(self.user), None);
        // SAFETY: takes no memory; the process handles the signal.
        let sent = unsafe { libc::kill(self.process as i32, libc::SIGQUIT) };
        let begun = Instant::now();
        while sent == 0 && !door.exists() && self.is_there() && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = fs::remove_file(&asks);
        match (sent, door.exists(), self.is_there()) {
            (0, true, _) => Ok(()),
            (0, false, true) => Err(JavaError::Closed(self.process)),
            (0, false, false) => Err(JavaError::Gone(self.process)),
            _ => Err(JavaError::Foreign(self.process)),
        }
    }
}

/// Asks for an agent to be loaded, and gives what is answered.
fn ask(door: &mut UnixStream, agent: &str, options: &str) -> io::Result<String> {
    let words = ["1", "load", agent, "true", options];
    let request: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    door.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    door.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Why an agent was not loaded, by the machine's answer; `None` if it was.
fn refusal(answer: &str) -> Option<String> {
    let mut lines = answer.lines().map(str::trim).filter(|l| !l.is_empty());
    let well = lines.next() == Some("0");
    let said: Vec<&str> = lines.collect();
    let loaded = said
        .iter()
        .any(|line| line.strip_prefix("return code:").map(str::trim) == Some("0"));
    match (well && loaded, said.first()) {
        (true, _) => None,
        (_, Some(said)) => Some(said.to_string()),
        (_, None) => Some("it gives no reason".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_machines_are_read() {
        assert_eq!(refusal("0\nreturn code: 0\n"), None);
        assert_eq!(
            refusal("0\nreturn code: 1\n").as_deref(),
            Some("return code: 1")
        );
        let disabled = "100\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.\n";
        assert!(refusal(disabled).unwrap().starts_with("Dynamic agent"));
        assert!(refusal("0\n/a.so was not loaded.\n/a.so: no such file\n").is_some());
        assert!(refusal("").is_some());
    }

    #[test]
    fn a_process_that_would_die_of_the_signal_is_seen() {
        let status = "Name:\tjava\nNSpid:\t4242\t7\nSigCgt:\t2000000181005ccf\n";
        assert!(catches_quit(status));
        assert_eq!(own_number(status), Some(7));
        assert!(!catches_quit("SigCgt:\t0000000000000002\n"));
        assert!(!catches_quit(""));
    }

    #[test]
    fn what_is_no_virtual_machine_is_refused_without_a_signal() {
        let own = std::process::id();
        assert!(matches!(can_attach(own), Err(JavaError::NotJava(_))));
        assert!(matches!(can_attach(u32::MAX), Err(JavaError::Gone(_))));
    }
}
