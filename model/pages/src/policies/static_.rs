//! `static`: JC-static, Johnny Cache section 4.2.
//!
//! A new page goes to a bin with the fewest pages. The heat of a bin is the number of pages in it. Among equal bins
//! chance decides: the kernel's lists hold them in the order that the memory's history left, and a fixed order would
//! pair pages that are touched exactly one cache apart, always the same ones (two arrays of one cache's size would
//! conflict element by element).

use varve_access::Fault;

use super::entry::{Advised, Entry, Live, Needs};
use crate::frames::Frames;
use crate::policy::Policy;
use crate::ties::Ties;
use crate::topology::Topology;

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Johnny Cache, section 4.2",
    needs: Needs::MemoryMode,
    advised: Advised::Anywhere,
    live: Live::Cache,
    params: &[super::SEED],
    ..Entry::new(
        "static",
        "a bin with the fewest pages: JC-static",
        |values, topology| {
            let frames = Frames::in_bins(topology, super::pages_per_bin(topology) + 1);
            let policy = Static::new(topology, values.count("seed"));
            Ok((frames, Box::new(policy)))
        },
    )
};

/// Nodes by distance, for each socket; the counting is the heat of the bins.
pub struct Static {
    nearest: Vec<Vec<usize>>,
    ties: Ties,
}

impl Static {
    /// For this machine; `seed` decides among equal bins.
    pub fn new(topology: &Topology, seed: u64) -> Static {
        Static {
            nearest: super::nearest(topology),
            ties: Ties::new(seed),
        }
    }
}

impl Policy for Static {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = super::seen_from(&self.nearest, fault.socket);
        let frame = order
            .iter()
            .find_map(|&node| self.ties.take(frames, node))?;
        frames.warm(frame, 1);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        frames.warm(frame, -1);
    }
}
