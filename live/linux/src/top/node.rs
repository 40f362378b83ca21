//! Memory of the nodes.

use crate::nodes::Kinds;
use crate::probe::Topology;
use crate::probe::sysfs::{bytes_of, count_of, text};
use serde::Serialize;
use std::path::Path;

/// A node at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeNow {
    /// Its number.
    pub id: u32,
    /// Is it fast? `None` where all memory is alike, or the node is of neither kind.
    pub fast: Option<bool>,
    /// Bytes.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes of programs' own memory.
    pub anonymous: u64,
    /// Bytes of files.
    pub files: u64,
    /// Bytes of the kernel's own data.
    pub kernel: u64,
    /// Pages that it gave out since the machine's start.
    pub allocated: u64,
    /// Pages that were to come from another node and came from here.
    pub instead: u64,
}

pub fn nodes(root: &Path, topology: &Topology, kinds: Option<&Kinds>) -> Vec<NodeNow> {
    let now = |node: &crate::probe::Node| {
        let folder = root.join(format!("sys/devices/system/node/node{}", node.id));
        let meminfo = text(&folder.join("meminfo")).unwrap_or_default();
        let bytes = |name: &str| bytes_of(&meminfo, name);
        let numastat = text(&folder.join("numastat")).unwrap_or_default();
        let count = |name: &str| count_of(&numastat, name).unwrap_or(0);
        let fast = kinds.and_then(|kinds| {
            let fast = kinds.fast.contains(&node.id);
            (fast || kinds.slow.contains(&node.id)).then_some(fast)
        });
        NodeNow {
            id: node.id,
            fast,
            total: bytes("MemTotal"),
            free: bytes("MemFree"),
            anonymous: bytes("AnonPages"),
            files: bytes("FilePages"),
            kernel: bytes("Slab") + bytes("KernelStack") + bytes("PageTables"),
            allocated: count("numa_hit") + count("numa_miss"),
            instead: count("numa_miss"),
        }
    };
    topology.nodes.iter().map(now).collect()
}
