//! Starting a program with its memory, processors, variables and log.

use super::LiveOptions;
use super::family::{self, Job};
use super::host::LiveHost;
use super::inside::{self, InPart, Prepared};
use super::sys;
use super::words::{self, Filling};
use crate::error::Error;
use crate::group::{Group, Live};
use crate::kinds::Memory;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use varve_live::nodes::Policy;
use varve_live::probe::Cpus;
use varve_live::traffic::resctrl;
use varve_machine::Problem;

/// The parameters of a program's start.
pub struct Launch<'a> {
    /// Threads.
    pub threads: u32,
    /// Its memory; `None`: the kernel's choice, if it is not in part.
    pub memory: Option<Memory>,
    /// It is in fast memory in part: its entry says how.
    pub in_part: Option<InPart>,
    /// Its processors; `None`: the kernel's choice.
    pub cpus: Option<&'a [u32]>,
    /// Where its output goes.
    pub log: PathBuf,
    /// The file by which it joins a group whose bytes are counted.
    pub tasks: Option<File>,
}

/// A program that runs.
pub struct Started {
    /// Its first process.
    pub child: Child,
    /// That, and all that it starts.
    pub job: Job,
    /// The runtime that places its own memory, if it is in part.
    pub prepared: Option<Prepared>,
}

/// Starts a program of a group. It has a process group of its own, which ends with this process, and a control group where there are any.
///
/// # Errors
/// A command that does not exist or cannot be started, a log that cannot be written.
pub fn start(
    group: &Group,
    i: usize,
    launch: &Launch,
    host: &LiveHost,
    options: &LiveOptions,
) -> Result<Started, Error> {
    let program = &group.programs[i];
    let filling = Filling {
        threads: launch.threads,
        memory: launch.memory,
        nodes: launch.memory.and_then(|m| host.nodes(m)).map(Vec::from),
        in_part: launch.in_part.zip(host.kinds.clone()),
        cpus: words::list(launch.cpus.unwrap_or(&host.cpus)),
    };
    let words = words::words(program, &filling, options);
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
        .envs(words::environment(program, &filling));
    let in_part = program.inside.as_ref().zip(filling.in_part.as_ref());
    let prepared = in_part.map(|(inside, (part, kinds))| {
        let prepared = inside::prepare(&mut command, program, inside, *part, kinds, &launch.log);
        prepared.map_err(|(key, what, remedy)| group.problem(i, key, what, &remedy))
    });
    let prepared = prepared.transpose()?;
    let rest = match &prepared {
        None => launch.memory,
        // The virtual machine's has been said.
        Some(Prepared::Generations(_)) => None,
        // Fast memory is for objects alone: all else would come on top of what they may have.
        Some(Prepared::Sites(..) | Prepared::Heap(_)) => Some(Memory::Slow),
    };
    let policy = rest.and_then(|m| host.nodes(m)).map(Policy::preferred);
    let cpus = launch.cpus.map(Cpus::of);
    let (control, procs) = host.groups.group().unzip();
    let tasks = launch.tasks.as_ref().map(File::try_clone).transpose();
    let tasks = tasks.map_err(|e| Error::Live(e.to_string()))?;
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated: errors are numbers.
    unsafe {
        command.pre_exec(move || {
            sys::own_group()?;
            if let Some(procs) = &procs {
                family::join(procs)?;
            }
            if let Some(tasks) = &tasks {
                resctrl::join(tasks)?;
            }
            if let Some(policy) = &policy {
                policy.adopt()?;
            }
            if let Some(cpus) = &cpus {
                cpus.run_on()?;
            }
            Ok(())
        });
    }
    let child = command.spawn().map_err(|e| {
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
    })?;
    Ok(Started {
        job: Job::new(child.id(), control),
        child,
        prepared,
    })
}

/// Why programs of a group cannot run on this machine: found out before anything is started.
///
/// # Errors
/// All of them, one a line.
pub fn check(group: &Group) -> Result<(), Error> {
    let mut problems = Vec::new();
    for (i, p) in group.programs.iter().enumerate() {
        problems.extend(missing(group, i));
        if let Some(inside) = &p.inside
            && let Err((key, what, remedy)) = inside::check(p, inside)
        {
            problems.push(group.problem(i, key, what, &remedy));
        }
        if p.is_modelled_only() {
            let what = "is a trace, which runs on a model only".into();
            let remedy = "give it `command`, or leave --live out";
            problems.push(group.problem(i, "trace", what, remedy));
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Error::Group(problems)),
    }
}

/// A command or program that is not there. What is filled in later may be anything.
fn missing(group: &Group, i: usize) -> Option<Problem> {
    let program = &group.programs[i];
    match program.live.as_ref()? {
        Live::Command(words) => {
            let name = words.first().filter(|name| !name.contains('{'))?;
            let path = program.env.iter().find(|(key, _)| *key == "PATH");
            let path = path.map(|(_, value)| OsString::from(value));
            let path = path
                .or_else(|| std::env::var_os("PATH"))
                .unwrap_or_default();
            let there = match name.contains('/') {
                true => Path::new(name).is_file(),
                false => std::env::split_paths(&path).any(|folder| folder.join(name).is_file()),
            };
            let remedy = "give a path, or a program in PATH";
            (!there).then(|| group.problem(i, "command", format!("`{name}` is not found"), remedy))
        }
        Live::Managed(file, _) => {
            let what = format!("{} is not found", file.display());
            let remedy = "give the path of a module";
            (!file.is_file()).then(|| group.problem(i, "managed", what, remedy))
        }
    }
}
