//! `static`: JC-static, paper D section 4.2.
//!
//! A new page goes to a bin with the fewest pages. The heat of a bin is the number of pages in it.

use varve_machine::Fault;

use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;

/// Nodes by distance, for each socket; the counting is the heat of the bins.
pub struct Static {
    nearest: Vec<Vec<usize>>,
}

impl Static {
    /// For this machine.
    pub fn new(topology: &Topology) -> Static {
        Static {
            nearest: super::nearest(topology),
        }
    }
}

impl Policy for Static {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = super::seen_from(&self.nearest, fault.socket);
        let frame = order.iter().find_map(|&node| frames.take_from(node))?;
        frames.warm(frame, 1);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        frames.warm(frame, -1);
    }
}
