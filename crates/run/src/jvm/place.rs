//! Pages of a Java virtual machine: each in the memory that the plan has for what it is for.

use super::plans::{By, is_fast};
use super::ranges::Ranges;
use std::sync::Arc;
use varve_machine::Fault;
use varve_pages::{Frames, Policy, Topology};

/// Places each page by what its address is for; where that memory is full, in the other one.
pub struct ByRange {
    by: By,
    ranges: Arc<Ranges>,
    /// Nodes of slow and of fast memory.
    nodes: [Vec<usize>; 2],
    /// Pages take turns on the nodes of a kind; else the first has them all until it is full.
    spread: bool,
    page_bytes: u64,
}

impl ByRange {
    /// For the frames of a machine with both memories.
    pub fn new(by: By, ranges: Arc<Ranges>, topology: &Topology, spread: bool) -> ByRange {
        let nodes = |fast| {
            let nodes = topology.nodes.iter().enumerate();
            let those = nodes.filter(|(_, node)| node.fast == fast);
            those.map(|(number, _)| number).collect()
        };
        ByRange {
            by,
            ranges,
            nodes: [nodes(false), nodes(true)],
            spread,
            page_bytes: topology.page_bytes,
        }
    }
}

impl Policy for ByRange {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let what = self.ranges.at(fault.vpn * self.page_bytes);
        let wanted = usize::from(is_fast(self.by, what));
        let turn = match self.spread {
            true => fault.vpn as usize,
            false => 0,
        };
        let turned = |fast: usize| {
            let nodes = &self.nodes[fast];
            let (then, first) = nodes.split_at(turn % nodes.len().max(1));
            first.iter().chain(then)
        };
        let mut nodes = turned(wanted).chain(turned(1 - wanted));
        nodes.find_map(|&node| frames.take_from(node))
    }
}
