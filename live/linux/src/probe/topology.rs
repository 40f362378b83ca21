//! Processors, caches, memory nodes and memory devices as Linux describes them.

use super::dimm::{Dimm, dimms};
use super::sysfs::{bytes_of, field, names, number, numbered, parse_list, size, text};
use crate::error::LiveError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Linux's description of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Kernel release, such as `6.8.0`.
    pub kernel: String,
    /// The processors, taken together.
    pub processor: Processor,
    /// Caches that the first processor sees, from the nearest.
    pub caches: Vec<Cache>,
    /// Memory nodes.
    pub nodes: Vec<Node>,
    /// Device-DAX devices (persistent memory or CXL memory not yet given to the kernel).
    pub dax: Vec<DaxDevice>,
    /// CXL memory devices.
    pub cxl: Vec<CxlDevice>,
    /// Memory modules; empty when the firmware's tables cannot be read.
    pub dimms: Vec<Dimm>,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Model name.
    pub model: String,
    /// Sockets.
    pub sockets: u32,
    /// Cores over all sockets.
    pub cores: u32,
    /// Hardware threads over all sockets, online.
    pub threads: u32,
    /// Highest frequency, MHz; 0 when unknown.
    pub max_mhz: f64,
    /// Is this a virtual machine? Sizes of caches and frequencies may then be the host's, or invented.
    pub virtual_machine: bool,
}

/// A processor cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Level, 1 is the nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Capacity, bytes.
    pub bytes: u64,
    /// Line, bytes.
    pub line_bytes: u32,
    /// Ways; 0 when the kernel does not know.
    pub ways: u32,
    /// Hardware threads that share it.
    pub shared_by: u32,
}

/// A memory node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number.
    pub id: u32,
    /// Its hardware threads; none for memory alone, such as a CXL expander.
    pub cpus: Vec<u32>,
    /// Memory, bytes.
    pub bytes: u64,
    /// Free memory, bytes.
    pub free_bytes: u64,
    /// Distance to each node as the firmware states it (SLIT; 10 is local), in order of their numbers.
    pub distances: Vec<u32>,
    /// Performance from the nearest processors (class 0) and nearest CPUs (class 1), from the firmware (HMAT).
    pub attached: Vec<Attached>,
    /// Caches in front of this memory, such as DRAM in front of persistent memory: what `--bins` means.
    pub side_caches: Vec<SideCache>,
}

/// Performance of a node as the firmware states it; 0 where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Access class.
    pub class: u32,
    /// Read bandwidth, MB/s.
    pub read_mb_per_s: u64,
    /// Write bandwidth, MB/s.
    pub write_mb_per_s: u64,
    /// Read latency, ns.
    pub read_ns: u64,
    /// Write latency, ns.
    pub write_ns: u64,
}

/// A cache on the memory's side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideCache {
    /// Level, 1 is the nearest to the memory.
    pub level: u32,
    /// Capacity, bytes.
    pub bytes: u64,
    /// Line, bytes.
    pub line_bytes: u64,
    /// `direct-mapped`, `complex` or `other`.
    pub indexing: String,
}

/// A device-DAX device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaxDevice {
    /// Name, such as `dax0.0`.
    pub name: String,
    /// Capacity, bytes.
    pub bytes: u64,
    /// Node that it would become, or belongs to; -1 for none.
    pub target_node: i64,
    /// Driver: `device_dax` for a device, `kmem` when the kernel uses it as ordinary memory.
    pub driver: String,
}

/// A CXL memory device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CxlDevice {
    /// Name, such as `mem0`.
    pub name: String,
    /// Volatile capacity, bytes.
    pub ram_bytes: u64,
    /// Persistent capacity, bytes.
    pub pmem_bytes: u64,
    /// Node of its processor side; -1 for none.
    pub node: i64,
}

impl Topology {
    /// Reads the tree below `root` (`/` for this machine). What cannot be read stays empty, and is noted
    /// where it matters.
    pub fn read(root: &Path) -> (Topology, Vec<String>) {
        let mut notes = Vec::new();
        let processor = processor(root);
        if processor.virtual_machine {
            notes.push(
                "this is a virtual machine: cache sizes and nodes are what its host shows".into(),
            );
        }
        let nodes: Vec<Node> = numbered(&root.join("sys/devices/system/node"), "node")
            .iter()
            .map(|(id, dir)| node(*id, dir))
            .collect();
        if nodes.is_empty() {
            notes.push("the kernel shows no memory nodes (/sys/devices/system/node): built without NUMA support".into());
        } else if nodes.iter().all(|n| n.attached.is_empty()) {
            notes.push("the firmware states no latency or bandwidth of the nodes (HMAT); only measurements show them".into());
        }
        let dimms = dimms(root);
        if dimms.is_empty() {
            notes.push("memory modules cannot be read (/sys/firmware/dmi/entries): not root, or a virtual machine".into());
        }
        let topology = Topology {
            kernel: text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            processor,
            caches: caches(root),
            nodes,
            dax: dax(root),
            cxl: cxl(root),
            dimms,
        };
        (topology, notes)
    }

    /// The DRAM that acts as a cache in front of one node's other memory, bytes.
    ///
    /// # Errors
    /// [`LiveError::NoCache`] when the kernel reports none, [`LiveError::SeveralCaches`] when nodes have different ones.
    pub fn dram_cache_bytes(&self) -> Result<u64, LiveError> {
        let caches = || {
            self.nodes
                .iter()
                .flat_map(|n| n.side_caches.iter().map(move |c| (n.id, c.bytes)))
                .filter(|&(_, bytes)| bytes > 0)
        };
        let (_, first) = caches().next().ok_or(LiveError::NoCache)?;
        if caches().all(|(_, bytes)| bytes == first) {
            return Ok(first);
        }
        let all: Vec<String> = caches()
            .map(|(node, bytes)| format!("node {node}: {} MiB", bytes >> 20))
            .collect();
        Err(LiveError::SeveralCaches(all.join(", ")))
    }

    /// How far a node is from another by the firmware's numbers; the largest where it does not say.
    pub(crate) fn distance(&self, from: &Node, to: u32) -> u32 {
        // In order of their numbers.
        let at = self.nodes.iter().position(|node| node.id == to);
        let distance = at.and_then(|at| from.distances.get(at));
        distance.copied().unwrap_or(u32::MAX)
    }

    /// The largest cache of the processor, bytes; 0 when unknown.
    pub fn last_level_bytes(&self) -> u64 {
        self.caches.iter().map(|c| c.bytes).max().unwrap_or(0)
    }
}

fn processor(root: &Path) -> Processor {
    let cpuinfo = text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let field = |name| field(&cpuinfo, name);
    let cpus = root.join("sys/devices/system/cpu");
    let online = parse_list(&text(&cpus.join("online")).unwrap_or_default());
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    for cpu in &online {
        let topology = cpus.join(format!("cpu{cpu}/topology"));
        let socket = number(&topology.join("physical_package_id")).unwrap_or(0);
        sockets.insert(socket);
        cores.insert((
            socket,
            number(&topology.join("core_id")).unwrap_or(u64::from(*cpu)),
        ));
    }
    let khz = number(&cpus.join("cpu0/cpufreq/cpuinfo_max_freq"));
    let mhz = field("cpu MHz").and_then(|v| v.parse().ok()).unwrap_or(0.0);
    Processor {
        model: field("model name").unwrap_or_default().into(),
        sockets: sockets.len() as u32,
        cores: cores.len() as u32,
        threads: online.len() as u32,
        max_mhz: khz.map_or(mhz, |k| k as f64 / 1000.0),
        virtual_machine: field("flags")
            .is_some_and(|f| f.split_ascii_whitespace().any(|w| w == "hypervisor")),
    }
}

fn caches(root: &Path) -> Vec<Cache> {
    numbered(&root.join("sys/devices/system/cpu/cpu0/cache"), "index")
        .iter()
        .filter_map(|(_, dir)| {
            Some(Cache {
                level: number(&dir.join("level"))? as u32,
                kind: text(&dir.join("type"))?,
                bytes: size(&dir.join("size"))?,
                line_bytes: number(&dir.join("coherency_line_size")).unwrap_or(64) as u32,
                ways: number(&dir.join("ways_of_associativity")).unwrap_or(0) as u32,
                shared_by: parse_list(&text(&dir.join("shared_cpu_list")).unwrap_or_default()).len()
                    as u32,
            })
        })
        .collect()
}

fn node(id: u32, dir: &Path) -> Node {
    let meminfo = text(&dir.join("meminfo")).unwrap_or_default();
    let attached = numbered(dir, "access")
        .into_iter()
        .filter_map(|(class, dir)| {
            let of = |name: &str| number(&dir.join("initiators").join(name)).unwrap_or(0);
            let attached = Attached {
                class,
                read_mb_per_s: of("read_bandwidth"),
                write_mb_per_s: of("write_bandwidth"),
                read_ns: of("read_latency"),
                write_ns: of("write_latency"),
            };
            (attached.read_mb_per_s + attached.read_ns > 0).then_some(attached)
        });
    let side_caches = numbered(&dir.join("memory_side_cache"), "index")
        .into_iter()
        .filter_map(|(level, dir)| {
            Some(SideCache {
                level,
                bytes: number(&dir.join("size"))?,
                line_bytes: number(&dir.join("line_size")).unwrap_or(0),
                // Documentation/admin-guide/mm/numaperf.rst.
                indexing: match number(&dir.join("indexing")) {
                    Some(0) => "direct-mapped",
                    Some(1) => "complex",
                    _ => "other",
                }
                .into(),
            })
        });
    Node {
        id,
        cpus: parse_list(&text(&dir.join("cpulist")).unwrap_or_default()),
        bytes: bytes_of(&meminfo, "MemTotal"),
        free_bytes: bytes_of(&meminfo, "MemFree"),
        distances: text(&dir.join("distance"))
            .unwrap_or_default()
            .split_ascii_whitespace()
            .filter_map(|d| d.parse().ok())
            .collect(),
        attached: attached.collect(),
        side_caches: side_caches.collect(),
    }
}

fn dax(root: &Path) -> Vec<DaxDevice> {
    let devices = root.join("sys/bus/dax/devices");
    let device = |name: String| {
        let dir = devices.join(&name);
        let driver = std::fs::read_link(dir.join("driver")).ok();
        DaxDevice {
            bytes: number(&dir.join("size")).unwrap_or(0),
            target_node: text(&dir.join("target_node"))
                .and_then(|t| t.parse().ok())
                .unwrap_or(-1),
            driver: driver
                .and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()))
                .unwrap_or_default(),
            name,
        }
    };
    names(&devices)
        .into_iter()
        .filter(|n| n.starts_with("dax"))
        .map(device)
        .collect()
}

fn cxl(root: &Path) -> Vec<CxlDevice> {
    let devices = root.join("sys/bus/cxl/devices");
    let device = |name: String| {
        let dir = devices.join(&name);
        CxlDevice {
            ram_bytes: number(&dir.join("ram/size")).unwrap_or(0),
            pmem_bytes: number(&dir.join("pmem/size")).unwrap_or(0),
            node: text(&dir.join("numa_node"))
                .and_then(|t| t.parse().ok())
                .unwrap_or(-1),
            name,
        }
    };
    names(&devices)
        .into_iter()
        .filter(|n| n.starts_with("mem"))
        .map(device)
        .collect()
}
