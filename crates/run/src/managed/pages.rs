//! Where pages of a managed program go: to the memory that their range is bound to.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use varve_machine::model::ADDRESS_BITS;
use varve_machine::{Fault, Kind, Op, OutOfFrames, Pager};
use varve_pages::{Frames, Topology};

/// Kinds of memory: DRAM, and all else.
pub const TIERS: usize = 2;

/// A page on the model, bytes, as [`Kind::Unmap`] counts them.
const UNIT: u64 = 4096;

/// Where threads and their memory are on a machine with several sockets (paper A, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numa {
    /// Threads and memory on the first socket.
    #[default]
    Local,
    /// Threads on the second socket, memory on the first.
    Remote,
    /// As automatic balancing leaves it: instances alternate between the sockets, and of each one's pages as many are on
    /// the one as on the other. That they are exactly half and half is an assumption.
    Auto,
}

impl Numa {
    /// The socket that instance `i` runs on.
    pub fn socket(self, i: u32, sockets: u32) -> u32 {
        match self {
            Numa::Local => 0,
            Numa::Remote => 1.min(sockets - 1),
            Numa::Auto => i % sockets,
        }
    }
}

impl std::str::FromStr for Numa {
    type Err = String;

    fn from_str(text: &str) -> Result<Numa, String> {
        match text {
            "local" => Ok(Numa::Local),
            "remote" => Ok(Numa::Remote),
            "auto" => Ok(Numa::Auto),
            _ => Err(format!("`{text}` is none of local, remote and auto")),
        }
    }
}

impl std::fmt::Display for Numa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Numa::Local => "local",
            Numa::Remote => "remote",
            Numa::Auto => "auto",
        })
    }
}

/// The tier of each page that was bound, by its number; those of program `i` are tagged by `i` as the model does.
pub struct Tiers {
    of: Mutex<HashMap<u64, u8>>,
    page_bytes: u64,
}

impl Tiers {
    pub fn new(page_bytes: u64) -> Tiers {
        Tiers {
            of: Mutex::default(),
            page_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u8>> {
        self.of.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The tier of a page; what was never bound is in the first.
    pub fn of(&self, vpn: u64) -> u8 {
        self.lock().get(&vpn).copied().unwrap_or(0)
    }

    /// Pages that were in another memory are given back: what they held is not needed any more.
    pub fn bind(&self, space: usize, address: u64, bytes: u64, tier: u8, out: &mut Vec<Op>) {
        let tag = self.tag(space);
        let mut tiers = self.lock();
        for page in address / self.page_bytes..(address + bytes).div_ceil(self.page_bytes) {
            let before = tiers.insert(page | tag, tier);
            if before.is_some_and(|before| before != tier) {
                out.push(self.unmap(page));
            }
        }
    }

    /// Pages that lie in the range with all their bytes are given back.
    pub fn release(&self, space: usize, address: u64, bytes: u64, out: &mut Vec<Op>) {
        let tag = self.tag(space);
        let mut tiers = self.lock();
        for page in address.div_ceil(self.page_bytes)..(address + bytes) / self.page_bytes {
            if tiers.remove(&(page | tag)).is_some() {
                out.push(self.unmap(page));
            }
        }
    }

    fn tag(&self, space: usize) -> u64 {
        (space as u64) << (ADDRESS_BITS - self.page_bytes.ilog2())
    }

    fn unmap(&self, page: u64) -> Op {
        let size = (self.page_bytes / UNIT) as u16;
        Op::new(Kind::Unmap, page * self.page_bytes, size, 0)
    }
}

/// Places pages in the memory that their range is bound to; what is not bound is in fast memory.
pub struct TierPager {
    frames: Frames,
    /// Nodes of each tier and socket.
    nodes: [Vec<usize>; TIERS],
    tiers: Arc<Tiers>,
    numa: Numa,
    /// Frames of a node that may be taken: the others are other instances'.
    most: Vec<u32>,
}

impl TierPager {
    /// For one of `instances` that share the machine without being run.
    pub fn new(topology: &Topology, tiers: Arc<Tiers>, numa: Numa, instances: u32) -> TierPager {
        let of = |fast: bool| {
            let near = topology.nearest(0).into_iter();
            near.filter(|&node| topology.nodes[node].fast == fast)
                .collect()
        };
        let share = |n: &varve_pages::NodeFrames| n.frames / instances.max(1);
        TierPager {
            frames: Frames::in_order(topology),
            nodes: [of(true), of(false)],
            tiers,
            numa,
            most: topology.nodes.iter().map(share).collect(),
        }
    }

    /// Is the frame in DRAM?
    pub fn is_fast(&self, frame: u32) -> bool {
        self.frames.is_fast(frame)
    }

    fn take(&mut self, node: usize) -> Option<u32> {
        let used = self.frames.node(node).frames - self.frames.free(node);
        (used < self.most[node])
            .then(|| self.frames.take_from(node))
            .flatten()
    }
}

impl Pager for TierPager {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let tier = usize::from(self.tiers.of(fault.vpn)).min(TIERS - 1);
        let nodes = self.nodes[tier].len();
        // Half the pages on each socket; else the first socket, and others only when it is full.
        let first = match self.numa {
            Numa::Auto => fault.vpn as usize % nodes.max(1),
            Numa::Local | Numa::Remote => 0,
        };
        (0..nodes)
            .find_map(|i| self.take(self.nodes[tier][(first + i) % nodes]))
            .ok_or(OutOfFrames {
                pages: self.frames.used(),
                page_bytes: self.frames.page_bytes(),
            })
    }

    fn unmap(&mut self, _vpn: u64, frame: u32) {
        self.frames.give(frame);
    }
}
