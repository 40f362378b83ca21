//! `oracle`: placement with knowledge of the hot pages. No system can do this; it is the line that others are measured
//! against (Johnny Cache's "all hot data manually allocated in DRAM").
//!
//! On a flat machine hot pages go to the DRAM of the thread's socket and cold ones to its slow memory, and to its DRAM
//! only as far as no hot page will need it; other sockets come last. Behind a DRAM cache each page goes to the bin with the fewest hot pages, among those the fewest pages.

use std::ops::Range;

use varve_access::Fault;

use super::entry::{Entry, Live};
use super::seen_from;
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;
use varve_spec::{Param, Want};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Johnny Cache, section 5.2: all hot data manually allocated in DRAM",
    params: &[Param::new(
        "hot",
        Want::Ranges,
        "",
        "hot ranges of virtual addresses, BASE+BYTES joined by /",
    )],
    live: Live::Nodes,
    ..Entry::new(
        "oracle",
        "knows the hot pages, as no system does: hot pages in DRAM, or in bins of their own",
        |values, topology| {
            let page = topology.page_bytes;
            let ranges = values.ranges("hot").iter().filter(|(_, bytes)| *bytes > 0);
            let hot = ranges.map(|(base, bytes)| base / page..(base + bytes).div_ceil(page));
            let policy = Oracle::new(topology, hot.collect());
            Ok((Oracle::frames(topology), Box::new(policy)))
        },
    )
};

/// The hot pages, and where they go.
pub struct Oracle {
    /// Virtual pages, in ascending order, apart.
    hot: Vec<Range<u64>>,
    /// Hot pages that were not touched yet.
    to_come: u64,
    nearest: Vec<Vec<usize>>,
    /// Weight of a hot page in a bin: more than that of all pages that fit in it.
    weight: i32,
    /// Frames with a hot page.
    holds_hot: std::collections::HashSet<u32>,
}

impl Oracle {
    /// Frames as an oracle needs them: bins with room for the weight of hot pages.
    pub fn frames(topology: &Topology) -> Frames {
        Frames::in_bins(topology, crate::bins::MAX_LEVELS)
    }

    /// With these ranges of hot virtual pages, in any order.
    pub fn new(topology: &Topology, mut hot: Vec<Range<u64>>) -> Oracle {
        hot.retain(|range| !range.is_empty());
        hot.sort_by_key(|range| range.start);
        let mut apart: Vec<Range<u64>> = Vec::new();
        for range in hot {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        Oracle {
            to_come: apart.iter().map(|range| range.end - range.start).sum(),
            hot: apart,
            nearest: super::nearest(topology),
            weight: super::pages_per_bin(topology) as i32 + 1,
            holds_hot: Default::default(),
        }
    }

    fn is_hot(&self, vpn: u64) -> bool {
        let after = self.hot.partition_point(|range| range.start <= vpn);
        after > 0 && self.hot[after - 1].contains(&vpn)
    }
}

impl Policy for Oracle {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let hot = self.is_hot(fault.vpn);
        let order = seen_from(&self.nearest, fault.socket);
        // Where a cold page would take room from a hot one.
        let wanted = |node: usize| {
            !hot && frames.node(node).fast && u64::from(frames.free(node)) <= self.to_come
        };
        let first = order
            .iter()
            .copied()
            .find(|&node| frames.free(node) > 0 && !wanted(node));
        let node = first.or_else(|| order.iter().copied().find(|&node| frames.free(node) > 0))?;
        let frame = frames.take_from(node)?;
        if hot {
            self.to_come = self.to_come.saturating_sub(1);
            self.holds_hot.insert(frame);
        }
        frames.warm(frame, if hot { self.weight } else { 1 });
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        let hot = self.holds_hot.remove(&frame);
        self.to_come += u64::from(hot);
        frames.warm(frame, if hot { -self.weight } else { -1 });
    }
}
