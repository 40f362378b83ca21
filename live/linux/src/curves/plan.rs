//! Where and at which points curves are measured.

use super::free;
use crate::arch::{can_stream, can_write_back};
use crate::probe::Topology;
use crate::probe::cpus::{allowed_cpus, pairs};
use crate::probe::sysfs::{parse_list, text};
use std::path::Path;
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few points, shortly: some seconds.
    Quick,
    /// A few points, long enough for most noise: half a minute.
    Usual,
    /// Every point: two minutes.
    Full,
}

/// A memory, and the cores that it is measured from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredNode {
    /// Name in ids of curves: `dram` for the first node with cores, `remote-dram` for the second, `cxl` for the first
    /// without.
    pub id: &'static str,
    /// The same in the words of a table.
    pub words: &'static str,
    /// Node of the memory.
    pub node: u32,
    /// One hardware thread of each core of the first node with cores that we may run on.
    pub cpus: Vec<u32>,
}

/// The points. Lists are in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The memories.
    pub places: Vec<MeasuredNode>,
    /// Bytes that are measured in, of one memory at a time.
    pub bytes: u64,
    /// Bytes that a chase runs over.
    pub footprints: Vec<u64>,
    /// Threads of bandwidth by threads.
    pub threads: Vec<usize>,
    /// Block sizes of bandwidth by access size, bytes.
    pub sizes: Vec<u64>,
    /// Shares of reads, %.
    pub shares: Vec<u8>,
    /// Turns of an idle loop between the reads that make the load, from idle to all out.
    pub paces: Vec<u32>,
    /// Time of one run of one point.
    pub time: Duration,
    /// Runs of each point; the median counts, the least and the most are the spread.
    pub runs: usize,
    /// Can stores past the caches be measured?
    pub streams: bool,
    /// Can written-back stores be measured?
    pub write_backs: bool,
    /// Curves that are not measured, and why, one line each.
    pub notes: Vec<String>,
}

const MIB: u64 = 1 << 20;

impl Plan {
    /// The curves that can be measured here. No places if there are none; the notes then say why.
    pub fn here(topology: &Topology, effort: Effort) -> Plan {
        let mut plan = Plan::points(effort);
        plan.places = places(topology);
        if plan.places.is_empty() {
            let line = "nothing was measured: no node has both processors and memory in reach";
            plan.notes.push(line.into());
            return plan;
        }
        let cores = plan.places[0].cpus.len();
        let wanted = (256 * MIB)
            .max(4 * topology.last_level_bytes())
            .max(cores as u64 * 64 * MIB);
        let free = plan.places.iter().filter_map(|p| {
            let node = topology.nodes.iter().find(|n| n.id == p.node)?;
            Some(free::allowance(Path::new("/"), node.free_bytes))
        });
        plan.bytes = wanted.min(free.min().unwrap_or(0)) / (2 * MIB) * (2 * MIB);
        if plan.bytes < 16 * MIB {
            plan.places.clear();
            let line = "nothing was measured: a quarter of the free memory is less than 16 MiB";
            plan.notes.push(line.into());
            return plan;
        }
        plan.fit(cores);
        plan.say_what_is_missing(topology, wanted, cores);
        plan
    }

    /// The points of an unlimited machine.
    fn points(effort: Effort) -> Plan {
        let full = effort == Effort::Full;
        let few = |few: &[u64], all: Vec<u64>| if full { all } else { few.to_vec() };
        let powers = |from: u32, to: u32| (from..=to).map(|shift| 1u64 << shift).collect();
        let (time, runs) = match effort {
            Effort::Quick => (16, 3),
            _ => (80, 5),
        };
        Plan {
            places: Vec::new(),
            bytes: 0,
            footprints: few(
                &[16 << 10, 256 << 10, 2 << 20, 16 << 20, 256 << 20],
                powers(12, 30),
            ),
            threads: few(&[1, 2, 4, 8, 16, 24, 32, 48, 64, 96], (1..=1024).collect())
                .into_iter()
                .map(|n| n as usize)
                .collect(),
            sizes: few(
                &[64, 256, 1 << 10, 4 << 10, 16 << 10, 1 << 20],
                powers(6, 21),
            ),
            shares: few(&[0, 25, 50, 75, 100], (0..=100).step_by(10).collect())
                .into_iter()
                .map(|s| s as u8)
                .collect(),
            paces: match full {
                true => vec![20_000, 8000, 4000, 2000, 1000, 500, 250, 120, 60, 30, 15, 0],
                false => vec![20_000, 2000, 500, 120, 30, 0],
            },
            time: Duration::from_millis(time),
            runs,
            streams: can_stream(),
            write_backs: can_stream() && can_write_back(),
            notes: Vec::new(),
        }
    }

    /// Leaves out what does not fit the memory and the cores.
    fn fit(&mut self, cores: usize) {
        self.footprints.retain(|b| *b <= self.bytes);
        self.threads.retain(|n| *n < cores);
        self.threads.push(cores);
        let part = self.bytes / cores as u64 / 2;
        self.sizes.retain(|s| *s <= part);
    }

    fn say_what_is_missing(&mut self, topology: &Topology, wanted: u64, cores: usize) {
        let mut note = |line: String| self.notes.push(line);
        if self.bytes < wanted {
            note(format!(
                "measured in {} MiB instead of {}: a quarter of what is free",
                self.bytes / MIB,
                wanted / MIB
            ));
        }
        if !self.streams {
            note(
                "stores past the caches, write-backs and mixes: this processor is not an x86-64"
                    .into(),
            );
        } else if !self.write_backs {
            note("store + clwb: this processor has no CLWB".into());
        }
        if cores < 2 {
            note("loaded latency: needs two cores, one is in reach".into());
        }
        let huge = text(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"));
        if huge.is_none_or(|h| h.contains("[never]")) {
            note(
                "pages are of 4 KiB (transparent huge pages are off), the model's of 2 MiB".into(),
            );
        }
        if topology.processor.virtual_machine {
            note("a virtual machine: neighbours and its host take part in every figure".into());
        }
    }
}

/// The memories that `machine here` is described with, seen from the first node that has cores.
fn places(topology: &Topology) -> Vec<MeasuredNode> {
    let pairs = pairs(topology);
    let Some(near) = pairs.first().map(|p| p.cpu_node) else {
        return Vec::new();
    };
    let cpus_of = |node: u32| {
        topology
            .nodes
            .iter()
            .any(|n| n.id == node && !n.cpus.is_empty())
    };
    let names = [
        ("dram", "DRAM"),
        ("remote-dram", "remote DRAM"),
        ("cxl", "CXL"),
    ];
    let mut out: Vec<MeasuredNode> = Vec::new();
    for pair in pairs.iter().filter(|p| p.cpu_node == near) {
        let (id, words) = match (pair.memory_node == near, cpus_of(pair.memory_node)) {
            (true, _) => names[0],
            (_, true) => names[1],
            (_, false) => names[2],
        };
        if out.iter().all(|p| p.id != id) {
            out.push(MeasuredNode {
                id,
                words,
                node: pair.memory_node,
                cpus: one_per_core(&pair.cpus),
            });
        }
    }
    out
}

/// The first of the hardware threads of each core.
fn one_per_core(cpus: &[u32]) -> Vec<u32> {
    let allowed = allowed_cpus();
    let first = |cpu: &u32| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = parse_list(&text(Path::new(&file)).unwrap_or_default());
        let first = siblings.into_iter().find(|s| allowed.contains(s));
        first.is_none_or(|f| f == *cpu)
    };
    cpus.iter().copied().filter(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::cpus::node;

    #[test]
    fn memories_are_named_as_the_machine_here_names_them() {
        let cpu = allowed_cpus()[0];
        let topology = Topology {
            nodes: vec![
                node(0, &[cpu], &[10, 20, 30]),
                node(1, &[cpu], &[20, 10, 30]),
                node(2, &[], &[30, 30, 10]),
            ],
            ..Topology::default()
        };
        let found: Vec<_> = places(&topology).iter().map(|p| (p.id, p.node)).collect();
        assert_eq!(found, [("dram", 0), ("remote-dram", 1), ("cxl", 2)]);
        assert!(places(&Topology::default()).is_empty());
    }

    #[test]
    fn a_plan_takes_no_more_than_a_quarter_and_says_so() {
        let cpu = allowed_cpus()[0];
        let mut topology = Topology {
            nodes: vec![node(0, &[cpu], &[10])],
            ..Topology::default()
        };
        topology.nodes[0].free_bytes = 160 * MIB;
        let plan = Plan::here(&topology, Effort::Quick);
        assert!(plan.bytes <= 40 * MIB);
        assert!(plan.footprints.iter().all(|b| *b <= plan.bytes));
        assert!(
            plan.notes.iter().any(|n| n.contains("a quarter")),
            "{:?}",
            plan.notes
        );
        assert_eq!(plan.threads, [1]);
        topology.nodes[0].free_bytes = 8 * MIB;
        let plan = Plan::here(&topology, Effort::Full);
        assert!(plan.places.is_empty() && plan.notes.len() == 1, "{plan:?}");
    }
}
