//! The page frames of a machine, as plain numbers.

use varve_machine::{Machine, Mode};

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
    /// The cache is not cut evenly by pages and ways.
    #[error(
        "machine `{machine}`: a DRAM cache of {bytes} B and {ways} ways is not a whole number of bins of {ways} pages of {page_bytes} B; change dram_cache.bytes, dram_cache.ways or the page"
    )]
    UnevenCache {
        /// Name of the machine.
        machine: String,
        /// Cache, bytes.
        bytes: u64,
        /// Ways of the cache.
        ways: u32,
        /// The page, bytes.
        page_bytes: u64,
    },
    /// A part of the description is missing.
    #[error(
        "machine `{machine}` is in memory mode but has no [{what}]; add it or set mode = \"flat\""
    )]
    Missing {
        /// Name of the machine.
        machine: String,
        /// Section that is missing.
        what: &'static str,
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
    /// Cuts the memory of `machine` into pages. In memory mode there is one node per socket, the slow memory with
    /// the bins of its DRAM cache; else the DRAM of each socket, then the PM of each, then the CXL memory of each.
    ///
    /// # Errors
    /// A page that is no power of two, larger than a device or cache, or does not divide the cache; too many frames.
    pub fn of(machine: &Machine, page_bytes: u64) -> Result<Topology, TopologyError> {
        let name = || machine.name.clone();
        if !page_bytes.is_power_of_two() || page_bytes < 64 {
            return Err(TopologyError::Page { page_bytes });
        }
        let pages = |what: &'static str, bytes: u64| match bytes / page_bytes {
            0 => Err(TopologyError::PageTooLarge {
                machine: name(),
                page_bytes,
                what,
                bytes,
            }),
            pages => Ok(pages),
        };
        let dram = &machine.dram;
        let dimms = u64::from(dram.channels) * u64::from(dram.dimms_per_channel);
        let dram_bytes = dimms * dram.dimm_bytes.0;
        let pm_bytes = machine
            .pm
            .as_ref()
            .map(|pm| u64::from(pm.dimms) * pm.dimm_bytes.0);
        let cxl_bytes = machine.cxl.as_ref().map(|cxl| cxl.bytes.0);

        // What each socket has: (frames, fast, cache).
        let mut kinds: Vec<(u64, bool, Option<(u32, u32)>)> = Vec::new();
        if machine.mode == Mode::MemoryMode {
            let missing = |what| TopologyError::Missing {
                machine: name(),
                what,
            };
            let cache = machine
                .dram_cache
                .as_ref()
                .ok_or_else(|| missing("dram_cache"))?;
            let slow = pm_bytes
                .or(cxl_bytes)
                .ok_or_else(|| missing("pm] or [cxl"))?;
            let frames = pages("slow memory of a socket", slow)?;
            pages("DRAM cache", cache.bytes.0)?;
            let bin_bytes = page_bytes * u64::from(cache.ways.max(1));
            if cache.bytes.0 % bin_bytes != 0 || cache.bytes.0 / bin_bytes > u64::from(u32::MAX) {
                let (bytes, ways) = (cache.bytes.0, cache.ways);
                return Err(TopologyError::UnevenCache {
                    machine: name(),
                    bytes,
                    ways,
                    page_bytes,
                });
            }
            let bins = cache.bytes.0 / bin_bytes;
            if frames.div_ceil(bins) >= u64::from(MAX_LEVELS) {
                let pages = frames.div_ceil(bins);
                return Err(TopologyError::DeepBins {
                    machine: name(),
                    pages,
                });
            }
            kinds.push((frames, false, Some((bins as u32, cache.ways.max(1)))));
        } else {
            kinds.push((pages("DRAM of a socket", dram_bytes)?, true, None));
            if let Some(bytes) = pm_bytes {
                kinds.push((pages("PM of a socket", bytes)?, false, None));
            }
            if let Some(bytes) = cxl_bytes {
                kinds.push((pages("CXL memory of a socket", bytes)?, false, None));
            }
        }
        let frames = kinds.iter().map(|kind| kind.0).sum::<u64>() * u64::from(machine.sockets);
        if frames > u64::from(u32::MAX) {
            return Err(TopologyError::TooManyFrames {
                machine: name(),
                frames,
                page_bytes,
            });
        }
        let mut nodes = Vec::new();
        for (frames, fast, cache) in kinds {
            for socket in 0..machine.sockets {
                let bins = cache.map(|(bins, _)| bins);
                let ways = cache.map_or(1, |(_, ways)| ways);
                nodes.push(NodeFrames {
                    frames: frames as u32,
                    fast,
                    socket,
                    bins,
                    ways,
                });
            }
        }
        Ok(Topology { page_bytes, nodes })
    }

    /// Frames of all nodes.
    pub fn frames(&self) -> u32 {
        self.nodes.iter().map(|node| node.frames).sum()
    }

    /// Is there a DRAM cache in front of any node?
    pub fn has_cache(&self) -> bool {
        self.nodes.iter().any(|node| node.bins.is_some())
    }

    /// Are there nodes of both kinds, fast and slow?
    pub fn has_tiers(&self) -> bool {
        self.nodes.iter().any(|node| node.fast) && self.nodes.iter().any(|node| !node.fast)
    }

    /// Nodes in the order in which Linux looks for memory for a thread on `socket`: by distance (own socket first,
    /// its DRAM before its slow memory), then the other sockets.
    pub fn nearest(&self, socket: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&node| {
            let near = &self.nodes[node];
            (near.socket != socket, near.socket, !near.fast, node)
        });
        order
    }
}
