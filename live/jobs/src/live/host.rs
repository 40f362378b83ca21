//! This machine as plans see it.

use super::family::Groups;
use crate::class::Limits;
use crate::error::Error;
use crate::group::Group;
use crate::kinds::Memory;
use crate::plan::Host;
use crate::policy::place::Capacity;
use std::path::Path;
use std::sync::Arc;
use varve_live::nodes::Kinds;
use varve_live::probe::{Topology, allowed_cpus};
use varve_live::traffic::TrafficMeter;

/// Nodes and processors of this machine.
#[derive(Clone, Debug)]
pub struct LiveHost {
    topology: Topology,
    /// The nodes of both kinds, if there are two kinds.
    pub kinds: Option<Kinds>,
    /// Processors that programs may run on.
    pub cpus: Vec<u32>,
    /// Limitations of this machine, in lines.
    pub notes: Vec<String>,
    /// Counters of the bytes that programs read and write, or the reason why there are none.
    pub traffic: Result<Arc<TrafficMeter>, String>,
    /// Control groups of what is started.
    pub(super) groups: Arc<Groups>,
}

impl LiveHost {
    /// Probes this machine. `nodes`: fast and slow nodes, as a user writes them; detected otherwise.
    ///
    /// # Errors
    /// Nodes that this machine does not have.
    pub fn new(nodes: Option<&str>) -> Result<LiveHost, Error> {
        let (topology, _) = Topology::read(Path::new("/"));
        let mut notes = Vec::new();
        let kinds = match nodes {
            Some(given) => {
                Some(Kinds::parse(given, &topology).map_err(|e| Error::Live(e.to_string()))?)
            }
            None => Kinds::probe(&topology)
                .map_err(|why| {
                    notes.push(format!(
                        "{why}: programs are not placed, only threads and order are"
                    ))
                })
                .ok(),
        };
        let allowed = allowed_cpus();
        let near: Vec<u32> = kinds
            .iter()
            .flat_map(|k| topology.nodes.iter().filter(|n| k.fast.contains(&n.id)))
            .flat_map(|n| n.cpus.iter().copied())
            .filter(|c| allowed.contains(c))
            .collect();
        Ok(LiveHost {
            topology,
            kinds,
            // Processors of the fast nodes, as a socket's; all if those have none.
            cpus: if near.is_empty() { allowed } else { near },
            notes,
            traffic: TrafficMeter::at(Path::new("/")).map(Arc::new),
            groups: Groups::new().into(),
        })
    }

    /// How a job's memory is counted, in a line.
    pub fn counted(&self) -> &str {
        &self.groups.note
    }

    /// Nodes of a memory, if there are two kinds.
    pub fn nodes(&self, memory: Memory) -> Option<&[u32]> {
        let kinds = self.kinds.as_ref()?;
        Some(match memory {
            Memory::Fast => &kinds.fast,
            Memory::Slow => &kinds.slow,
        })
    }

    /// Whether the counters include this memory (both, if a program is in part): counters of the memory controllers
    /// do so where the memory is the processors' own.
    pub(super) fn is_counted(&self, memory: Option<Memory>) -> bool {
        let own = |memory: Memory| {
            let nodes = self.nodes(memory).unwrap_or(&[]);
            let of = |id: &u32| self.topology.nodes.iter().find(|node| node.id == *id);
            nodes
                .iter()
                .filter_map(of)
                .all(|node| !node.cpus.is_empty())
        };
        match self.traffic.as_deref() {
            Err(_) => false,
            Ok(TrafficMeter::Groups(_)) => true,
            Ok(TrafficMeter::Machine(_)) => Memory::ALL
                .into_iter()
                .filter(|m| memory.is_none_or(|one| one == *m))
                .all(own),
        }
    }

    /// Bytes that are free on a memory's nodes.
    fn free(&self, memory: Memory) -> u64 {
        let nodes = self.topology.nodes.iter();
        match self.nodes(memory) {
            Some(of) => nodes
                .filter(|n| of.contains(&n.id))
                .map(|n| n.free_bytes)
                .sum(),
            None if memory == Memory::Fast => available(),
            None => 0,
        }
    }

    /// This machine for a group, and what the group asks for and cannot have, in lines.
    ///
    /// Workloads are carried out `scale` times smaller, and the group's memories with them.
    pub fn host(&self, group: &Group, scale: u32) -> (Host, Vec<String>) {
        let mut notes = self.notes.clone();
        let cores = self.cpus.len() as u32;
        if let Some(asked) = group.cores.filter(|&c| c > cores) {
            notes.push(format!(
                "the group may use {asked} cores, and there are {cores} here"
            ));
        }
        let alike = self.kinds.is_none();
        let mut of = |memory: Memory, asked: Option<u64>| {
            let free = self.free(memory);
            match asked.map(|a| a / u64::from(scale.max(1))) {
                // One kind of memory has nothing to be short of.
                _ if alike => free,
                Some(asked) if asked > free => {
                    let size = |b: u64| varve_report::fmt::bytes(b as f64);
                    notes.push(format!(
                        "the group may use {} of {memory} memory, and {} are free here",
                        size(asked),
                        size(free)
                    ));
                    free
                }
                Some(asked) => asked,
                None => free,
            }
        };
        let capacity = Capacity {
            fast: of(Memory::Fast, group.fast),
            slow: of(Memory::Slow, group.slow),
        };
        let host = Host {
            name: "here".into(),
            cores: group.cores.unwrap_or(cores).min(cores),
            capacity,
            limits: Limits {
                slow_write_gbps: self.slow_write_gbps(),
            },
            alike,
        };
        (host, notes)
    }

    /// The firmware's write bandwidth of the slow nodes.
    pub(super) fn slow_write_gbps(&self) -> Option<f64> {
        let kinds = self.kinds.as_ref()?;
        let slow = self
            .topology
            .nodes
            .iter()
            .filter(|n| kinds.slow.contains(&n.id));
        let stated: u64 = slow
            .filter_map(|n| n.attached.iter().min_by_key(|a| a.class))
            .map(|a| a.write_mb_per_s)
            .sum();
        (stated > 0).then(|| stated as f64 / 1000.0)
    }
}

/// Memory that programs can have without swapping, bytes.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    // Where it is not told, nothing is known to be short.
    kib.map_or(1 << 62, |k| k << 10)
}
