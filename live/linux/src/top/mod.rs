//! Memory use by tier and process, and migration rates, from /proc and /sys. A snapshot is taken of a root, `/` for this
//! machine; what happened between two is [`Rates`].
//!
//! ```text
//! node.rs      memory of the nodes
//! process.rs   the largest processes, and where their memory is
//! pauses.rs    for how long Java virtual machines stood still
//! ```

mod node;
mod pauses;
mod process;

pub use node::NodeNow;
pub use pauses::Pauses;
pub use process::{ProcessNow, Where};

use crate::nodes::Kinds;
use crate::probe::Topology;
use crate::probe::sysfs::{count_of, text};

use crate::tier::{TierState, states};
use crate::traffic::resctrl::{MOUNT, totals};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Counters of `/proc/vmstat` that are about moving between memories: their name there, and what they count.
pub const COUNTERS: [(&str, &str); 8] = [
    ("pgpromote_success", "promoted by heat"),
    ("pgdemote_kswapd", "demoted in the background"),
    ("pgdemote_direct", "demoted while a program waited"),
    ("pgdemote_khugepaged", "demoted for huge pages"),
    ("pgmigrate_success", "moved in all, for whatever reason"),
    ("pgmigrate_fail", "could not be moved"),
    ("numa_hint_faults", "faults by which the kernel sees use"),
    ("numa_pages_migrated", "moved by NUMA balancing"),
];

/// The state at an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TopSnapshot {
    /// The nodes, by number.
    pub nodes: Vec<NodeNow>,
    /// The largest processes, the largest first.
    pub processes: Vec<ProcessNow>,
    /// Processes with memory of their own beyond these.
    pub more: usize,
    /// Processes of others, of which it is not told where their memory is.
    pub hidden: usize,
    /// Counters since the machine's start, by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// Bytes that went through the memory controllers of each part of the processor, by resctrl.
    pub traffic: BTreeMap<String, u64>,
    /// `varve tier`s at work.
    pub tiers: Vec<TierState>,
    /// Hidden parts, and why: a line each.
    pub notes: Vec<String>,
}

/// The changes between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Seconds between them.
    pub seconds: f64,
    /// Events a second, by counter.
    pub counters: BTreeMap<&'static str, f64>,
    /// Pages that each node gave out a second.
    pub allocated: BTreeMap<u32, f64>,
    /// Bytes a second, as [`TopSnapshot::traffic`].
    pub traffic: BTreeMap<String, f64>,
    /// Share of the time for which a process stood still, 0 to 1.
    pub pauses: BTreeMap<u32, f64>,
}

impl TopSnapshot {
    /// Reads the machine below `root`, with the residency of at most `processes` processes.
    pub fn read(root: &Path, processes: usize) -> TopSnapshot {
        let (topology, _) = Topology::read(root);
        let kinds = Kinds::probe(&topology).ok();
        let nodes = node::nodes(root, &topology, kinds.as_ref());
        let with_memory: Vec<u32> = nodes.iter().filter(|n| n.total > 0).map(|n| n.id).collect();
        let found = process::largest(root, &with_memory, processes);
        let vmstat = text(&root.join("proc/vmstat")).unwrap_or_default();
        let counter = |(name, _): &(&'static str, &str)| Some((*name, count_of(&vmstat, name)?));
        let traffic = traffic(root);
        let mut notes = Vec::new();
        match with_memory[..] {
            [] => notes.push("the kernel shows no memory nodes: it is built without NUMA".into()),
            [one] => notes.push(format!("there is one memory node, {one}")),
            _ => {}
        }
        if found.hidden > 0 {
            notes.push(format!(
                "the residency of {} processes of other users is hidden: run as root to see it",
                found.hidden
            ));
        }
        if traffic.is_empty() {
            notes.push(
                "memory traffic is not available: it needs a processor with memory bandwidth monitoring, and resctrl mounted (mount -t resctrl resctrl /sys/fs/resctrl)"
                    .into(),
            );
        }
        TopSnapshot {
            nodes,
            processes: found.processes,
            more: found.more,
            hidden: found.hidden,
            counters: COUNTERS.iter().filter_map(counter).collect(),
            traffic,
            tiers: states(root),
            notes,
        }
    }
}

fn traffic(root: &Path) -> BTreeMap<String, u64> {
    let parts = totals(&root.join(MOUNT)).into_iter();
    parts
        .map(|(part, bytes)| (format!("L3 {part}"), bytes))
        .collect()
}

impl Rates {
    /// From one snapshot to a later one. What was not there before, or counts anew, has no rate.
    pub fn between(before: &TopSnapshot, now: &TopSnapshot, seconds: f64) -> Rates {
        let per = |a: u64, b: u64| b.checked_sub(a).map(|more| more as f64 / seconds.max(1e-9));
        let counter = |(&name, &count): (&&'static str, &u64)| {
            Some((name, per(*before.counters.get(name)?, count)?))
        };
        let node = |node: &NodeNow| {
            let was = before.nodes.iter().find(|was| was.id == node.id)?;
            Some((node.id, per(was.allocated, node.allocated)?))
        };
        let part = |(part, &bytes): (&String, &u64)| {
            Some((part.clone(), per(*before.traffic.get(part)?, bytes)?))
        };
        let pause = |process: &ProcessNow| {
            let was = before.processes.iter().find(|was| was.pid == process.pid)?;
            let (was, now) = (was.pauses.as_ref()?, process.pauses.as_ref()?);
            let share = (now.seconds - was.seconds) / seconds.max(1e-9);
            (share >= 0.0).then_some((process.pid, share.min(1.0)))
        };
        Rates {
            seconds,
            counters: now.counters.iter().filter_map(counter).collect(),
            allocated: now.nodes.iter().filter_map(node).collect(),
            traffic: now.traffic.iter().filter_map(part).collect(),
            pauses: now.processes.iter().filter_map(pause).collect(),
        }
    }
}
