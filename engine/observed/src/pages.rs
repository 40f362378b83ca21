//! Where pages of a managed program go: to the memory that their range is bound to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use varve_access::{Fault, Kind, Op, OutOfFrames, Pager};
use varve_machine::model::ADDRESS_BITS;
use varve_pages::{Frames, Topology};
use varve_run::Numa;

/// Kinds of memory: DRAM, and all else.
pub const TIERS: usize = 2;
/// The first of them.
const FAST: usize = 0;

/// A page on the model, bytes, as [`Kind::Unmap`] counts them.
const UNIT: u64 = 4096;

/// The tier of each page that was bound, by its number; those of program `i` are tagged by `i` as the model does.
pub struct Tiers {
    of: Mutex<HashMap<u64, u8>>,
    page_bytes: u64,
}

impl Tiers {
    pub fn new(page_bytes: u64) -> Tiers {
        Tiers {
            of: Mutex::default(),
            page_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u8>> {
        self.of.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The tier of a page; unbound pages are in the first.
    pub fn of(&self, vpn: u64) -> u8 {
        self.lock().get(&vpn).copied().unwrap_or(0)
    }

    /// Pages that were in another memory are freed: their contents are not needed any more.
    pub fn bind(&self, space: usize, address: u64, bytes: u64, tier: u8, out: &mut Vec<Op>) {
        let tag = self.tag(space);
        let mut tiers = self.lock();
        for page in address / self.page_bytes..(address + bytes).div_ceil(self.page_bytes) {
            let before = tiers.insert(page | tag, tier);
            if before.is_some_and(|before| before != tier) {
                out.push(self.unmap(page));
            }
        }
    }

    /// Pages that lie in the range with all their bytes are freed.
    pub fn release(&self, space: usize, address: u64, bytes: u64, out: &mut Vec<Op>) {
        let tag = self.tag(space);
        let mut tiers = self.lock();
        for page in address.div_ceil(self.page_bytes)..(address + bytes) / self.page_bytes {
            if tiers.remove(&(page | tag)).is_some() {
                out.push(self.unmap(page));
            }
        }
    }

    fn tag(&self, space: usize) -> u64 {
        (space as u64) << (ADDRESS_BITS - self.page_bytes.ilog2())
    }

    fn unmap(&self, page: u64) -> Op {
        let size = (self.page_bytes / UNIT) as u16;
        Op::new(Kind::Unmap, page * self.page_bytes, size, 0)
    }
}

/// Places pages in the memory that their range is bound to; unbound pages are in fast memory.
///
/// Pages of slow memory are zero when an instance gets them. Freed pages wait in a queue; a separate thread zeroes them, and then they are available
/// to all instances (paper A, section 6.2, "Cleanup and Hold-off"). All are zero in the beginning. Pages of fast memory come from the system, and the
/// time to zero them is part of a page fault.
pub struct TierPager {
    /// Those of slow memory that are free are zero.
    frames: Frames,
    /// Frames that wait to be zeroed, of each node.
    dirty: Vec<VecDeque<u32>>,
    /// The frame that is being zeroed, unless a fault took it before.
    zeroing: Option<u32>,
    /// The last allocated frame, if it was not zeroed.
    late: Option<u32>,
    /// Nodes of each tier and socket.
    nodes: [Vec<usize>; TIERS],
    tiers: Arc<Tiers>,
    numa: Numa,
    /// Frames of a node that may be taken: the others are other instances'.
    most: Vec<u32>,
    /// The most frames that were in use at a time.
    peak: u64,
}

impl TierPager {
    /// For one of `instances` that share the machine without being run.
    pub fn new(topology: &Topology, tiers: Arc<Tiers>, numa: Numa, instances: u32) -> TierPager {
        let share = |n: &varve_pages::NodeFrames| n.frames / instances.max(1);
        TierPager {
            frames: Frames::in_order(topology),
            dirty: vec![VecDeque::new(); topology.nodes.len()],
            zeroing: None,
            late: None,
            nodes: [true, false].map(|fast| topology.nearest_of(0, fast)),
            tiers,
            numa,
            most: topology.nodes.iter().map(share).collect(),
            peak: 0,
        }
    }

    /// Is the frame in DRAM?
    pub fn is_fast(&self, frame: u32) -> bool {
        self.frames.is_fast(frame)
    }

    /// The most frames that were in use at a time.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    fn take(&mut self, node: usize) -> Option<u32> {
        let used = self.frames.node(node).frames - self.frames.free(node);
        let zero = (used < self.most[node])
            .then(|| self.frames.take_from(node))
            .flatten();
        self.late = match zero {
            Some(_) => None,
            None => self.dirty[node].pop_front().or_else(|| {
                self.zeroing
                    .take_if(|frame| self.frames.node_of(*frame) == Some(node))
            }),
        };
        zero.or(self.late)
    }
}

impl Pager for TierPager {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let tier = usize::from(self.tiers.of(fault.vpn)).min(TIERS - 1);
        let nodes = self.nodes[tier].len();
        // Half the pages of fast memory on each socket; else the first socket, and others only when it is full.
        let first = match self.numa {
            Numa::Auto if tier == FAST => fault.vpn as usize % nodes.max(1),
            Numa::Auto | Numa::Local | Numa::Remote => 0,
        };
        let frame = (0..nodes).find_map(|i| self.take(self.nodes[tier][(first + i) % nodes]));
        self.peak = self.peak.max(self.frames.used());
        frame.ok_or(OutOfFrames {
            pages: self.frames.used(),
            page_bytes: self.frames.page_bytes(),
        })
    }

    fn unmap(&mut self, _vpn: u64, frame: u32) {
        match self.frames.node_of(frame) {
            Some(node) if !self.frames.is_fast(frame) => self.dirty[node].push_back(frame),
            _ => {
                self.frames.give(frame);
            }
        }
    }

    fn to_zero(&mut self) -> Option<u32> {
        self.zeroing = self.dirty.iter_mut().find_map(VecDeque::pop_front);
        self.zeroing
    }

    fn zeroed(&mut self, frame: u32) {
        if self.zeroing == Some(frame) {
            self.zeroing = None;
            self.frames.give(frame);
        }
    }

    fn is_dirty(&self, frame: u32) -> bool {
        self.late == Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use varve_machine::Machine;

    const PAGE: u64 = 2 << 20;

    fn fault(vpn: u64) -> Fault {
        Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        }
    }

    /// Two instances' pager on a machine with so little memory that pages come round.
    fn pager() -> (TierPager, Arc<Tiers>, u64) {
        let mut machine = Machine::load("optane-6242").unwrap();
        machine.sockets = 1;
        machine.pm.as_mut().unwrap().dimm_bytes.0 = 4 * PAGE;
        let pages = 4 * u64::from(machine.pm.as_ref().unwrap().dimms);
        let tiers = Arc::new(Tiers::new(PAGE));
        let topology = Topology::of(&machine, PAGE).unwrap();
        let pager = TierPager::new(&topology, Arc::clone(&tiers), Numa::Local, 1);
        (pager, tiers, pages)
    }

    #[test]
    fn slow_pages_are_zeroed_beside_the_program_before_the_next_one_gets_them() {
        let (mut pager, tiers, pages) = pager();
        tiers.bind(0, 0, 2 * pages * PAGE, 1, &mut Vec::new());
        let first: Vec<u32> = (0..pages)
            .map(|vpn| pager.fault(&fault(vpn)).unwrap())
            .collect();
        assert!(first.iter().all(|&frame| !pager.is_dirty(frame)));
        assert_eq!(pager.to_zero(), None, "no page was freed");
        assert!(pager.fault(&fault(pages)).is_err(), "all pages are in use");
        pager.unmap(0, first[0]);
        pager.unmap(1, first[1]);
        // One is zeroed in time; the other is wanted before.
        assert_eq!(pager.to_zero(), Some(first[0]));
        let early = pager.fault(&fault(pages)).unwrap();
        assert_eq!(early, first[1]);
        assert!(pager.is_dirty(early));
        pager.zeroed(first[0]);
        let zero = pager.fault(&fault(pages + 1)).unwrap();
        assert_eq!(zero, first[0]);
        assert!(!pager.is_dirty(zero));
        assert_eq!(pager.to_zero(), None);
        // A fault that cannot wait gets the frame that is being zeroed.
        pager.unmap(5, first[5]);
        assert_eq!(pager.to_zero(), Some(first[5]));
        assert_eq!(pager.fault(&fault(5)).unwrap(), first[5]);
        assert!(pager.is_dirty(first[5]));
        pager.zeroed(first[5]);
        assert!(pager.fault(&fault(0)).is_err());
    }

    #[test]
    fn fast_pages_are_free_at_once() {
        let (mut pager, _, _) = pager();
        let frame = pager.fault(&fault(7)).unwrap();
        assert!(pager.is_fast(frame));
        pager.unmap(7, frame);
        assert_eq!(pager.to_zero(), None);
        assert_eq!(pager.fault(&fault(8)).unwrap(), frame);
        assert!(!pager.is_dirty(frame));
    }

    proptest! {
        /// No frame is in two places: in use, waiting, being zeroed, or free.
        #[test]
        fn a_frame_is_in_one_place(steps in prop::collection::vec((0u8..4, 0u64..64), 1..400)) {
            let (mut pager, tiers, pages) = pager();
            tiers.bind(0, 0, 64 * PAGE, 1, &mut Vec::new());
            let (mut used, mut dirty) = (HashMap::new(), HashSet::new());
            let mut zeroing: Option<u32> = None;
            for (what, vpn) in steps {
                match what {
                    0 | 1 if !used.contains_key(&vpn) => {
                        let waits = dirty.len() + zeroing.is_some() as usize;
                        let zero = pages as usize - used.len() - waits;
                        match pager.fault(&fault(vpn)) {
                            Ok(frame) => {
                                prop_assert_eq!(pager.is_dirty(frame), zero == 0);
                                let waited = dirty.remove(&frame) || zeroing.take_if(|z| *z == frame).is_some();
                                prop_assert_eq!(waited, zero == 0);
                                prop_assert!(used.values().all(|&f| f != frame));
                                used.insert(vpn, frame);
                            }
                            Err(_) => prop_assert!(zero == 0 && waits == 0),
                        }
                    }
                    2 => {
                        if let Some(frame) = used.remove(&vpn) {
                            pager.unmap(vpn, frame);
                            dirty.insert(frame);
                        }
                    }
                    3 => match zeroing.take() {
                        Some(frame) => pager.zeroed(frame),
                        None => {
                            let next = pager.to_zero();
                            prop_assert_eq!(next.is_some(), !dirty.is_empty());
                            if let Some(frame) = next {
                                prop_assert!(dirty.remove(&frame));
                                zeroing = Some(frame);
                            }
                        }
                    },
                    _ => {}
                }
            }
        }
    }
}
