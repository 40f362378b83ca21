//! Pages of a Java virtual machine: each in the memory that the plan has for what it is for; and how many there are of each.

use super::plans::By;
use super::program::{OWNERS, owner};
use super::ranges::Ranges;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use varve_machine::{Daemons, Fault, Source};
use varve_pages::{Frames, Policy, Remap, Topology};

/// Pages by what they are for, in slow and in fast memory.
pub type Pages = [[u64; 2]; OWNERS];

fn all(pages: &Pages) -> u64 {
    pages.iter().flatten().sum()
}

/// The pages in use when there were most.
#[derive(Clone, Default)]
pub struct Peak(Arc<Mutex<Pages>>);

impl Peak {
    /// What it was so far.
    pub fn get(&self) -> Pages {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, now: &Pages) {
        let mut most = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all(now) >= all(&most) {
            *most = *now;
        }
    }
}

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
        let wanted = usize::from(self.by.is_fast(what));
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

/// A policy whose pages are counted. It decides as ever.
pub struct Counted {
    policy: Box<dyn Policy>,
    ranges: Arc<Ranges>,
    page_bytes: u64,
    /// Whose page each frame has.
    of: HashMap<u32, u32>,
    now: Pages,
    peak: Peak,
}

impl Counted {
    /// Counts the pages of a policy; `peak` is told.
    pub fn new(
        policy: Box<dyn Policy>,
        ranges: Arc<Ranges>,
        page_bytes: u64,
        peak: Peak,
    ) -> Counted {
        Counted {
            policy,
            ranges,
            page_bytes,
            of: HashMap::new(),
            now: Pages::default(),
            peak,
        }
    }

    fn count(&mut self, frames: &Frames, frame: u32, owner: u32) -> &mut u64 {
        &mut self.now[owner as usize][usize::from(frames.is_fast(frame))]
    }
}

impl Policy for Counted {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let frame = self.policy.place(frames, fault)?;
        let owner = owner(self.ranges.at(fault.vpn * self.page_bytes));
        self.of.insert(frame, owner);
        *self.count(frames, frame, owner) += 1;
        self.peak.note(&self.now);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        if let Some(owner) = self.of.remove(&frame) {
            *self.count(frames, frame, owner) -= 1;
        }
        self.policy.freed(frames, frame);
    }

    fn daemons(&self) -> Daemons {
        self.policy.daemons()
    }

    fn sample(&mut self, frames: &mut Frames, frame: u32, source: Source) {
        self.policy.sample(frames, frame, source);
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        self.policy.traffic(now, bytes);
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.policy.tick(frames, remaps);
    }

    fn moved(&mut self, frames: &mut Frames, done: Remap) {
        if let Some(owner) = self.of.remove(&done.from) {
            *self.count(frames, done.from, owner) -= 1;
            *self.count(frames, done.to, owner) += 1;
            self.of.insert(done.to, owner);
            self.peak.note(&self.now);
        }
        self.policy.moved(frames, done);
    }

    fn cancelled(&mut self, frames: &mut Frames, remap: Remap) {
        self.policy.cancelled(frames, remap);
    }

    fn heat(&self) -> Option<&varve_pages::heat::Heat> {
        self.policy.heat()
    }

    fn bytes(&self) -> u64 {
        self.policy.bytes()
    }
}
