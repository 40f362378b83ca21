//! Errors of memory nodes, each in one line with its remedy.

use std::io;

/// Why memory is not on the nodes that it should be on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// `--nodes` that cannot be read.
    #[error("nodes {given:?}: {why}; write it as fast=0,slow=1, several nodes as 0+2 or 0-3")]
    Text {
        /// The given text.
        given: String,
        /// The problem.
        why: String,
    },
    /// A node that is not there.
    #[error("node {node}: this machine has none of that number: its nodes with memory are {known}")]
    Unknown {
        /// The node.
        node: u32,
        /// Those that there are.
        known: String,
    },
    /// A node of processors alone, or whose memory was taken away.
    #[error("node {node} has no memory: nodes with memory are {known}")]
    NoMemory {
        /// The node.
        node: u32,
        /// Those that have.
        known: String,
    },
    /// The system does not let this process do it.
    #[error("{call} on node {nodes} is refused: {error}{}", remedy(.error))]
    Refused {
        /// The system call.
        call: &'static str,
        /// The nodes.
        nodes: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system does not tell this process where its pages are.
    #[error("move_pages, asked where pages are, is refused: {}{}", .0, remedy(.0))]
    Unseen(io::Error),
    /// The nodes are full.
    #[error(
        "node {nodes} ({kind} memory) is full: {elsewhere} of {asked} KiB found no room there ({free} MiB are free); give the heap less (--heap-max), free memory of that node, or name others (--nodes)"
    )]
    Full {
        /// `fast` or `slow`.
        kind: &'static str,
        /// The nodes.
        nodes: String,
        /// KiB that are elsewhere or nowhere.
        elsewhere: u64,
        /// KiB asked for.
        asked: u64,
        /// MiB that the nodes have free.
        free: u64,
    },
}

/// The remedy for an error number of `mbind`, `move_pages` or `madvise`.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; a sandbox forbids it: allow the call (docker run --cap-add SYS_NICE), or leave --plan out"
        }
        Some(libc::ENOSYS) => {
            "; this kernel is built without NUMA support (CONFIG_NUMA): leave --plan out"
        }
        // The nodes were looked up, so it is the cpuset.
        Some(libc::EINVAL) => {
            "; the node may be outside of what this process is allowed (Mems_allowed_list in /proc/self/status), or the kernel older than Linux 5.15"
        }
        Some(libc::ENOMEM) => "; no memory is left",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_call_and_the_remedy() {
        let line = |code| {
            let error = io::Error::from_raw_os_error(code);
            let refused = NodeError::Refused {
                call: "mbind",
                nodes: "1".into(),
                error,
            };
            refused.to_string()
        };
        for (code, words) in [
            (libc::EPERM, "sandbox"),
            (libc::ENOSYS, "CONFIG_NUMA"),
            (libc::EINVAL, "Mems_allowed_list"),
        ] {
            let line = line(code);
            assert!(line.starts_with("mbind on node 1 is refused: "), "{line}");
            assert!(line.contains(words) && !line.contains('\n'), "{line}");
        }
    }
}
