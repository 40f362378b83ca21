//! Allocation sites of stock Java virtual machines, by an agent that samples allocations (`live/linux/sites`).
//!
//! ```text
//! run.rs       a command: whatever virtual machine it starts loads the agent
//! attach.rs    a virtual machine that runs already loads it, by the JDK's own protocol
//! report.rs    what the agent says in the end
//! agent.rs     tests of what the agent computes
//! ```

#[cfg(test)]
mod agent;
mod attach;
mod report;
mod run;

pub use attach::{attach, can_attach, is_java};
pub use report::{JavaSite, JavaSites, SeenMachines};
pub use run::command;

use crate::error::LiveError;
use crate::launch::{Folder, library};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How samples are taken.
pub struct AllocationSampling<'a> {
    /// Bytes that a thread allocates between two samples, on average; 0 samples every object.
    pub interval_bytes: u64,
    /// When to stop; `None` for the program's end. A command that is there still is asked to end.
    pub time: Option<Duration>,
    /// Set to stop it.
    pub stop: &'a AtomicBool,
}

/// Why allocations of a Java program are not known.
#[derive(Debug, thiserror::Error)]
pub enum JavaError {
    /// The command, or a file of the run.
    #[error("{0}")]
    Live(#[from] LiveError),
    /// The agent is not there.
    #[error("allocations of Java virtual machines are sampled on x86-64 alone")]
    Processor,
    /// There is no such process.
    #[error("--pid {0}: no such process")]
    Gone(u32),
    /// It belongs to another user.
    #[error("--pid {0}: the process is another user's; attach to it as that user, or as root")]
    Foreign(u32),
    /// It is no virtual machine.
    #[error("--pid {0}: the process is not a Java virtual machine (it has not loaded libjvm.so)")]
    NotJava(u32),
    /// It takes no agents.
    #[error(
        "--pid {0}: this Java virtual machine does not allow attaching (-XX:+DisableAttachMechanism or -Xrs): start its program with `varve profile -o FILE.sites -- COMMAND`"
    )]
    Closed(u32),
    /// It does not answer.
    #[error("--pid {process}: the Java virtual machine does not answer: {error}")]
    Silent {
        /// The process.
        process: u32,
        /// The error.
        error: io::Error,
    },
    /// It refuses the agent.
    #[error("--pid {process}: the Java virtual machine refuses the agent: {said}")]
    Refused {
        /// The process.
        process: u32,
        /// Its output, in one line.
        said: String,
    },
    /// It has no samples.
    #[error("this Java virtual machine's allocations are not known: {0}")]
    Nothing(String),
    /// It did not report.
    #[error("no Java virtual machine reported its allocations: none has started, or it was killed")]
    NoReport,
}

/// Writes the agent into a folder.
fn agent(folder: &Folder) -> Result<PathBuf, JavaError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(JavaError::Processor);
    }
    Ok(folder.library(&library::SITES)?)
}

/// The agent's options.
fn options(report: &Path, sampling: &AllocationSampling) -> String {
    format!(
        "report={};interval={}",
        report.display(),
        sampling.interval_bytes
    )
}
