//! The set-up, from the files of /sys and /proc.

use crate::probe::Topology;
use crate::probe::sysfs::{names, number, numbered, parse_list, text};
use std::collections::BTreeMap;
use std::path::Path;

/// The set-up of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Nodes and devices.
    pub topology: Topology,
    /// The kernel's tiers, the fastest first, and their nodes; `None` if the kernel has no tiers.
    pub tiers: Option<Vec<Vec<u32>>>,
    /// Does the kernel demote, as it says?
    pub demotion: Option<String>,
    /// The mode of NUMA balancing: 1, by the processors that use pages; 2, between tiers.
    pub balancing: Option<u32>,
    /// The state of hot-plugged memory.
    pub auto_online: Option<String>,
    /// Blocks of memory that can be plugged.
    pub blocks: Vec<Block>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Weights of interleaving by node.
    pub weights: BTreeMap<u32, u32>,
    /// Whether the kernel keeps the weights itself, as it says; `None` before Linux 6.16.
    pub auto_weights: Option<String>,
    /// Device-dax devices beyond what the topology has of them.
    pub dax: Vec<Dax>,
    /// Is the driver there that gives a device to the kernel as memory?
    pub kmem: bool,
    /// Is a `varve tier` at work?
    pub tier_runs: bool,
}

/// A block of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u32,
    /// Its node.
    pub node: u32,
    /// `online`, `offline`, or `going-offline`.
    pub state: String,
    /// The zone that it is in; those that it might be in while it is offline.
    pub zones: String,
}

/// A device-dax device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dax {
    /// Its name.
    pub name: String,
    /// Its driver; empty for none.
    pub driver: String,
    /// The node that it would become, or is.
    pub node: i64,
    /// Bytes.
    pub bytes: u64,
    /// Persistent memory: its contents would be lost.
    pub persistent: bool,
    /// Its blocks of memory, if its addresses are known.
    pub blocks: Vec<u64>,
}

impl Setup {
    /// Reads what is below `root`, `/` for this machine. What cannot be read is left out.
    pub fn read(root: &Path) -> Setup {
        let (topology, _) = Topology::read(root);
        let memory = root.join("sys/devices/system/memory");
        let hexadecimal = |path: &Path| {
            let text = text(path)?;
            u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        };
        let block_bytes = hexadecimal(&memory.join("block_size_bytes")).unwrap_or(0);
        let tiers = root.join("sys/devices/virtual/memory_tiering");
        let weights = root.join("sys/kernel/mm/mempolicy/weighted_interleave");
        Setup {
            tiers: tiers.is_dir().then(|| {
                let all = numbered(&tiers, "memory_tier").into_iter();
                all.map(|(_, tier)| parse_list(&text(&tier.join("nodelist")).unwrap_or_default()))
                    .collect()
            }),
            demotion: text(&root.join("sys/kernel/mm/numa/demotion_enabled")),
            balancing: number(&root.join("proc/sys/kernel/numa_balancing")).map(|n| n as u32),
            auto_online: text(&memory.join("auto_online_blocks")),
            blocks: blocks(root, &memory, &topology),
            block_bytes,
            weights: numbered(&weights, "node")
                .iter()
                .filter_map(|(node, path)| Some((*node, number(path)? as u32)))
                .collect(),
            auto_weights: text(&weights.join("auto")),
            dax: topology
                .dax
                .iter()
                .map(|device| {
                    let folder = root.join("sys/bus/dax/devices").join(&device.name);
                    let start = hexadecimal(&folder.join("resource")).filter(|start| *start > 0);
                    let at = std::fs::canonicalize(&folder).unwrap_or(folder);
                    Dax {
                        name: device.name.clone(),
                        driver: device.driver.clone(),
                        node: device.target_node,
                        bytes: device.bytes,
                        // Regions of NVDIMMs are below their bus.
                        persistent: at
                            .components()
                            .any(|part| part.as_os_str().to_string_lossy().starts_with("ndbus")),
                        blocks: start.map_or_else(Vec::new, |start| {
                            whole_blocks(start, device.bytes, block_bytes)
                        }),
                    }
                })
                .collect(),
            kmem: root.join("sys/bus/dax/drivers/kmem").is_dir(),
            tier_runs: text(&root.join("proc/net/unix"))
                .is_some_and(|sockets| sockets.contains("@varve-tier-")),
            topology,
        }
    }
}

/// Blocks that are whole within a range: the kernel takes no others of a device.
fn whole_blocks(start: u64, bytes: u64, block: u64) -> Vec<u64> {
    match block {
        0 => Vec::new(),
        _ => (start.div_ceil(block)..(start + bytes) / block).collect(),
    }
}

fn blocks(root: &Path, memory: &Path, topology: &Topology) -> Vec<Block> {
    let node_of = |number: u32| {
        let here = |node: &&crate::probe::Node| {
            let link = format!("sys/devices/system/node/node{}/memory{number}", node.id);
            root.join(link).exists()
        };
        topology.nodes.iter().find(here).map(|node| node.id)
    };
    let block = |(number, folder): (u32, std::path::PathBuf)| {
        // The kernel has the node as a link within the block; older ones have it the other way round alone.
        let within = names(&folder);
        let within = within
            .iter()
            .find_map(|name| name.strip_prefix("node")?.parse().ok());
        Some(Block {
            number,
            node: within.or_else(|| node_of(number))?,
            state: text(&folder.join("state"))?,
            zones: text(&folder.join("valid_zones")).unwrap_or_default(),
        })
    };
    numbered(memory, "memory")
        .into_iter()
        .filter_map(block)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_blocks_that_are_whole_within_it() {
        assert_eq!(whole_blocks(100, 200, 100), [1, 2]);
        assert_eq!(whole_blocks(101, 200, 100), [2]);
        assert!(whole_blocks(0, 100, 0).is_empty());
    }
}
