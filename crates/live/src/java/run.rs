//! Starts a program with the agent inside.

use super::report::{JavaProcess, JavaReport};
use crate::error::LiveError;
use crate::interrupts::Interrupts;
use crate::nodes::{Kinds, Mask, NodeMemory};
use crate::report::read_lines;
use crate::{program, shim};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Where the memory of a virtual machine is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// By what it is for; whether that is in fast memory.
    Generations {
        /// The young generation.
        young: bool,
        /// The old generation.
        old: bool,
        /// All else.
        outside: bool,
    },
    /// Pages in turns on the nodes of both kinds.
    Interleaved,
}

/// Options that every virtual machine takes, whoever starts it.
pub(super) const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Runs `command` with the memory of its Java virtual machines on nodes, waits for it, and reports. The program's input and output
/// are the caller's. What is no virtual machine is where its children inherit that it is: all else.
///
/// # Errors
/// [`LiveError`]: the nodes cannot be used, the program is not found or cannot be started. A program that fails is no error; see
/// [`JavaReport::status`].
pub fn run(command: &[OsString], placing: Placing, kinds: &Kinds) -> Result<JavaReport, LiveError> {
    let (name, arguments) = command.split_first().ok_or(LiveError::NoCommand)?;
    let file = program::find(name)?;
    let why = match cfg!(target_arch = "x86_64") {
        true => program::why_not_loadable(&file),
        false => Some("Java virtual machines are placed on x86-64 alone".into()),
    };
    if let Some(why) = why {
        return Err(LiveError::NotLoadable { program: file, why });
    }
    NodeMemory::new(kinds.clone())?;
    let dir = tempfile::tempdir().map_err(|error| LiveError::File {
        what: "cannot make a directory in",
        path: std::env::temp_dir(),
        error,
    })?;
    let (agent, report) = (dir.path().join("varve-agent.so"), dir.path().join("report"));
    shim::write_agent(&agent).map_err(|error| LiveError::File {
        what: "cannot write",
        path: agent.clone(),
        error,
    })?;
    let mut child = Command::new(name);
    child.args(arguments);
    child.env("LD_PRELOAD", shim::preload(&agent));
    child.env(JAVA_OPTIONS, options(&agent, &report, placing, kinds));
    let (mode, mask) = inherited(placing, kinds);
    // SAFETY: between fork and exec only one system call is made, which allocates nothing; the mask lives in the closure.
    unsafe {
        child.pre_exec(move || {
            let set = libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), mask.limit());
            match set {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let start_error = |error| LiveError::Start {
        program: PathBuf::from(name),
        error,
    };
    let interrupts = Interrupts::left_to_the_program();
    let begun = Instant::now();
    let mut child = child.spawn().map_err(start_error)?;
    interrupts.begin(&child);
    let ended = child.wait();
    interrupts.end();
    let status = ended.map_err(start_error)?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    let (processes, torn) = read_lines(&text);
    Ok(JavaReport {
        status,
        seconds,
        notes: notes(&processes, torn, placing),
        processes,
    })
}

/// The policy that the program inherits: for all that is no generation.
fn inherited(placing: Placing, kinds: &Kinds) -> (i32, Mask) {
    /// linux/mempolicy.h, since Linux 5.15
    const MPOL_PREFERRED_MANY: i32 = 5;
    let nodes = match placing {
        Placing::Interleaved => {
            let both: Vec<u32> = kinds.fast.iter().chain(&kinds.slow).copied().collect();
            return (libc::MPOL_INTERLEAVE, Mask::of(&both));
        }
        Placing::Generations { outside, .. } => of(outside, kinds),
    };
    let mode = match nodes.len() {
        1 => libc::MPOL_PREFERRED,
        _ => MPOL_PREFERRED_MANY,
    };
    (mode, Mask::of(nodes))
}

fn of(fast: bool, kinds: &Kinds) -> &[u32] {
    kinds.of_tier(u8::from(!fast))
}

/// What the agent is told, after the user's own options.
fn options(agent: &Path, report: &Path, placing: Placing, kinds: &Kinds) -> OsString {
    let mut value = std::env::var_os(JAVA_OPTIONS).unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push("-agentpath:");
    value.push(agent);
    value.push("=report=");
    value.push(report);
    if let Placing::Generations { young, old, .. } = placing {
        let mut uses = vec![("young", young), ("old", old)];
        // A heap whose parts change their role is placed where all of them would be.
        if young == old {
            uses.push(("heap", old));
        }
        for (what, fast) in uses {
            value.push(format!(";{what}={}", Kinds::list(of(fast, kinds))));
        }
    }
    value
}

fn notes(processes: &[JavaProcess], torn: usize, placing: Placing) -> Vec<String> {
    let apart = matches!(placing, Placing::Generations { young, old, .. } if young != old);
    let mut notes = Vec::new();
    if torn > 0 {
        notes.push(format!("{torn} reports of virtual machines cannot be read"));
    }
    if processes.is_empty() {
        notes.push("no Java virtual machine has told where its memory is: none has started, or it was killed".into());
    }
    for process in processes {
        let who = format!("java ({})", process.pid);
        if process.refused > 0 {
            notes.push(format!(
                "{who}: {} ranges could not be bound: {}",
                process.refused, process.why_refused
            ));
        }
        if apart && process.uses().contains(&"heap") {
            notes.push(format!(
                "{who}: parts of the heap of {} change their role, so that no generation was placed: take -XX:+UseSerialGC or \
                 -XX:+UseParallelGC",
                process.collector
            ));
        }
        for what in process.uses() {
            let (nodes, elsewhere) = process.part(what).unwrap_or_default();
            if elsewhere > 0 {
                let all: u64 = nodes.values().sum();
                notes.push(format!(
                    "{who}: {:.1} of {:.1} MiB of {what} are on other nodes than asked for: theirs were full",
                    elsewhere as f64 / f64::from(1 << 20),
                    all as f64 / f64::from(1 << 20)
                ));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_which_nodes_each_generation_is_on() {
        let kinds = Kinds {
            fast: vec![0, 2],
            slow: vec![1],
        };
        let said = |placing| {
            let words = options(Path::new("/a.so"), Path::new("/r"), placing, &kinds);
            let words = words.into_string().unwrap();
            words.split_once("-agentpath:").unwrap().1.to_string()
        };
        let by = |young, old| Placing::Generations {
            young,
            old,
            outside: true,
        };
        assert_eq!(said(by(true, false)), "/a.so=report=/r;young=0+2;old=1");
        assert_eq!(
            said(by(false, false)),
            "/a.so=report=/r;young=1;old=1;heap=1"
        );
        assert_eq!(said(Placing::Interleaved), "/a.so=report=/r");
    }

    #[test]
    fn what_is_not_where_it_was_asked_for_is_noted() {
        let line = r#"{"pid":7,"collector":"Serial","parts":[
            {"what":"young","wanted":[0],"nodes":{"0":1048576}},
            {"what":"old","wanted":[1],"nodes":{"0":1048576,"1":3145728}}]}"#;
        let (processes, torn) = read_lines(&line.replace('\n', ""));
        let notes = notes(&processes, torn, Placing::Interleaved);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("1.0 of 4.0 MiB of old"), "{notes:?}");
    }
}
