//! Why a run could not be made or did not end well.

use crate::FailureLog;
use std::path::PathBuf;

/// See the module. Each is one line for a user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine.
    #[error("{0}")]
    Machine(#[from] varve_machine::LoadError),
    /// The page policy.
    #[error("{0}")]
    Policy(#[from] varve_pages::Error),
    /// The workload.
    #[error("{0}")]
    Workload(#[from] varve_spec::Error),
    /// The trace.
    #[error("{0}")]
    Trace(#[from] varve_trace::TraceError),
    /// The run itself.
    #[error("{0}")]
    Run(#[from] model::RunError),
    /// Pages that a scaled machine cannot have.
    #[error(
        "pages of {page_bytes} B become {scaled} B at scale {scale}; the least is 4096 B: use a smaller --scale or larger --page"
    )]
    PageTooSmall {
        /// Full-size page.
        page_bytes: u64,
        /// Page on the scaled machine.
        scaled: u64,
        /// The divisor.
        scale: u32,
    },
    /// A scale that is not a power of two.
    #[error("scale {0} is not a power of two between 1 and 65536")]
    Scale(u32),
    /// No policy goes with the machine.
    #[error(
        "no page policy named in `{0}` goes with this machine; `varve policy` lists them with the needs of each"
    )]
    NoPolicy(String),
    /// A heap plan wants two memories, or DIMMs that pages can be put on.
    #[error(
        "machine `{0}` has no slow memory of its own, and its channels are interleaved, so that no DIMM can be cold: take another machine, such as optane-6242 or haswell-2620v3"
    )]
    NoTiers(String),
    /// Collections cannot be distinguished from windows.
    #[error(
        "{0}: windows of a Java virtual machine: its collections lie between them, and generations cannot be compared; record the whole, or one part of it (`varve trace --skip --for`)"
    )]
    SampledJava(PathBuf),
    /// Objects of a native program are to be in one of two memories.
    #[error(
        "machine `{0}` has no slow memory that is a node of its own: take another one, such as cxl-spr or optane-6230; --policy compares page policies here"
    )]
    NoSlowNode(String),
    /// Options of trays on a machine with two memories.
    #[error(
        "machine `{0}` has slow memory: trays are for machines with one memory whose channels are not interleaved, such as haswell-2620v3; leave them out"
    )]
    NoTrays(String),
    /// Trays are about energy, and the machine has no data for it.
    #[error("{0}")]
    Energy(#[from] varve_machine::energy::NoEnergyData),
    /// Objects are to survive on a machine whose memory does not.
    #[error(
        "machine `{0}` has no persistent memory beside its DRAM, where durable objects could be: take another machine, such as optane-6242"
    )]
    NotPersistent(String),
    /// The region file of a run on a model.
    #[error("{0}")]
    Region(String),
    /// The driver of a program on a model failed.
    #[error("{0}")]
    Hosted(String),
    /// More instances than there are cores.
    #[error(
        "machine `{machine}` has {room} hardware threads for --numa {numa}, and {instances} instances want one each: run 1 to {room}"
    )]
    Instances {
        /// Name of the machine.
        machine: String,
        /// Instances asked for.
        instances: u32,
        /// Hardware threads there are.
        room: u32,
        /// Where they are.
        numa: crate::Numa,
    },
    /// Threads cannot be away from their memory.
    #[error(
        "machine `{machine}` has one socket: --numa {numa} is about several; leave it out or take another machine, such as optane-6242"
    )]
    OneSocket {
        /// Name of the machine.
        machine: String,
        /// The placement that was asked for.
        numa: crate::Numa,
    },
    /// Too little is known of a Java virtual machine, or it does not go with the request.
    #[error("{0}")]
    Java(String),
    /// A command that was to start a Java virtual machine has started none.
    #[error("{0}")]
    NoJava(String),
    /// A managed program failed.
    #[error("{file}: {error}")]
    Managed {
        /// Its file.
        file: String,
        /// Why.
        error: Box<dyn std::error::Error + Send + Sync>,
        /// Its output and phases.
        log: FailureLog,
    },
    /// A managed program reports that it failed, so that its time has no meaning.
    #[error("{file}: the program ended with exit code {code}; see what it wrote above")]
    Exit {
        /// Its file.
        file: String,
        /// Its exit code.
        code: i32,
        /// Its output and phases.
        log: FailureLog,
    },
    /// The request cannot be satisfied; the text has the remedy.
    #[error("{0}")]
    Asked(String),
    /// A kept result cannot be written.
    #[error("{}: cannot keep a result: {source}; make room, or choose another folder", path.display())]
    Keep {
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Another process makes it, and it is not kept yet.
    #[error("{0}: is not there yet")]
    Elsewhere(String),
}

use varve_machine::model;

impl Error {
    /// The error of a run that a user ended.
    pub fn interrupted() -> Error {
        Error::Run(model::RunError::Interrupted)
    }

    /// The log of a program that failed, if that is the error.
    pub fn log(&self) -> Option<&FailureLog> {
        match self {
            Error::Managed { log, .. } | Error::Exit { log, .. } => Some(log),
            _ => None,
        }
    }

    /// Is it a result that another process makes?
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Error::Elsewhere(_))
    }

    /// Did a user end it?
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Error::Run(model::RunError::Interrupted))
    }
}
