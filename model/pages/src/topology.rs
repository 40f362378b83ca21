//! The page frames of a machine, as plain numbers.

use varve_machine::{Machine, NodeKind, NumaNode};

use crate::bins::MAX_LEVELS;

/// Frames of one NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFrames {
    /// Page frames.
    pub frames: u32,
    /// Fast memory (DRAM that programs see); false for PM, CXL, and memory behind a DRAM cache.
    pub fast: bool,
    /// Socket that it belongs to.
    pub socket: u32,
    /// Bins of the DRAM cache in front of it: a page is in bin `frame of the node mod bins`.
    pub bins: Option<u32>,
    /// Pages that a bin holds at once (ways of the cache); more of them are a conflict. 1 without a cache.
    pub ways: u32,
    /// DIMMs that lie one after the other in it, all alike; 0 where every page is on all of them (channels are interleaved).
    pub dimms: u32,
}

/// All frames of a machine. Frames are numbered through the nodes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The nodes.
    pub nodes: Vec<NodeFrames>,
}

/// Why a machine cannot be cut into pages of this size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Pages are powers of two from 64 bytes on.
    #[error(
        "a page of {page_bytes} B will not do: use a power of two of at least 64 B, such as 4KiB or 2MiB"
    )]
    Page {
        /// The page, bytes.
        page_bytes: u64,
    },
    /// Not even one page fits.
    #[error(
        "machine `{machine}`: a page of {page_bytes} B is larger than the {what} of {bytes} B; use smaller pages"
    )]
    PageTooLarge {
        /// Name of the machine.
        machine: String,
        /// The page, bytes.
        page_bytes: u64,
        /// The memory or cache.
        what: &'static str,
        /// Its capacity, bytes.
        bytes: u64,
    },
    /// A memory or cache is not cut evenly.
    #[error(
        "machine `{machine}`: the {what} of {bytes} B is not a whole number of {unit} B (pages of {page_bytes} B times ways); change its size or the page"
    )]
    Uneven {
        /// Name of the machine.
        machine: String,
        /// The page, bytes.
        page_bytes: u64,
        /// The memory or cache.
        what: &'static str,
        /// Its capacity, bytes.
        bytes: u64,
        /// Unit that it must be a multiple of, bytes.
        unit: u64,
    },
    /// Frame numbers have 32 bits.
    #[error(
        "machine `{machine}`: {frames} frames of {page_bytes} B are more than 4294967295; use larger pages"
    )]
    TooManyFrames {
        /// Name of the machine.
        machine: String,
        /// Frames.
        frames: u64,
        /// The page, bytes.
        page_bytes: u64,
    },
    /// Too many pages share a bin.
    #[error(
        "machine `{machine}`: {pages} pages share a bin of the DRAM cache, more than the {MAX_LEVELS} that can be told apart; use larger pages or a larger cache"
    )]
    DeepBins {
        /// Name of the machine.
        machine: String,
        /// Pages in a bin.
        pages: u64,
    },
}

impl Topology {
    /// Cuts the nodes of `machine` into pages, in the order of [`Machine::nodes`]. In memory mode a node has the bins
    /// of its socket's DRAM cache.
    ///
    /// # Errors
    /// A page that is no power of two, that is larger than a node or the cache, or does not divide them; too many
    /// frames, or too many in a bin.
    pub fn of(machine: &Machine, page_bytes: u64) -> Result<Topology, TopologyError> {
        let name = || machine.name.clone();
        if !page_bytes.is_power_of_two() || page_bytes < 64 {
            return Err(TopologyError::Page { page_bytes });
        }
        let whole = |what: &'static str, bytes: u64, unit: u64| {
            let machine = name();
            if bytes < page_bytes {
                return Err(TopologyError::PageTooLarge {
                    machine,
                    page_bytes,
                    what,
                    bytes,
                });
            }
            if !bytes.is_multiple_of(unit) {
                return Err(TopologyError::Uneven {
                    machine,
                    page_bytes,
                    what,
                    bytes,
                    unit,
                });
            }
            Ok(bytes / unit)
        };
        let cache = machine.dram_cache.as_ref();
        let ways = cache.map_or(1, |cache| cache.ways.max(1));
        let mut counts = Vec::new();
        for node in machine.nodes() {
            let frames = whole(kind(&node), node.bytes.0, page_bytes)?;
            let bins = match cache.filter(|_| node.cached) {
                Some(c) => Some(whole(
                    "DRAM cache",
                    c.bytes.0,
                    page_bytes.saturating_mul(ways.into()),
                )?),
                None => None,
            };
            counts.push((node, frames, bins));
        }
        let frames = counts
            .iter()
            .fold(0u64, |sum, (_, frames, _)| sum.saturating_add(*frames));
        if frames > u64::from(u32::MAX) {
            return Err(TopologyError::TooManyFrames {
                machine: name(),
                frames,
                page_bytes,
            });
        }
        let mut nodes = Vec::new();
        for (node, frames, bins) in counts {
            // A cache larger than its memory has bins that no page can be in.
            let bins = bins.map(|bins| bins.min(u64::from(u32::MAX)));
            let pages = bins.map_or(0, |bins| frames.div_ceil(bins));
            if pages >= u64::from(MAX_LEVELS) {
                return Err(TopologyError::DeepBins {
                    machine: name(),
                    pages,
                });
            }
            nodes.push(NodeFrames {
                frames: frames as u32,
                fast: node.kind == NodeKind::Dram,
                socket: node.socket,
                bins: bins.map(|bins| bins as u32),
                ways: if bins.is_some() { ways } else { 1 },
                dimms: match node.kind {
                    NodeKind::Dram if machine.dram.interleave_bytes.0 == 0 => {
                        machine.dram.channels * machine.dram.dimms_per_channel
                    }
                    _ => 0,
                },
            });
        }
        Ok(Topology { page_bytes, nodes })
    }

    /// Frames of all nodes.
    pub fn frames(&self) -> u32 {
        self.nodes.iter().map(|node| node.frames).sum()
    }

    /// Frames of all fast nodes, or of all others.
    pub fn frames_of(&self, fast: bool) -> u32 {
        let nodes = self.nodes_of(fast).into_iter();
        nodes.map(|node| self.nodes[node].frames).sum()
    }

    /// Is there a DRAM cache in front of any node?
    pub fn has_cache(&self) -> bool {
        self.nodes.iter().any(|node| node.bins.is_some())
    }

    /// Are there nodes of both kinds, fast and slow?
    pub fn has_tiers(&self) -> bool {
        !self.nodes_of(true).is_empty() && !self.nodes_of(false).is_empty()
    }

    /// The fast nodes by number, or the others.
    pub fn nodes_of(&self, fast: bool) -> Vec<usize> {
        let is_of = |&node: &usize| self.nodes[node].fast == fast;
        (0..self.nodes.len()).filter(is_of).collect()
    }

    /// The fast nodes in the order of [`Topology::nearest`], or the others. Where a machine has slow memory of two kinds, that is
    /// not the order of their numbers: all of it on one socket comes before that on the next.
    pub fn nearest_of(&self, socket: u32, fast: bool) -> Vec<usize> {
        let mut order = self.nearest(socket);
        order.retain(|&node| self.nodes[node].fast == fast);
        order
    }

    /// Nodes in the order in which Linux searches them for memory for a thread on `socket`: by distance (own socket
    /// first, its DRAM before its slow memory), then the other sockets.
    pub fn nearest(&self, socket: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&node| {
            let near = &self.nodes[node];
            (near.socket != socket, near.socket, !near.fast, node)
        });
        order
    }
}

fn kind(node: &NumaNode) -> &'static str {
    match node.kind {
        NodeKind::Dram => "DRAM of a socket",
        NodeKind::Pm => "PM of a socket",
        NodeKind::Cxl => "CXL memory of a socket",
    }
}
