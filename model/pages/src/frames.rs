//! Page frames of all nodes: which are free, and in a cached node which bin each is in.
//!
//! One bit per frame says whether it is used. A node is laid out *in order* (one run of frames, for policies that care
//! about nodes only) or *in bins*: the bits of the frames of one bin stand side by side, so that the lowest free frame
//! of a bin is found at once, and [`Bins`] keeps the bins by heat. The caller that takes a frame owns it until it frees
//! it; the policy defines heat.

use crate::bins::Bins;
use crate::bitmap::Bitmap;
use crate::topology::{NodeFrames, Topology};

/// A page to be moved between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// Where the page is.
    pub from: u32,
    /// Where it shall go: a frame that the policy has taken for it, or one that an earlier remap of the same tick
    /// empties.
    pub to: u32,
}

/// All frames of a machine.
#[derive(Clone, Debug)]
pub struct Frames {
    page_bytes: u64,
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    what: NodeFrames,
    first: u32,
    free: u32,
    /// Runs of slots: one per bin, or one for the node.
    runs: u32,
    /// Slots of a run.
    depth: u32,
    used: Bitmap,
    bins: Option<Bins>,
}

/// How often a bin is drawn before the first of the coldest is taken: 16 draws miss a level of which a quarter is
/// left once in a hundred times.
const DRAWS: u32 = 16;

impl Frames {
    /// Frames in order: [`Frames::take_from`] gives the lowest free frame of a node.
    pub fn in_order(topology: &Topology) -> Frames {
        Frames::new(topology, None)
    }

    /// Frames in bins: [`Frames::take_from`] gives the lowest frame of the coldest bin. Bins know `levels` levels of
    /// heat; nodes without a cache are in order.
    pub fn in_bins(topology: &Topology, levels: u32) -> Frames {
        Frames::new(topology, Some(levels))
    }

    fn new(topology: &Topology, levels: Option<u32>) -> Frames {
        let mut first = 0;
        let nodes = topology.nodes.iter().map(|&what| {
            let bins = what
                .bins
                .filter(|_| levels.is_some())
                .map(|bins| bins.min(what.frames));
            let node = Node::new(what, first, bins, levels.unwrap_or(1));
            first += what.frames;
            node
        });
        Frames {
            page_bytes: topology.page_bytes,
            nodes: nodes.collect(),
        }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Description of `node`.
    pub fn node(&self, node: usize) -> &NodeFrames {
        &self.nodes[node].what
    }

    /// Frames of all nodes.
    pub fn len(&self) -> u32 {
        self.nodes.iter().map(|node| node.what.frames).sum()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First frame of `node`.
    pub fn first(&self, node: usize) -> u32 {
        self.nodes[node].first
    }

    /// Free frames of `node`.
    pub fn free(&self, node: usize) -> u32 {
        self.nodes[node].free
    }

    /// Used frames of all nodes.
    pub fn used(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| u64::from(node.what.frames - node.free))
            .sum()
    }

    /// The node of `frame`, if there is such a frame.
    #[inline]
    pub fn node_of(&self, frame: u32) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| frame.wrapping_sub(node.first) < node.what.frames)
    }

    /// Is `frame` in fast memory?
    #[inline]
    pub fn is_fast(&self, frame: u32) -> bool {
        self.node_of(frame)
            .is_some_and(|node| self.nodes[node].what.fast)
    }

    /// Socket of `frame`; 0 if there is no such frame.
    #[inline]
    pub fn socket_of(&self, frame: u32) -> u32 {
        self.node_of(frame)
            .map_or(0, |node| self.nodes[node].what.socket)
    }

    /// Is `frame` a frame that someone owns?
    #[inline]
    pub fn is_used(&self, frame: u32) -> bool {
        self.find(frame)
            .is_some_and(|(node, local)| node.used.contains(node.slot(local)))
    }

    /// Takes the lowest free frame of `node`, in its coldest bin where it has bins.
    #[inline]
    pub fn take_from(&mut self, node: usize) -> Option<u32> {
        self.nodes[node].take_any()
    }

    /// Like [`Frames::take_from`], but in any of the bins that are as cold as the coldest: `draw` gives a number below
    /// its argument. Bins that were never touched come first, in order; when few are left, the first of them.
    #[inline]
    pub fn take_coldest(&mut self, node: usize, mut draw: impl FnMut(u64) -> u64) -> Option<u32> {
        let node = &mut self.nodes[node];
        let Some(bins) = &node.bins else {
            return node.take_any();
        };
        let coldest = bins.coldest()?;
        if bins.is_untouched(coldest) {
            return node.take_any();
        }
        let heat = bins.heat(coldest);
        let bin = (0..DRAWS)
            .map(|_| draw(u64::from(bins.len())) as u32)
            .find(|bin| bins.heat(*bin) == heat && !bins.is_full(*bin))
            .unwrap_or(coldest);
        let slot = node.used.first_free(bin as usize * node.depth as usize)?;
        Some(node.take_slot(slot))
    }

    /// The lowest free frame from `frame` on in its node, if that is in order.
    #[inline]
    pub fn free_from(&self, frame: u32) -> Option<u32> {
        let (node, local) = self.find(frame)?;
        let slot = match node.bins {
            None => node.used.first_free(local as usize)?,
            Some(_) => return None,
        };
        (slot < node.what.frames as usize).then(|| node.first + slot as u32)
    }

    /// Takes `frame` if it is free. In a node with bins, its bin must have been touched before.
    #[inline]
    pub fn take(&mut self, frame: u32) -> bool {
        let Some(node) = self.node_of(frame) else {
            return false;
        };
        let node = &mut self.nodes[node];
        let local = frame - node.first;
        let slot = node.slot(local);
        let runs = node.runs;
        let is_known = |bins: &Bins| !bins.is_untouched(local % runs);
        let free = node.bins.as_ref().is_none_or(is_known) && !node.used.contains(slot);
        if free {
            node.take_slot(slot);
        }
        free
    }

    /// From now on no frame is free but those that are given: for machines whose frames another allocator, such as the
    /// kernel, hands out. No frame may have been taken before.
    pub fn withhold(&mut self) {
        for node in &mut self.nodes {
            let slots = node.runs as usize * node.depth as usize;
            (0..slots).for_each(|slot| node.used.insert(slot));
            node.free = 0;
            if let Some(bins) = &mut node.bins {
                bins.fill();
            }
        }
    }

    /// Frees `frame`; returns whether it was taken.
    #[inline]
    pub fn give(&mut self, frame: u32) -> bool {
        let Some(node) = self.node_of(frame) else {
            return false;
        };
        let node = &mut self.nodes[node];
        let local = frame - node.first;
        let slot = node.slot(local);
        let used = node.used.contains(slot);
        if used {
            node.used.remove(slot);
            node.free += 1;
            let bin = local % node.runs;
            if let Some(bins) = node.bins.as_mut().filter(|bins| bins.is_full(bin)) {
                bins.set(bin, bins.heat(bin), false);
            }
        }
        used
    }

    /// Changes the heat of the bin of a used frame; nothing happens where there are no bins.
    #[inline]
    pub fn warm(&mut self, frame: u32, by: i32) {
        let Some(node) = self.node_of(frame) else {
            return;
        };
        let node = &mut self.nodes[node];
        let bin = (frame - node.first) % node.runs;
        if let Some(bins) = &mut node.bins {
            bins.set(
                bin,
                bins.heat(bin).saturating_add_signed(by),
                bins.is_full(bin),
            );
        }
    }

    /// Heat of the bin of `frame`; 0 where there are no bins.
    #[inline]
    pub fn bin_heat(&self, frame: u32) -> u32 {
        self.find(frame).map_or(0, |(node, local)| {
            node.bins
                .as_ref()
                .map_or(0, |bins| bins.heat(local % node.runs))
        })
    }

    /// Halves the heat of every bin.
    pub fn cool(&mut self) {
        self.nodes
            .iter_mut()
            .filter_map(|node| node.bins.as_mut())
            .for_each(Bins::cool);
    }

    /// A frame of the bin that [`Frames::take_from`] would choose.
    pub fn peek(&self, node: usize) -> Option<u32> {
        let node = &self.nodes[node];
        node.next_slot().map(|slot| node.first + node.local(slot))
    }

    /// All frames in the bin of `frame`, used or not, where there are bins.
    #[inline]
    pub fn bin_mates(&self, frame: u32) -> impl Iterator<Item = u32> + use<> {
        let (start, end, step) = match self.find(frame) {
            Some((node, local)) if node.bins.is_some() => {
                let start = node.first + local % node.runs;
                (start, node.first + node.what.frames, node.runs)
            }
            _ => (0, 0, 1),
        };
        (start..end).step_by(step as usize)
    }

    /// Bins of each node by heat: number of bins at heat 0, 1, 2, ...
    pub fn heat_histogram(&self, node: usize) -> Vec<u32> {
        self.nodes[node]
            .bins
            .as_ref()
            .map(Bins::histogram)
            .unwrap_or_default()
    }

    /// Limit of the memory that the book-keeping may use, bytes.
    pub fn bytes(&self) -> u64 {
        let of = |node: &Node| node.used.bytes() + node.bins.as_ref().map_or(0, Bins::bytes);
        self.nodes.iter().map(of).sum()
    }

    #[inline]
    fn find(&self, frame: u32) -> Option<(&Node, u32)> {
        let node = &self.nodes[self.node_of(frame)?];
        Some((node, frame - node.first))
    }
}

impl Node {
    fn new(what: NodeFrames, first: u32, bins: Option<u32>, levels: u32) -> Node {
        let runs = bins.unwrap_or(1).max(1);
        let depth = what.frames.div_ceil(runs);
        let used = Bitmap::new(runs as usize * depth as usize);
        let bins = bins.map(|bins| Bins::new(bins, levels));
        Node {
            what,
            first,
            free: what.frames,
            runs,
            depth,
            used,
            bins,
        }
    }

    #[inline]
    fn slot(&self, local: u32) -> usize {
        if self.runs == 1 {
            return local as usize;
        }
        (local % self.runs) as usize * self.depth as usize + (local / self.runs) as usize
    }

    #[inline]
    fn local(&self, slot: usize) -> u32 {
        let (run, row) = (slot / self.depth as usize, slot % self.depth as usize);
        (row * self.runs as usize + run) as u32
    }

    #[inline]
    fn next_slot(&self) -> Option<usize> {
        let run = match &self.bins {
            Some(bins) => bins.coldest()?,
            None => 0,
        };
        self.used.first_free(run as usize * self.depth as usize)
    }

    #[inline]
    fn take_any(&mut self) -> Option<u32> {
        let slot = self.next_slot()?;
        Some(self.take_slot(slot))
    }

    #[inline]
    fn take_slot(&mut self, slot: usize) -> u32 {
        self.used.insert(slot);
        self.free -= 1;
        let local = self.local(slot);
        if let Some(bins) = &mut self.bins {
            let bin = local % self.runs;
            let end = (bin as usize + 1) * self.depth as usize;
            // The last row of frames may end in the middle: slots without a frame are never free. They are marked when
            // their bin is first used, so that a huge node costs nothing before; of an unused bin, only the first slot
            // is ever taken.
            let last_row = self.what.frames % self.runs;
            if last_row != 0 && bin >= last_row && bins.is_untouched(bin) {
                self.used.insert(end - 1);
            }
            let start = bin as usize * self.depth as usize;
            let full = self.used.first_free(start).is_none_or(|next| next >= end);
            bins.set(bin, bins.heat(bin), full);
        }
        self.first + local
    }
}
