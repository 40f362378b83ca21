//! Binds addresses to a kind of memory.
//!
//! The policy of a range is to *prefer* nodes (`MPOL_PREFERRED`), not to insist on them (`MPOL_BIND`): a program that insists and finds the node full is
//! killed by the kernel, or another one is, without a word about why. Preferring reports no failure, so this module checks: memory
//! is had at once (`MADV_POPULATE_WRITE`) and checked (`MPOL_MF_STRICT`). What came from another node, since the preferred one was full of
//! cached files, or was there before, is moved (`move_pages`, for which the kernel gives up cached files, but kills no process); what is
//! elsewhere even then is an error.

use super::error::NodeError;
use super::kinds::Kinds;
use super::policy::{MisplacedPages, prefer};
use super::positions::{positions, whole_pages};
use super::sys::{PAGE, move_to, populate};
use crate::mapped::Mapped;
use crate::probe::Topology;
use std::path::Path;

/// The unit in which memory is had at once: a large page. Ranges that are no multiple of it get their memory where they are touched.
const CHUNK: u64 = 2 << 20;

/// Memory of two kinds on this machine.
#[derive(Clone, Debug)]
pub struct NodeMemory {
    kinds: Kinds,
}

impl NodeMemory {
    /// Tries each node with a page, so that what this process may not do is known before it matters.
    ///
    /// # Errors
    /// [`NodeError::Refused`], or [`NodeError::Full`] for a node without a single page to spare.
    pub fn new(kinds: Kinds) -> Result<NodeMemory, NodeError> {
        let memory = NodeMemory { kinds };
        for tier in 0..2 {
            let nodes = memory.kinds.of_tier(tier);
            let space = Mapped::new(PAGE).map_err(|e| refused("mmap", nodes, e))?;
            let page = (space.start() as u64, PAGE as u64);
            for node in nodes {
                match memory.settle(page, &[*node], kind(tier)) {
                    // Others of its kind may have room.
                    Err(NodeError::Full { .. }) if nodes.len() > 1 => {}
                    tried => tried?,
                }
            }
            memory.settle(page, nodes, kind(tier))?;
            positions(&[page])?;
        }
        Ok(memory)
    }

    /// The nodes.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// From now on `bytes` at `address` are memory of a tier, 0 being fast. They stay what they are. Multiples of
    /// 2 MiB are in memory and in their place when this returns; of all else, whole pages are when they are touched.
    ///
    /// # Errors
    /// [`NodeError::Full`] if there is no room; the range is then in memory nevertheless. [`NodeError::Refused`].
    pub fn bind(&self, address: u64, bytes: u64, tier: u8) -> Result<(), NodeError> {
        let nodes = self.kinds.of_tier(tier);
        if address.is_multiple_of(CHUNK) && bytes.is_multiple_of(CHUNK) {
            return self.settle((address, bytes), nodes, kind(tier));
        }
        let (start, end) = whole_pages(address, bytes);
        if start == end {
            return Ok(());
        }
        prefer(start, end - start, nodes, MisplacedPages::Ignore)
            .map_err(|e| refused("mbind", nodes, e))?;
        move_there(start, end - start, nodes)
    }

    /// Whether all pages of ranges, each an address and bytes, are on a tier's nodes; untouched ones have no node.
    ///
    /// # Errors
    /// [`NodeError::Refused`].
    pub fn holds(&self, ranges: &[(u64, u64)], tier: u8) -> Result<bool, NodeError> {
        for &(address, bytes) in ranges {
            let (start, end) = whole_pages(address, bytes);
            if start < end && !is_there(start, end - start, self.kinds.of_tier(tier))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Has memory for whole pages now, on these nodes.
    fn settle(
        &self,
        range: (u64, u64),
        nodes: &[u32],
        kind: &'static str,
    ) -> Result<(), NodeError> {
        let (start, len) = (range.0 as usize, range.1 as usize);
        prefer(start, len, nodes, MisplacedPages::Ignore)
            .map_err(|e| refused("mbind", nodes, e))?;
        let have = || match populate(start, len) {
            Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => {
                Err(full(nodes, kind, range.1, range.1))
            }
            had => had.map_err(|e| refused("madvise(MADV_POPULATE_WRITE)", nodes, e)),
        };
        // A large page that finds no room is taken apart when it is to move, and parts that hold nothing are given up: they are
        // had again, small, and now the kernel gives up cached files for them.
        for _ in 0..2 {
            have()?;
            if is_there(start, len, nodes)? {
                return Ok(());
            }
            move_there(start, len, nodes)?;
        }
        have()?;
        match positions(&[range])?.outside(nodes) {
            0 => Ok(()),
            elsewhere => Err(full(nodes, kind, elsewhere, range.1)),
        }
    }
}

/// Whether all pages of a range that are in memory are on these nodes.
fn is_there(start: usize, bytes: usize, nodes: &[u32]) -> Result<bool, NodeError> {
    match prefer(start, bytes, nodes, MisplacedPages::Refuse) {
        Ok(()) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::EIO) => Ok(false),
        Err(e) => Err(refused("mbind", nodes, e)),
    }
}

/// Moves the pages of a range to these nodes, the first that have room. What cannot be moved stays.
fn move_there(start: usize, bytes: usize, nodes: &[u32]) -> Result<(), NodeError> {
    let mut status = [0; CHUNK as usize / PAGE];
    for from in (start..start + bytes).step_by(CHUNK as usize) {
        let end = (start + bytes).min(from + CHUNK as usize);
        let pages: Vec<usize> = (from..end).step_by(PAGE).collect();
        let piece = (from as u64, (end - from) as u64);
        if is_there(from, end - from, nodes)? {
            continue;
        }
        for &node in nodes {
            // The kernel stops at the first page that it finds no room for; what it did until then may have made some.
            let mut elsewhere = positions(&[piece])?.outside(nodes);
            while elsewhere > 0 {
                match move_to(&pages, node, &mut status) {
                    // Full: seen below.
                    Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => {}
                    moved => moved.map_err(|e| refused("move_pages", &[node], e))?,
                }
                let left = positions(&[piece])?.outside(nodes);
                if left >= elsewhere {
                    break;
                }
                elsewhere = left;
            }
        }
    }
    Ok(())
}

fn kind(tier: u8) -> &'static str {
    match tier {
        0 => "fast",
        _ => "slow",
    }
}

fn refused(call: &'static str, nodes: &[u32], error: std::io::Error) -> NodeError {
    let nodes = Kinds::list(nodes);
    NodeError::Refused { call, nodes, error }
}

fn full(nodes: &[u32], kind: &'static str, elsewhere: u64, asked: u64) -> NodeError {
    let (topology, _) = Topology::read(Path::new("/"));
    let ours = topology.nodes.iter().filter(|n| nodes.contains(&n.id));
    NodeError::Full {
        kind,
        nodes: Kinds::list(nodes),
        elsewhere: elsewhere >> 10,
        asked: asked >> 10,
        free: ours.map(|n| n.free_bytes).sum::<u64>() >> 20,
    }
}
