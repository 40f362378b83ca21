//! `fast` and `slow`: all pages in one kind of memory, the two ends that everything else lies between.

use varve_access::Fault;

use super::{nearest_of, seen_from};
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;

/// The nodes of one kind by distance, for each socket.
pub struct Only {
    nearest: Vec<Vec<usize>>,
}

impl Only {
    /// Fast memory only, or slow memory only.
    pub fn new(topology: &Topology, fast: bool) -> Only {
        Only {
            nearest: nearest_of(topology, fast),
        }
    }
}

impl Policy for Only {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        seen_from(&self.nearest, fault.socket)
            .iter()
            .find_map(|&node| frames.take_from(node))
    }
}
