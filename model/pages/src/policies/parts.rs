//! Pages of which each part is in a memory of its own, for programs whose data the caller has divided. Both parts have frames of one
//! colour, so that they take the places in caches that the whole page would take. The policy has no name to be made by.

use std::collections::HashMap;

use varve_access::Fault;

use crate::frames::Frames;
use crate::policy::Policy;

/// See the module.
pub struct PageParts {
    /// The bit of a page's number that is set where a part is in slow memory.
    slow_bit: u64,
    /// The nodes of fast and of slow memory.
    nodes: [usize; 2],
    /// By node, the first of its frames that is used: those of equal number from there on are of one colour.
    first: [u32; 2],
    /// The number of the frames of each page.
    numbers: HashMap<u64, u32>,
    /// The page of each number.
    pages: Vec<u64>,
    /// Below it, no number is free.
    lowest: u32,
}

impl PageParts {
    /// With the nodes of fast and of slow memory. A page's number has `slow_bit` set where its slow part is meant. Frames whose numbers
    /// differ by a multiple of `colours` are of one colour.
    pub fn new(frames: &Frames, nodes: [usize; 2], slow_bit: u64, colours: u32) -> PageParts {
        let [fast, slow] = nodes.map(|node| frames.first(node) % colours.max(1));
        // Pages that are all in slow memory are where they would be by any other policy.
        let skipped = (slow + colours.max(1) - fast) % colours.max(1);
        PageParts {
            slow_bit,
            nodes,
            first: [frames.first(nodes[0]) + skipped, frames.first(nodes[1])],
            numbers: HashMap::new(),
            pages: Vec::new(),
            lowest: 0,
        }
    }

    fn frame(&self, part: usize, number: u32) -> u32 {
        self.first[part] + number
    }

    /// The lowest number that is free in both nodes.
    fn next(&mut self, frames: &Frames) -> u32 {
        while [0, 1]
            .iter()
            .any(|&part| frames.is_used(self.frame(part, self.lowest)))
        {
            self.lowest += 1;
        }
        self.lowest
    }
}

impl Policy for PageParts {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let part = usize::from(fault.vpn & self.slow_bit != 0);
        let page = fault.vpn & !self.slow_bit;
        let number = match self.numbers.get(&page) {
            Some(number) => *number,
            None => self.next(frames),
        };
        let frame = self.frame(part, number);
        let there = frames.node_of(frame) == Some(self.nodes[part]);
        if !there || !frames.take(frame) {
            return frames.take_from(self.nodes[part]);
        }
        let at = number as usize;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, 0);
        }
        self.pages[at] = page;
        self.numbers.insert(page, number);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        let part = usize::from(frames.node_of(frame) != Some(self.nodes[0]));
        let Some(number) = frame.checked_sub(self.first[part]) else {
            return;
        };
        self.lowest = self.lowest.min(number);
        if !frames.is_used(self.frame(1 - part, number))
            && let Some(page) = self.pages.get(number as usize)
            && self.numbers.get(page) == Some(&number)
        {
            self.numbers.remove(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Topology;
    use proptest::prelude::*;
    use varve_machine::Machine;

    const SLOW: u64 = 1 << 30;

    fn fault(vpn: u64) -> Fault {
        Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        }
    }

    proptest! {
        /// Each part is in its memory, both parts of a page are of one colour, and pages that are in slow memory alone have its frames
        /// in order.
        #[test]
        fn parts_have_one_colour(all in prop::collection::vec((0u64..60, any::<bool>(), any::<bool>()), 1..200)) {
            let mut machine = Machine::load("optane-6230").unwrap();
            machine.sockets = 1;
            let topology = Topology::of(&machine, 4096).unwrap();
            let mut frames = Frames::in_order(&topology);
            let nodes = [true, false].map(|fast| topology.nodes_of(fast)[0]);
            let colours = 704;
            let mut policy = PageParts::new(&frames, nodes, SLOW, colours);
            let mut places: HashMap<u64, u32> = HashMap::new();
            for (page, fast, leaves) in all {
                let vpn = page + if fast { 0 } else { SLOW };
                if leaves && let Some(frame) = places.remove(&vpn) {
                    policy.freed(&mut frames, frame);
                    prop_assert!(frames.give(frame));
                } else if !leaves && !places.contains_key(&vpn) {
                    let frame = policy.place(&mut frames, &fault(vpn)).unwrap();
                    prop_assert_eq!(frames.is_fast(frame), fast);
                    if let Some(other) = places.get(&(vpn ^ SLOW)) {
                        prop_assert_eq!(frame % colours, other % colours);
                    }
                    places.insert(vpn, frame);
                }
            }
        }
    }

    #[test]
    fn pages_in_slow_memory_alone_have_its_frames_in_order() {
        let machine = Machine::load("optane-6230").unwrap();
        let topology = Topology::of(&machine, 4096).unwrap();
        let mut frames = Frames::in_order(&topology);
        let nodes = [true, false].map(|fast| topology.nodes_of(fast)[0]);
        let mut policy = PageParts::new(&frames, nodes, SLOW, 704);
        let first = frames.first(nodes[1]);
        for page in 0..100 {
            let frame = policy.place(&mut frames, &fault(page | SLOW));
            assert_eq!(frame, Some(first + page as u32));
        }
    }
}
