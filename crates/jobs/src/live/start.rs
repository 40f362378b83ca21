//! Starting a program with its memory, processors, variables and log.

use super::LiveOptions;
use super::host::LiveHost;
use super::sys::{self, Cpus};
use crate::error::Error;
use crate::group::{Group, Live, Modelled, Program};
use crate::kinds::Memory;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use varve_live::nodes::Mask;

/// What a program is started with.
pub struct Launch<'a> {
    /// Threads.
    pub threads: u32,
    /// Its memory; `None`: the kernel's choice.
    pub memory: Option<Memory>,
    /// Its processors; `None`: the kernel's choice.
    pub cpus: Option<&'a [u32]>,
    /// Where its output goes.
    pub log: PathBuf,
}

/// Starts a program of a group. It has a process group of its own, which ends with this process.
///
/// # Errors
/// A command that does not exist or cannot be started, a log that cannot be written.
pub fn start(
    group: &Group,
    i: usize,
    launch: &Launch,
    host: &LiveHost,
    options: &LiveOptions,
) -> Result<Child, Error> {
    let program = &group.programs[i];
    let words = words(program, launch.threads, options);
    let log = File::create(&launch.log).map_err(|e| {
        Error::Live(format!(
            "{}: cannot write the log: {e}; choose another folder with --logs",
            launch.log.display()
        ))
    })?;
    let second = log.try_clone().map_err(|e| Error::Live(e.to_string()))?;
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(second)
        .envs(environment(program, launch, host));
    let nodes = launch.memory.and_then(|m| host.nodes(m)).map(Mask::of);
    let cpus = launch.cpus.map(Cpus::of);
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated: errors are numbers.
    unsafe {
        command.pre_exec(move || {
            sys::own_group()?;
            if let Some(nodes) = &nodes {
                sys::prefer(nodes)?;
            }
            if let Some(cpus) = &cpus {
                sys::run_on(cpus)?;
            }
            Ok(())
        });
    }
    command.spawn().map_err(|e| {
        let name = words[0].to_string_lossy();
        let (what, remedy) = match e.kind() {
            std::io::ErrorKind::NotFound => (
                format!("`{name}` is not found"),
                "give a path, or a program in PATH",
            ),
            std::io::ErrorKind::PermissionDenied => (
                format!(
                    "`{name}` may not be run, or not with this memory and these processors: {e}"
                ),
                "make it executable; in a sandbox allow set_mempolicy and sched_setaffinity",
            ),
            _ => (
                format!("`{name}` cannot be started: {e}"),
                "try it in a shell",
            ),
        };
        Error::from(group.problem(i, "command", what, remedy))
    })
}

/// The command line.
fn words(program: &Program, threads: u32, options: &LiveOptions) -> Vec<OsString> {
    let varve = || options.varve.clone().into_os_string();
    match &program.live {
        Some(Live::Command(words)) => words.iter().map(OsString::from).collect(),
        Some(Live::Managed(file, arguments)) => {
            let mut words = vec![varve(), "run".into(), file.into(), "--".into()];
            words.extend(arguments.iter().map(OsString::from));
            words
        }
        None => match carried_out(program, threads, options) {
            Some(line) => vec![varve(), "jobs".into(), "exercise".into(), line.into()],
            // `check` refuses such groups before anything starts.
            None => vec!["false".into()],
        },
    }
}

/// The workload that is carried out for a program that is nothing else on this machine.
pub fn carried_out(program: &Program, threads: u32, options: &LiveOptions) -> Option<String> {
    let (None, Some(Modelled::Workload(line))) = (&program.live, &program.modelled) else {
        return None;
    };
    let sep = if line.contains(':') { ',' } else { ':' };
    let (scale, seed) = (options.scale, options.seed);
    Some(format!(
        "{line}{sep}threads={threads},scale={scale},seed={seed}"
    ))
}

/// Why a program of a group cannot run on this machine.
pub fn check(group: &Group) -> Result<(), Error> {
    for (i, p) in group.programs.iter().enumerate() {
        let workload = matches!(p.modelled, Some(Modelled::Workload(_)));
        if p.live.is_none() && !workload {
            let what = "is a trace, which runs on a model only".into();
            let remedy = "give it `command`, or leave --live out";
            return Err(group.problem(i, "trace", what, remedy).into());
        }
    }
    Ok(())
}

fn environment(program: &Program, launch: &Launch, host: &LiveHost) -> Vec<(String, String)> {
    let list = |numbers: &[u32]| {
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        words.join(",")
    };
    let nodes = launch.memory.and_then(|m| host.nodes(m)).map(list);
    let values = [
        ("{threads}", launch.threads.to_string()),
        (
            "{memory}",
            launch.memory.map_or("any".into(), |m| m.to_string()),
        ),
        ("{nodes}", nodes.unwrap_or_else(|| "all".into())),
        ("{cpus}", list(launch.cpus.unwrap_or(&host.cpus))),
    ];
    let fill = |text: &str| {
        values
            .iter()
            .fold(text.to_string(), |t, (word, value)| t.replace(word, value))
    };
    let threads = ("OMP_NUM_THREADS".to_string(), launch.threads.to_string());
    let own = program.env.iter().map(|(k, v)| (k.clone(), fill(v)));
    // What the file says goes before.
    std::iter::once(threads).chain(own).collect()
}
