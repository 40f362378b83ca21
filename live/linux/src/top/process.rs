//! The largest processes. Where the memory of a process is costs the kernel a walk over all of it: it is asked of the largest alone,
//! and not where there is one node.

use super::pauses::{Pauses, pauses};
use crate::nodes::by_node;
use crate::probe::sysfs::{numbered_with, text};
use crate::program;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A process at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessNow {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Bytes of its memory, what it shares with others too.
    pub bytes: u64,
    /// Where they are.
    pub place: Where,
    /// Of a Java virtual machine: for how long it stood still so far.
    pub pauses: Option<Pauses>,
}

/// Where a process's memory is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// Bytes by node.
    Nodes(BTreeMap<u32, u64>),
    /// It is another user's.
    Hidden,
}

/// The processes found.
pub struct Found {
    pub processes: Vec<ProcessNow>,
    pub more: usize,
    pub hidden: usize,
}

pub fn largest(root: &Path, nodes: &[u32], most: usize) -> Found {
    let mut all: Vec<(u64, u32)> = numbered_with(&root.join("proc"), "")
        .into_iter()
        .filter_map(|(pid, folder)| {
            let pid = pid.parse().ok()?;
            // Pages: in all, in memory (`man proc_pid_statm`). The kernel's own processes have none.
            let statm = text(&folder.join("statm"))?;
            let resident: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
            (resident > 0).then_some((resident * 4096, pid))
        })
        .collect();
    all.sort_by_key(|&(bytes, pid)| (std::cmp::Reverse(bytes), pid));
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    let processes: Vec<ProcessNow> = all
        .into_iter()
        .filter_map(|(bytes, pid)| {
            let folder = root.join(format!("proc/{pid}"));
            // It may have ended meanwhile.
            let name = program::name_in(&folder)?;
            let place = match nodes {
                [one] => Where::Nodes([(*one, bytes)].into()),
                _ => text(&folder.join("numa_maps"))
                    .map_or(Where::Hidden, |maps| Where::Nodes(by_node(&maps, |_| true))),
            };
            Some(ProcessNow {
                pid,
                name,
                bytes,
                place,
                pauses: pauses(&folder, pid),
            })
        })
        .collect();
    Found {
        more,
        hidden: processes
            .iter()
            .filter(|p| p.place == Where::Hidden)
            .count(),
        processes,
    }
}
