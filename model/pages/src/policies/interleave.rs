//! `interleave`: pages in turn over all nodes, in fixed numbers for fast and for slow ones (Linux's interleave and
//! weighted interleave).

use varve_access::Fault;

use super::entry::{Advised, Entry, Live};
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;
use varve_spec::{Param, Want};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Linux, set_mempolicy(2): MPOL_INTERLEAVE, MPOL_WEIGHTED_INTERLEAVE",
    several_nodes: true,
    advised: Advised::NotUnderCache,
    params: &[
        Param::new(
            "fast",
            Want::Count { min: 0, max: 1000 },
            "1",
            "pages to each fast node in a turn; 1 is Linux's default",
        ),
        Param::new(
            "slow",
            Want::Count { min: 0, max: 1000 },
            "1",
            "pages to each slow node in a turn; 1 is Linux's default",
        ),
    ],
    live: Live::Nodes,
    ..Entry::new(
        "interleave",
        "pages in turn over all nodes: Linux's (weighted) interleave",
        |values, topology| {
            let (fast, slow) = (values.count("fast"), values.count("slow"));
            let of_kind = |fast| !topology.nodes_of(fast).is_empty();
            if !(fast > 0 && of_kind(true) || slow > 0 && of_kind(false)) {
                let key = if of_kind(true) { "fast" } else { "slow" };
                return Err(values
                    .refuse(key, "must be a weight above 0, or no node gets any page")
                    .into());
            }
            let policy = Interleave::new(topology, fast, slow);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};

/// Turns of the nodes.
pub struct Interleave {
    /// Pages that each node gets in a turn.
    weights: Vec<u64>,
    node: usize,
    left: u64,
}

impl Interleave {
    /// `fast` pages to each fast node, then `slow` pages to each other node, and so on.
    pub fn new(topology: &Topology, fast: u64, slow: u64) -> Interleave {
        let weight = |fast_node| if fast_node { fast } else { slow };
        let weights: Vec<u64> = topology
            .nodes
            .iter()
            .map(|node| weight(node.fast))
            .collect();
        Interleave {
            left: weights.first().copied().unwrap_or(0),
            weights,
            node: 0,
        }
    }
}

impl Policy for Interleave {
    fn place(&mut self, frames: &mut Frames, _fault: &Fault) -> Option<u32> {
        // A full node is skipped; after a whole round without a frame there is none left.
        for _ in 0..=2 * self.weights.len() {
            let turn = self.left > 0;
            if let Some(frame) = turn.then(|| frames.take_from(self.node)).flatten() {
                self.left -= 1;
                return Some(frame);
            }
            self.node = (self.node + 1) % self.weights.len();
            self.left = self.weights[self.node];
        }
        None
    }
}
