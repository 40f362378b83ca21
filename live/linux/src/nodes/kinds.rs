//! Which memory nodes are fast memory and which are slow. Decided from what the system says, without any other input.

use super::error::NodeError;
use crate::probe::{Node, Topology};
use std::fmt;

/// The nodes of each kind of memory, ascending. Which of several nodes a page goes to is the kernel's choice: the one
/// nearest to the processor that asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Nodes of fast memory.
    pub fast: Vec<u32>,
    /// Nodes of slow memory.
    pub slow: Vec<u32>,
}

/// Why a machine's memory is all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoKinds {
    /// The kernel shows no nodes.
    NoNuma,
    /// One node with memory.
    OneNode(u32),
    /// Several, with no source that reports one as slower: each has processors of its own, as in a server of two sockets.
    Alike(Vec<u32>),
}

impl fmt::Display for NoKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoKinds::NoNuma => write!(
                f,
                "all memory is alike (the kernel is built without NUMA support)"
            ),
            NoKinds::OneNode(node) => write!(f, "all memory is alike (node {node} alone has any)"),
            NoKinds::Alike(nodes) => write!(
                f,
                "all memory is alike (no source reports one of nodes {} as slower than another; --nodes fast={},slow={} declares it)",
                Kinds::list(nodes),
                nodes[0],
                nodes[1]
            ),
        }
    }
}

impl Kinds {
    /// Fast are the nodes with processors, slow those with memory alone, such as CXL expanders and persistent memory
    /// that the kernel was given. Memory alone that the firmware states to be faster than the processors' own (HBM) is
    /// left out if there is slow memory too; otherwise it is fast, and the processors' is slow.
    ///
    /// # Errors
    /// If that leaves one kind.
    pub fn probe(topology: &Topology) -> Result<Kinds, NoKinds> {
        let with_memory: Vec<&Node> = topology.nodes.iter().filter(|n| n.bytes > 0).collect();
        let (own, alone): (Vec<&Node>, Vec<&Node>) =
            with_memory.iter().partition(|n| !n.cpus.is_empty());
        match with_memory[..] {
            [] => return Err(NoKinds::NoNuma),
            [one] => return Err(NoKinds::OneNode(one.id)),
            _ if alone.is_empty() => return Err(NoKinds::Alike(ids(&own))),
            _ => {}
        }
        if own.is_empty() {
            // Memory alone, and more than one node of it: the slowest against the rest, if anything tells them apart.
            return by_slowness(topology, &alone);
        }
        let best = own.iter().filter_map(|n| stated(n)).reduce(f64::min);
        let faster = |n: &&&Node| matches!((stated(n), best), (Some(n), Some(own)) if n < own);
        let (faster, slower): (Vec<&Node>, Vec<&Node>) = alone.iter().partition(|n| faster(n));
        Ok(match slower[..] {
            [] => Kinds {
                fast: ids(&faster),
                slow: ids(&own),
            },
            _ => Kinds {
                fast: ids(&own),
                slow: ids(&slower),
            },
        })
    }

    /// Parses a user's nodes: `fast=0,slow=1`, several nodes as `0+2` or `0-3`. A node may be both: then that memory is
    /// alike, and all else works as if it were not.
    ///
    /// # Errors
    /// Text that says something else, and nodes that this machine does not have or that have no memory.
    pub fn parse(given: &str, topology: &Topology) -> Result<Kinds, NodeError> {
        let kinds = Kinds::read(given)?;
        let with_memory: Vec<&Node> = topology.nodes.iter().filter(|n| n.bytes > 0).collect();
        let known = Kinds::list(&ids(&with_memory));
        for &node in kinds.fast.iter().chain(&kinds.slow) {
            match topology.nodes.iter().find(|n| n.id == node) {
                None => return Err(NodeError::Unknown { node, known }),
                Some(n) if n.bytes == 0 => return Err(NodeError::NoMemory { node, known }),
                Some(_) => {}
            }
        }
        Ok(kinds)
    }

    /// Reads the same of any machine, without checking that this one has such nodes.
    ///
    /// # Errors
    /// Text that says something else.
    pub fn read(given: &str) -> Result<Kinds, NodeError> {
        let wrong = |why: String| NodeError::Text {
            given: given.into(),
            why,
        };
        let (mut fast, mut slow) = (None, None);
        for part in given.split(',') {
            let (kind, nodes) = part
                .split_once('=')
                .ok_or_else(|| wrong(format!("{part:?} has no `=`")))?;
            let place = match kind.trim() {
                "fast" => &mut fast,
                "slow" => &mut slow,
                other => return Err(wrong(format!("no kind of memory is called {other:?}"))),
            };
            if place.is_some() {
                return Err(wrong(format!("{} comes twice", kind.trim())));
            }
            *place =
                Some(node_list(nodes).ok_or_else(|| wrong(format!("{nodes:?} are no nodes")))?);
        }
        let missing = |kind: &str| wrong(format!("it does not say which nodes are {kind}"));
        Ok(Kinds {
            fast: fast.ok_or_else(|| missing("fast"))?,
            slow: slow.ok_or_else(|| missing("slow"))?,
        })
    }

    /// Nodes as [`Kinds::parse`] reads them.
    pub fn list(nodes: &[u32]) -> String {
        let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
        words.join("+")
    }

    /// The nodes of a tier of a heap's plan: 0 is fast, and all others are slow.
    pub fn of_tier(&self, tier: u8) -> &[u32] {
        match tier {
            0 => &self.fast,
            _ => &self.slow,
        }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fast={},slow={}",
            Kinds::list(&self.fast),
            Kinds::list(&self.slow)
        )
    }
}

fn ids(nodes: &[&Node]) -> Vec<u32> {
    nodes.iter().map(|n| n.id).collect()
}

/// `0+2-3`, ascending and each once; none if it is something else. Machines have at most 1024 nodes.
fn node_list(text: &str) -> Option<Vec<u32>> {
    let mut nodes = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim()
                .parse::<u32>()
                .ok()
                .filter(|&n| n < super::mask::MAX_NODES)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        nodes.extend(first..=last);
    }
    nodes.sort_unstable();
    nodes.dedup();
    (!nodes.is_empty()).then_some(nodes)
}

/// How slow a node is, as the firmware states it (HMAT, as seen from the nearest processors): latency over bandwidth,
/// the measure by which the kernel sorts memory into tiers too (Documentation/admin-guide/mm/numaperf.rst has the files).
fn stated(node: &Node) -> Option<f64> {
    let nearest = node.attached.iter().min_by_key(|a| a.class)?;
    let latency = nearest.read_ns + nearest.write_ns;
    let bandwidth = nearest.read_mb_per_s + nearest.write_mb_per_s;
    (latency > 0 && bandwidth > 0).then(|| latency as f64 / bandwidth as f64)
}

/// Nodes of memory alone: by what the firmware states of all of them, or else by their distance to the nearest
/// processors (SLIT).
fn by_slowness(topology: &Topology, nodes: &[&Node]) -> Result<Kinds, NoKinds> {
    let processors: Vec<usize> = (0..topology.nodes.len())
        .filter(|&i| !topology.nodes[i].cpus.is_empty())
        .collect();
    let distance = |n: &Node| {
        let of = |&i: &usize| n.distances.get(i).copied();
        processors.iter().filter_map(of).min().map(f64::from)
    };
    let all = |of: &dyn Fn(&Node) -> Option<f64>| -> Option<Vec<f64>> {
        nodes.iter().map(|n| of(n)).collect()
    };
    let slowness = all(&stated).or_else(|| all(&distance));
    let Some(slowness) = slowness else {
        return Err(NoKinds::Alike(ids(nodes)));
    };
    let fastest = slowness.iter().copied().fold(f64::INFINITY, f64::min);
    let of = |fast: bool| -> Vec<u32> {
        let both = nodes.iter().zip(&slowness);
        both.filter(|&(_, &s)| (s <= fastest) == fast)
            .map(|(n, _)| n.id)
            .collect()
    };
    match of(false)[..] {
        [] => Err(NoKinds::Alike(ids(nodes))),
        _ => Ok(Kinds {
            fast: of(true),
            slow: of(false),
        }),
    }
}
