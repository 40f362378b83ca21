//! Reasons for not tiering, a line each.

use crate::error::LiveError;
use std::io;

/// The reason for not tiering.
#[derive(Debug, thiserror::Error)]
pub enum TierError {
    /// The command.
    #[error("{0}")]
    Live(#[from] LiveError),
    /// There is no such process.
    #[error("--pid {0}: no such process")]
    Gone(u32),
    /// It belongs to another user.
    #[error("--pid {0}: the process is another user's: tier it as that user, or as root")]
    Foreign(u32),
    /// It has no memory to tier.
    #[error("--pid {0}: it has no memory of its own: it is part of the kernel, or has ended")]
    NoMemory(u32),
    /// Another `tier` runs on it.
    #[error(
        "process {0} is tiered by another `varve tier`: end that one first (Ctrl-C, or SIGTERM)"
    )]
    Taken(u32),
    /// Its memory may not be moved.
    #[error(
        "process {process}: move_pages is refused: {error}; be root, and allow the call in a sandbox (docker run --cap-add SYS_NICE)"
    )]
    Refused {
        /// The process.
        process: u32,
        /// The system's error.
        error: io::Error,
    },
    /// It may not use memory of a node.
    #[error(
        "process {process} may not have memory of node {node}: its control group has nodes {allowed} alone (cpuset.mems)"
    )]
    Forbidden {
        /// The process.
        process: u32,
        /// The node.
        node: u32,
        /// The nodes that it may use.
        allowed: String,
    },
    /// An empty control group.
    #[error("{0}: that control group has no process")]
    Empty(String),
    /// Its accesses cannot be observed.
    #[error("process {process} cannot be observed: {why}")]
    Unseen {
        /// The process.
        process: u32,
        /// Why.
        why: String,
    },
    /// Frames cannot be exchanged.
    #[error("{0}")]
    Frames(String),
    /// The policy does not support this machine.
    #[error("{0}")]
    Policy(String),
}

impl TierError {
    /// The reason why a process whose memory cannot be scanned is not tiered.
    pub(super) fn of_memory(process: u32, error: io::Error) -> TierError {
        match error.kind() {
            io::ErrorKind::NotFound => TierError::Gone(process),
            io::ErrorKind::PermissionDenied => TierError::Foreign(process),
            _ if error.raw_os_error() == Some(libc::ESRCH) => TierError::NoMemory(process),
            _ => TierError::Refused { process, error },
        }
    }
}
