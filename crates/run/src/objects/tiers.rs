//! Pages of layouts: each in the memory of its tier, on the socket that the program runs on.

use super::layout::is_fast;
use varve_machine::Fault;
use varve_pages::{Frames, Policy, Topology};

/// Which memory a page is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// All of them are in fast memory.
    Fast,
    /// All of them are in slow memory.
    Slow,
    /// Its address says it ([`is_fast`]).
    ByAddress,
}

/// See the module.
pub struct Tiers {
    place: Where,
    fast: Vec<usize>,
    slow: Vec<usize>,
    page_bytes: u64,
}

impl Tiers {
    /// For the frames of a machine with both memories.
    pub fn new(place: Where, topology: &Topology) -> Tiers {
        let nodes = |fast| {
            let nodes = topology.nodes.iter().enumerate();
            let those = nodes.filter(|(_, node)| node.fast == fast);
            those.map(|(number, _)| number).collect()
        };
        Tiers {
            place,
            fast: nodes(true),
            slow: nodes(false),
            page_bytes: topology.page_bytes,
        }
    }
}

impl Policy for Tiers {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let fast = match self.place {
            Where::Fast => true,
            Where::Slow => false,
            Where::ByAddress => is_fast(fault.vpn * self.page_bytes),
        };
        let nodes = if fast { &self.fast } else { &self.slow };
        nodes.iter().find_map(|&node| frames.take_from(node))
    }
}
