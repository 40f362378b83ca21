//! The state of a placement, for people: the places and heat of pages, and the moves. Its numbers add up: frames are
//! free, or have a page, or are reserved for a move; moves asked for are done, cancelled or in flight.

use std::fmt;

use serde::Serialize;
use varve_access::Pager;
use varve_spec::Bytes;

use crate::conflicts::Conflicts;
use crate::placement::{Counters, Placement};

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeDump {
    /// `fast`, `slow`, or `cached` for slow memory behind a DRAM cache.
    pub kind: &'static str,
    /// Socket that it belongs to.
    pub socket: u32,
    /// Frames.
    pub frames: u32,
    /// Free frames.
    pub free: u32,
    /// Frames with a page.
    pub pages: u32,
    /// Frames that a page in flight goes to.
    pub reserved: u32,
    /// Pages that are hot, where the policy knows.
    pub hot: Option<u32>,
    /// Number of bins at heat 0, 1, 2, ... as the policy defines heat; empty if it does not use bins.
    pub bins_by_heat: Vec<u32>,
}

/// A placement as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dump {
    /// The specification of the policy.
    pub policy: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Nodes in order.
    pub nodes: Vec<NodeDump>,
    /// Conflicts in the DRAM cache, with hot pages as the policy sees them; none without a cache.
    pub conflicts: Option<Conflicts>,
    /// How often all heat was halved, where the policy keeps heat.
    pub coolings: Option<u64>,
    /// Counters of events so far.
    pub counters: Counters,
    /// Moves that are neither done nor cancelled.
    pub in_flight: u64,
    /// Limit of the memory that the book-keeping may use, bytes.
    pub metadata_bytes: u64,
}

impl Placement {
    /// The state now. Scans every frame that was used, and its neighbours.
    pub fn dump(&self) -> Dump {
        let (topology, frames, heat) = (self.topology(), self.frames(), self.policy().heat());
        let is_hot = |frame| heat.is_some_and(|heat| heat.is_hot(frame));
        let mut nodes: Vec<NodeDump> = Vec::new();
        for (at, node) in topology.nodes.iter().enumerate() {
            let kind = match (node.fast, node.bins) {
                (true, _) => "fast",
                (_, Some(_)) => "cached",
                _ => "slow",
            };
            nodes.push(NodeDump {
                kind,
                socket: node.socket,
                frames: node.frames,
                free: frames.free(at),
                pages: 0,
                reserved: 0,
                hot: heat.map(|_| 0),
                bins_by_heat: frames.heat_histogram(at),
            });
        }
        for (frame, _) in self.mapping() {
            if let Some(node) = frames.node_of(frame) {
                nodes[node].pages += 1;
                nodes[node]
                    .hot
                    .iter_mut()
                    .for_each(|hot| *hot += u32::from(is_hot(frame)));
            }
        }
        for frame in self.reserved() {
            if let Some(node) = frames.node_of(frame) {
                nodes[node].reserved += 1;
            }
        }
        let mapping = self.mapping().map(|(frame, _)| (frame, is_hot(frame)));
        Dump {
            policy: self.spec().into(),
            page_bytes: self.page_bytes(),
            nodes,
            conflicts: topology
                .has_cache()
                .then(|| Conflicts::count(topology, mapping)),
            coolings: heat.map(|heat| heat.coolings()),
            counters: self.counters(),
            in_flight: self.in_flight() as u64,
            metadata_bytes: self.bytes(),
        }
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "policy     {}, pages of {}",
            self.policy,
            Bytes(self.page_bytes)
        )?;
        for (at, node) in self.nodes.iter().enumerate() {
            let NodeDump {
                kind,
                socket,
                frames,
                free,
                pages,
                reserved,
                ..
            } = node;
            write!(
                f,
                "node {at:<5} {kind}, socket {socket}: {frames} frames = "
            )?;
            write!(f, "{free} free + {pages} with a page + {reserved} reserved")?;
            match node.hot {
                Some(hot) => writeln!(f, "; {hot} hot pages")?,
                None => writeln!(f)?,
            }
            if !node.bins_by_heat.is_empty() {
                let heats = (0..).zip(&node.bins_by_heat).filter(|(_, bins)| **bins > 0);
                let text: Vec<String> = heats
                    .map(|(heat, bins)| format!("{heat}: {bins}"))
                    .collect();
                writeln!(f, "           bins by heat  {}", text.join("  "))?;
            }
        }
        if let Some(c) = &self.conflicts {
            writeln!(f, "conflicts  {} of {} bins used", c.bins_used, c.bins)?;
            writeln!(
                f,
                "           {} of {} pages share a bin beyond its ways",
                c.pages_in_conflict, c.pages
            )?;
            if self.coolings.is_some() {
                writeln!(
                    f,
                    "           {} of {} hot pages with hot ones",
                    c.hot_in_conflict, c.hot
                )?;
            }
        }
        let n = &self.counters;
        writeln!(
            f,
            "faults     {} placed, {} refused; {} unmapped",
            n.faults, n.refused, n.unmaps
        )?;
        if let Some(coolings) = self.coolings {
            writeln!(
                f,
                "samples    {} used, {} stale; {coolings} coolings",
                n.samples, n.stale_samples
            )?;
            write!(
                f,
                "moves      {} asked for = {} done",
                n.moves_asked, n.moves_done
            )?;
            writeln!(
                f,
                " + {} cancelled + {} in flight",
                n.moves_cancelled, self.in_flight
            )?;
        }
        write!(
            f,
            "metadata   {:.1} MB at most",
            self.metadata_bytes as f64 / 1e6
        )
    }
}
