//! Starts a program with the agent inside.

use super::decide::{Decided, GenerationPolicy};
use super::report::{JavaProcess, JavaReport};
use super::serve::{Deciding, meanwhile};
use crate::error::LiveError;
use crate::launch::{self, Folder, Running, library};
use crate::nodes::{Kinds, NodeMemory, Policy};
use crate::program;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

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

/// A program whose Java virtual machines are to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// The program and its arguments.
    pub command: &'j [OsString],
    /// Where the memory is in the beginning.
    pub placing: Placing,
    /// The nodes.
    pub kinds: &'j Kinds,
    /// A program that cannot be placed is not to run; without it, it runs as ever, and a note says why.
    pub must: bool,
}

/// Runs a program with the memory of its Java virtual machines on nodes, waits for it, and reports. The program's input and output
/// are the caller's. What is no virtual machine is where its children inherit that it is: all else. With `deciding` the old
/// generation moves when the policy decides so.
///
/// # Errors
/// [`LiveError`]: the program is not found or cannot be started; it cannot be placed and must be. A program that fails is no error;
/// see [`JavaReport::status`].
pub fn run<D: GenerationPolicy>(
    job: &Job<'_>,
    deciding: Option<Deciding<'_, D>>,
) -> Result<(JavaReport, Vec<Decided<D>>), LiveError> {
    let mut command = launch::command(job.command)?;
    // Of a program that is not there nothing else is said.
    program::find(command.get_program())?;
    if let Err(why) = placeable(command.get_program(), job.kinds) {
        if job.must {
            return Err(why);
        }
        let ended = launch::run(command, Running::wait)?;
        let report = JavaReport {
            status: ended.status,
            seconds: ended.seconds,
            processes: Vec::new(),
            notes: vec![format!("{why}: the program ran as without Varve")],
        };
        return Ok((report, Vec::new()));
    }
    let (placing, kinds) = (job.placing, job.kinds);
    let decides = deciding.is_some();
    let prepared = PreparedJava::with(&mut command, placing, kinds, job.must, decides)?;
    let run = || launch::run(command, Running::wait);
    let (ended, decided) = match deciding {
        Some(deciding) => {
            let socket = prepared.socket();
            meanwhile(&socket, kinds, deciding, run).map_err(LiveError::file(
                "cannot make the socket (name a folder with a short path by TMPDIR)",
                &socket,
            ))?
        }
        None => (run(), Vec::new()),
    };
    let ended = ended?;
    let mut report = prepared.report(ended.status, ended.seconds);
    if decides {
        let more = undecided(&report.processes, &decided);
        report.notes.extend(more);
    }
    Ok((report, decided))
}

/// A command whose Java virtual machines will be placed, for a caller that starts it and waits for it. It is to live until the program has
/// ended: its files are removed with it.
#[derive(Debug)]
pub struct PreparedJava {
    folder: Folder,
    placing: Placing,
}

impl PreparedJava {
    /// Adds to a command, which has its program already, what places its virtual machines, and the memory policy that they inherit.
    ///
    /// # Errors
    /// [`LiveError`]: the program is not found or cannot load the agent, memory cannot be bound to the nodes, or files cannot be
    /// written.
    pub fn new(
        command: &mut Command,
        placing: Placing,
        kinds: &Kinds,
    ) -> Result<PreparedJava, LiveError> {
        placeable(command.get_program(), kinds)?;
        PreparedJava::with(command, placing, kinds, false, false)
    }

    /// `must`: a machine that cannot be placed is not to run; `decides`: a policy answers at the [`PreparedJava::socket`].
    fn with(
        command: &mut Command,
        placing: Placing,
        kinds: &Kinds,
        must: bool,
        decides: bool,
    ) -> Result<PreparedJava, LiveError> {
        let folder = Folder::new()?;
        let agent = folder.library(&library::AGENT)?;
        let prepared = PreparedJava { folder, placing };
        let report = prepared.folder.report();
        let mut options = options(&report, placing, kinds);
        if must {
            options.push(";must=yes");
        }
        if decides {
            options.push(";decide=");
            options.push(prepared.socket());
            // Beside the report are the files through which programs report intervals.
            options.push(" -Dvarve.intervals=");
            options.push(&report);
        }
        launch::preload(command, &agent);
        launch::add_agent(command, &agent, &options);
        let policy = inherited(placing, kinds);
        // SAFETY: between fork and exec only one system call is made, which allocates nothing.
        unsafe { command.pre_exec(move || policy.adopt()) };
        Ok(prepared)
    }

    /// Where agents ask.
    fn socket(&self) -> PathBuf {
        self.folder.file("decide")
    }

    /// The report, once the program has ended with `status` after `seconds`.
    pub fn report(self, status: ExitStatus, seconds: f64) -> JavaReport {
        let torn = "reports of virtual machines cannot be read";
        let mut report: JavaReport = self.folder.ran(status, seconds, torn);
        report.notes.extend(notes(&report.processes, self.placing));
        report
    }
}

/// Checks that a program can be placed.
fn placeable(name: &OsStr, kinds: &Kinds) -> Result<(), LiveError> {
    launch::loadable(name, |file| match cfg!(target_arch = "x86_64") {
        true => program::why_not_loadable(file),
        false => Some("Java virtual machines are placed on x86-64 alone".into()),
    })?;
    NodeMemory::new(kinds.clone())?;
    Ok(())
}

/// The policy that the program inherits: for all that is no generation.
fn inherited(placing: Placing, kinds: &Kinds) -> Policy {
    match placing {
        Placing::Interleaved => {
            let both: Vec<u32> = kinds.fast.iter().chain(&kinds.slow).copied().collect();
            Policy::new(libc::MPOL_INTERLEAVE, &both)
        }
        Placing::Generations { outside, .. } => Policy::preferred(of(outside, kinds)),
    }
}

fn of(fast: bool, kinds: &Kinds) -> &[u32] {
    kinds.of_tier(u8::from(!fast))
}

/// The agent's options.
fn options(report: &Path, placing: Placing, kinds: &Kinds) -> OsString {
    let mut value = OsString::from("report=");
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

fn notes(processes: &[JavaProcess], placing: Placing) -> Vec<String> {
    let apart = matches!(placing, Placing::Generations { young, old, .. } if young != old);
    // A heap without a report is in the memory of all else.
    let heap_apart = matches!(placing, Placing::Generations { old, outside, .. } if old != outside);
    let mut notes = Vec::new();
    if processes.is_empty() {
        notes.push(
            "no Java virtual machine reported its residency: none has started, or it was killed"
                .into(),
        );
    }
    for process in processes {
        let who = format!("java ({})", process.pid);
        if process.refused > 0 {
            notes.push(format!(
                "{who}: {} ranges could not be bound: {}",
                process.refused, process.why_refused
            ));
        }
        let uses = process.uses();
        let whole = uses.contains(&"heap");
        if !uses.contains(&"old") && (apart || heap_apart && !whole) {
            notes.push(format!(
                "{who}: {}, so that no generation was placed: take -XX:+UseSerialGC or -XX:+UseParallelGC",
                match &*process.collector {
                    "other" => "its collector is not known here".into(),
                    known => format!("parts of the heap of {known} change their role"),
                }
            ));
        }
        for what in process.uses() {
            let (nodes, elsewhere) = process.part(what).unwrap_or_default();
            if elsewhere > 0 {
                let all: u64 = nodes.values().sum();
                notes.push(format!(
                    "{who}: {:.1} of {:.1} MiB of {what} are on other nodes than requested: those were full",
                    elsewhere as f64 / f64::from(1 << 20),
                    all as f64 / f64::from(1 << 20)
                ));
            }
        }
    }
    notes
}

/// Machines with an old generation whose program was never judged, and why.
fn undecided<D>(processes: &[JavaProcess], decided: &[Decided<D>]) -> Vec<String> {
    let generations = |process: &&JavaProcess| process.uses().contains(&"old");
    let said = processes.iter().filter(generations).filter_map(|process| {
        let found = decided.iter().find(|decided| decided.pid == process.pid);
        let why = match found {
            Some(decided) if decided.intervals > 0 => return None,
            Some(decided) if decided.allocated == 0 && process.pauses > 0 => {
                "it keeps no counters of allocation (-XX:-UsePerfData)"
            }
            _ => "it ended before its first interval did: take a smaller one (allocation=16MiB)",
        };
        let pid = process.pid;
        Some(format!(
            "java ({pid}): old objects stayed in slow memory: {why}"
        ))
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::read_lines;

    #[test]
    fn the_agent_is_told_which_nodes_each_generation_is_on() {
        let kinds = Kinds {
            fast: vec![0, 2],
            slow: vec![1],
        };
        let said = |placing| {
            let words = options(Path::new("/r"), placing, &kinds);
            words.into_string().unwrap()
        };
        let by = |young, old| Placing::Generations {
            young,
            old,
            outside: true,
        };
        assert_eq!(said(by(true, false)), "report=/r;young=0+2;old=1");
        assert_eq!(said(by(false, false)), "report=/r;young=1;old=1;heap=1");
        assert_eq!(said(Placing::Interleaved), "report=/r");
    }

    #[test]
    fn what_is_not_where_it_was_asked_for_is_noted() {
        let line = r#"{"pid":7,"collector":"Serial","parts":[
            {"what":"young","wanted":[0],"nodes":{"0":1048576}},
            {"what":"old","wanted":[1],"nodes":{"0":1048576,"1":3145728}}]}"#;
        let (processes, _) = read_lines(&line.replace('\n', ""));
        let notes = notes(&processes, Placing::Interleaved);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("1.0 of 4.0 MiB of old"), "{notes:?}");
    }

    #[test]
    fn a_heap_that_is_not_known_is_noted_unless_it_is_where_all_else_is() {
        let (processes, _) = read_lines(r#"{"pid":7,"collector":"other","parts":[]}"#);
        let placing = |outside| Placing::Generations {
            young: false,
            old: false,
            outside,
        };
        assert_eq!(notes(&processes, placing(false)), [""; 0]);
        let noted = notes(&processes, placing(true));
        assert!(noted[0].contains("is not known here"), "{noted:?}");
    }
}
