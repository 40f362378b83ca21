//! `first-touch`: the default of Linux on a fresh system.
//!
//! The lowest free frame of the nearest node that has one. In memory mode that is contiguous memory, as an
//! unfragmented Linux gives it: the first pages up to the size of the cache do not conflict, the next pile up on
//! them in order.

use varve_access::Fault;

use super::entry::{Advised, Entry, Live, Needs};
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Linux's default; Johnny Cache, section 2.1",
    advised: Advised::NotUnderCache,
    linux: Some(Needs::Flat),
    live: Live::Nodes,
    ..Entry::new(
        "first-touch",
        "lowest free frame of the nearest memory: Linux on a fresh, unfragmented system",
        |_, topology| {
            let policy = FirstTouch::new(topology);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};

/// Nodes by distance, for each socket.
pub struct FirstTouch {
    nearest: Vec<Vec<usize>>,
}

impl FirstTouch {
    /// For this machine.
    pub fn new(topology: &Topology) -> FirstTouch {
        FirstTouch {
            nearest: super::nearest(topology),
        }
    }
}

impl Policy for FirstTouch {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = super::seen_from(&self.nearest, fault.socket);
        order.iter().find_map(|&node| frames.take_from(node))
    }
}
