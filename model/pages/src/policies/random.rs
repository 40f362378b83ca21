//! `random`: Linux under memory mode after some uptime, its free memory fragmented (Johnny Cache, section 5.1).
//!
//! Free memory is cut into runs of contiguous frames that are handed out in random order, each from its start. A
//! run is as long as the largest block that Linux's buddy allocator keeps together, 4 MiB on x86-64 (`MAX_ORDER`):
//! blocks of that size stay whole, and their order is arbitrary once memory was used and freed. Freed frames are
//! handed out again first, the last one freed before all others, as Linux's per-CPU lists do.
//!
//! Whatever the length of a run, independent runs leave a bin of the cache unused with a probability of at most
//! `exp(-pages / bins)`: 96 GiB of pages on a 48 GiB cache use 86 % of it or more. Johnny Cache observed 67 % (32 of
//! 48 GB); nothing here is bent towards that.

use varve_access::Fault;

use super::entry::{Advised, Entry, Live, Needs};
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;
use varve_access::random::Rng;
use varve_spec::{Param, Want};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Johnny Cache, section 5.1",
    advised: Advised::Anywhere,
    linux: Some(Needs::MemoryMode),
    params: &[
        Param::scaled(
            "run",
            Want::Bytes,
            "4MiB",
            "contiguous bytes of free memory: the largest block of Linux's buddy allocator on x86-64 (MAX_ORDER), which fragmentation leaves whole",
        ),
        Param::new("seed", Want::COUNT, "1", "seed of the order"),
    ],
    live: Live::No(
        "it is about the order in which the kernel gives out frames, which no program chooses",
    ),
    ..Entry::new(
        "random",
        "runs of free frames in random order: Linux whose memory is fragmented",
        |values, topology| {
            let run = (values.count("run") / topology.page_bytes).clamp(1, u64::from(u32::MAX));
            let policy = Random::new(topology, run as u32, values.count("seed"));
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};

/// Runs of free frames of each node in random order.
pub struct Random {
    nearest: Vec<Vec<usize>>,
    nodes: Vec<Shuffled>,
    rng: Rng,
}

/// The runs of one node.
struct Shuffled {
    /// A permutation of the runs, drawn as far as it was needed: run `i` is `i + order[i]`, modulo the number of
    /// runs, so that zeros are the identity.
    order: Vec<u32>,
    drawn: u32,
    /// Frames of a run.
    run: u32,
    /// The run in use: next frame and end, both local to the node.
    next: u32,
    end: u32,
    /// Freed frames, the last one on top.
    freed: Vec<u32>,
}

impl Random {
    /// Runs of `run` frames (at least one), in the order that `seed` draws.
    pub fn new(topology: &Topology, run: u32, seed: u64) -> Random {
        let nodes = topology.nodes.iter().map(|node| Shuffled {
            order: vec![0; node.frames.div_ceil(run.max(1)) as usize],
            drawn: 0,
            run: run.max(1),
            next: 0,
            end: 0,
            freed: Vec::new(),
        });
        Random {
            nearest: super::nearest(topology),
            nodes: nodes.collect(),
            rng: Rng::from_state(seed),
        }
    }
}

impl Policy for Random {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = super::seen_from(&self.nearest, fault.socket);
        order.iter().find_map(|&node| {
            let local = self.nodes[node].pop(frames.node(node).frames, &mut self.rng)?;
            let frame = frames.first(node) + local;
            frames.take(frame).then_some(frame)
        })
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        if let Some(node) = frames.node_of(frame) {
            self.nodes[node].freed.push(frame - frames.first(node));
        }
    }

    fn bytes(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| 4 * (node.order.len() + node.freed.capacity()) as u64)
            .sum()
    }
}

impl Shuffled {
    fn pop(&mut self, frames: u32, rng: &mut Rng) -> Option<u32> {
        if let Some(frame) = self.freed.pop() {
            return Some(frame);
        }
        if self.next == self.end {
            let run = self.draw(rng)?;
            self.next = run * self.run;
            self.end = self.next.saturating_add(self.run).min(frames);
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The next run: one step of the shuffle of Fisher and Yates.
    fn draw(&mut self, rng: &mut Rng) -> Option<u32> {
        let runs = self.order.len() as u32;
        if self.drawn == runs {
            return None;
        }
        let here = self.drawn;
        let there = here + rng.below(u64::from(runs - here)) as u32;
        let (a, b) = (self.get(here), self.get(there));
        self.put(there, a);
        self.put(here, b);
        self.drawn += 1;
        Some(b)
    }

    fn get(&self, at: u32) -> u32 {
        let runs = self.order.len() as u64;
        ((u64::from(at) + u64::from(self.order[at as usize])) % runs) as u32
    }

    fn put(&mut self, at: u32, run: u32) {
        let runs = self.order.len() as u64;
        self.order[at as usize] = ((u64::from(run) + runs - u64::from(at)) % runs) as u32;
    }
}
