//! Programs that are started here with something of ours inside.
//!
//! ```text
//! mod.rs         what a command gets: a library before others, an agent behind the user's own options
//! library.rs     the libraries
//! folder.rs      the files of a run, and what its processes report into one of them
//! running.rs     starts the program, and waits for it
//! interrupts.rs  signals meanwhile
//! ```
//!
//! ```text
//! command -> loadable -> Folder: library and files -> preload or add_agent -> run, watched meanwhile -> Folder::ran
//! ```

mod folder;
mod interrupts;
pub(crate) mod library;
mod running;

pub(crate) use folder::{Folder, STOPPED};
pub(crate) use interrupts::Interrupts;
pub(crate) use running::{Running, run};

use crate::error::LiveError;
use crate::program;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

const PRELOAD: &str = "LD_PRELOAD";
/// Options for every virtual machine that the command starts.
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The command of these words: a program and its arguments.
pub(crate) fn command(words: &[OsString]) -> Result<Command, LiveError> {
    let (name, arguments) = words.split_first().ok_or(LiveError::NoCommand)?;
    let mut command = Command::new(name);
    command.args(arguments);
    Ok(command)
}

/// The file of a program, in which `why_not` finds nothing that is in the way.
pub(crate) fn loadable(
    name: &OsStr,
    why_not: impl FnOnce(&Path) -> Option<String>,
) -> Result<PathBuf, LiveError> {
    let program = program::find(name)?;
    match why_not(&program) {
        Some(why) => Err(LiveError::NotLoadable { program, why }),
        None => Ok(program),
    }
}

/// Has a command load a library, before those that it preloads anyway.
pub(crate) fn preload(command: &mut Command, library: &Path) {
    let others = variable(command, PRELOAD);
    let words = [library.into()].into_iter().chain(others);
    let preload = words.collect::<Vec<_>>().join(OsStr::new(":"));
    command.env(PRELOAD, preload);
}

/// Has the Java virtual machines of a command load an agent with these options, after the user's own.
pub(crate) fn add_agent(command: &mut Command, agent: &Path, options: &OsStr) {
    let mut agent_path = OsString::from("-agentpath:");
    agent_path.push(agent);
    agent_path.push("=");
    agent_path.push(options);
    let words = variable(command, JAVA_OPTIONS)
        .into_iter()
        .chain([agent_path]);
    let given = words.collect::<Vec<_>>().join(OsStr::new(" "));
    command.env(JAVA_OPTIONS, given);
}

/// A variable that a command will have: its own, or the one that it inherits; `None` if it is empty.
fn variable(command: &Command, name: &str) -> Option<OsString> {
    let own = command.get_envs().find(|(key, _)| *key == name);
    let value = match own {
        Some((_, own)) => own.map(OsString::from),
        None => std::env::var_os(name),
    };
    value.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Ran;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        command(&["sh", "-c", script].map(OsString::from)).unwrap()
    }

    #[test]
    fn a_library_is_before_others_and_an_agent_behind_the_users_options() {
        let mut some = shell("true");
        some.env(PRELOAD, "/b.so").env(JAVA_OPTIONS, "-Xmx1g");
        preload(&mut some, Path::new("/a.so"));
        add_agent(&mut some, Path::new("/c.so"), OsStr::new("report=/r"));
        let value = |of: &Command, name| variable(of, name).unwrap().into_string().unwrap();
        assert_eq!(value(&some, PRELOAD), "/a.so:/b.so");
        let options = value(&some, JAVA_OPTIONS);
        assert_eq!(options, "-Xmx1g -agentpath:/c.so=report=/r");
        let mut none = shell("true");
        none.env(PRELOAD, "").env(JAVA_OPTIONS, "");
        preload(&mut none, Path::new("/a.so"));
        add_agent(&mut none, Path::new("/c.so"), OsStr::new("end"));
        assert_eq!(value(&none, PRELOAD), "/a.so");
        assert_eq!(value(&none, JAVA_OPTIONS), "-agentpath:/c.so=end");
    }

    #[test]
    fn what_is_no_program_is_said_before_anything_is_started() {
        assert!(matches!(command(&[]), Err(LiveError::NoCommand)));
        let none = loadable(OsStr::new("no-such-program"), |_| None);
        assert!(matches!(none, Err(LiveError::NotFound(_))));
        let error = loadable(OsStr::new("sh"), |_| Some("it is old".into())).unwrap_err();
        assert!(error.to_string().ends_with("/sh: it is old"), "{error}");
    }

    /// Signals are the process's: what is about them is one test.
    #[test]
    fn a_program_runs_to_its_end_and_its_files_go() {
        let folder = Folder::new().unwrap();
        let mut some = shell("echo '{\"pid\":7}' >\"$REPORT\"; echo '{\"p' >>\"$REPORT\"; exit 3");
        some.env("REPORT", folder.report());
        let mut looks = 0;
        let ended = run(some, |running| {
            running.wait_and(|_| {
                looks += 1;
                Ok(())
            })
        });
        let ended = ended.unwrap();
        let ran: Ran<serde_json::Value> = folder.ran(ended.status, ended.seconds, "lines are torn");
        drop(ended);
        assert_eq!((ran.status.code(), looks > 0), (Some(3), true));
        assert_eq!(ran.processes, [serde_json::json!({"pid": 7})]);
        assert_eq!(ran.notes, ["1 lines are torn"]);
        let path = folder.path().to_path_buf();
        drop(folder);
        assert!(!path.exists());

        let error = run(Command::new("/"), Running::wait).err().unwrap();
        assert!(matches!(error, LiveError::Start { .. }), "{error}");
        let passed_on = run(shell("kill -TERM $PPID; sleep 5"), Running::wait).unwrap();
        assert_eq!(passed_on.status.signal(), Some(libc::SIGTERM));
        drop(passed_on);

        let mut running = Running::start(shell("exec sleep 60"), None).unwrap();
        assert_eq!(running.wait_for(Duration::ZERO).unwrap(), None);
        assert_eq!(running.end().signal(), Some(libc::SIGTERM));
    }
}
