//! Each page in the memory that its address wants, for programs whose data the caller has laid out by memory. The
//! policy has no name to be made by: its maker passes the wanted memory of addresses.

use varve_access::Fault;

use crate::frames::Frames;
use crate::policy::Policy;

/// Place of fast memory's nodes.
const FAST: usize = 1;

/// See the module.
pub struct ByTier {
    /// Does a virtual page want fast memory?
    wants_fast: Box<dyn Fn(u64) -> bool + Send>,
    /// Nodes of slow and of fast memory, those to be used first in front.
    nodes: [Vec<usize>; 2],
    or_other: bool,
    in_turn: bool,
}

impl ByTier {
    /// With the nodes of slow and of fast memory in the order in which they are filled. `wants_fast` returns whether a
    /// virtual page number is to be in fast memory.
    pub fn new(
        nodes: [Vec<usize>; 2],
        wants_fast: impl Fn(u64) -> bool + Send + 'static,
    ) -> ByTier {
        ByTier {
            wants_fast: Box::new(wants_fast),
            nodes,
            or_other: false,
            in_turn: false,
        }
    }

    /// Whether a page goes to the other memory where its own is full. Else there is no frame for it.
    pub fn or_other(self, or_other: bool) -> ByTier {
        ByTier { or_other, ..self }
    }

    /// Whether pages take turns on the nodes of fast memory, by their numbers, as automatic balancing leaves them. Else, and in slow
    /// memory, the first node is filled before the next.
    pub fn in_turn(self, in_turn: bool) -> ByTier {
        ByTier { in_turn, ..self }
    }
}

impl Policy for ByTier {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let wanted = usize::from((self.wants_fast)(fault.vpn));
        let memories = [Some(wanted), self.or_other.then_some(1 - wanted)];
        memories.into_iter().flatten().find_map(|memory| {
            let nodes = &self.nodes[memory];
            let first = match self.in_turn && memory == FAST {
                true => fault.vpn as usize % nodes.len().max(1),
                false => 0,
            };
            let (last, rest) = nodes.split_at(first);
            let mut order = rest.iter().chain(last);
            order.find_map(|&node| frames.take_from(node))
        })
    }
}
