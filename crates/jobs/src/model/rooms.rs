//! Pages of a group: each program's in its memory, moved where another needs the room.

use super::stage::Shared;
use crate::policy::place::Eviction;
use varve_machine::{Daemons, Fault, Move, OutOfFrames, Pager};
use varve_pages::{Frames, Topology};

/// Time between two looks of whoever moves pages, virtual ns. On a real machine the call is made when room is needed.
const LOOK_NS: u64 = 1000;

/// See the module.
pub struct Rooms {
    frames: Frames,
    /// Nodes of fast memory and of slow, the nearest first.
    nodes: [Vec<usize>; 2],
    /// Program of each thread.
    program: Vec<usize>,
    /// Pages that each program may still have in fast memory.
    fast_left: Vec<u64>,
    evictions: Vec<Eviction>,
    /// Pages of evicted programs that are in fast memory.
    evicted: Vec<Vec<(u64, u32)>>,
    /// Evictions whose moves were handed out.
    begun: usize,
    /// Moves of each eviction that are not done.
    open: Vec<usize>,
    /// All room is made.
    settled: bool,
    now: u64,
    stage: Shared,
    /// Bytes moved.
    pub moved: u64,
    /// Virtual time at which the first move was asked for and the last was done, ns.
    pub moving: Option<(u64, u64)>,
}

impl Rooms {
    /// Programs whose threads number `threads`, with so many pages in fast memory each; the room of those in `evictions` is
    /// made of others'.
    pub fn new(
        topology: &Topology,
        threads: &[usize],
        fast_pages: &[u64],
        evictions: &[Eviction],
        stage: Shared,
    ) -> Rooms {
        let of = |fast: bool| {
            let near = topology.nearest(0).into_iter();
            near.filter(|&n| topology.nodes[n].fast == fast).collect()
        };
        let frames = Frames::in_order(topology);
        Rooms {
            nodes: [of(true), of(false)],
            program: (threads.iter().enumerate())
                .flat_map(|(i, &n)| std::iter::repeat_n(i, n))
                .collect(),
            fast_left: fast_pages.to_vec(),
            evictions: evictions.to_vec(),
            evicted: vec![Vec::new(); threads.len()],
            begun: 0,
            open: vec![0; evictions.len()],
            settled: evictions.is_empty(),
            now: 0,
            stage,
            moved: 0,
            moving: None,
            frames,
        }
    }

    fn is_evicted(&self, program: usize) -> bool {
        self.evictions.iter().any(|e| e.who == program)
    }

    fn take(&mut self, memory: usize) -> Option<u32> {
        let nodes = self.nodes[memory].clone();
        nodes.into_iter().find_map(|n| self.frames.take_from(n))
    }

    /// Hands out the moves of the next evictions whose programs are in memory.
    fn begin(&mut self, moves: &mut Vec<Move>) {
        while let Some(e) = self.evictions.get(self.begun).copied() {
            if !self.stage.lock().claimed[e.who] {
                return;
            }
            let pages = std::mem::take(&mut self.evicted[e.who]);
            for (vpn, from) in pages {
                // Slow memory has room: the plan counted it.
                let Some(to) = self.take(1) else { break };
                moves.push(Move { vpn, from, to });
                self.open[self.begun] += 1;
            }
            self.begun += 1;
        }
    }

    /// Newcomers whose room is made may start.
    fn settle(&mut self) {
        for (i, e) in self.evictions.iter().enumerate() {
            let mine = |j: &usize| self.evictions[*j].room_for == e.room_for;
            let all_begun = (0..self.evictions.len())
                .filter(mine)
                .all(|j| j < self.begun);
            let all_done = (0..self.evictions.len())
                .filter(mine)
                .all(|j| self.open[j] == 0);
            if i < self.begun && all_begun && all_done {
                self.stage.lock().ready(e.room_for, self.now);
            }
        }
    }
}

impl Pager for Rooms {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let program = self.program[fault.thread as usize];
        let evicted = self.is_evicted(program);
        // One that makes room has been in fast memory until then.
        let fast = evicted || self.fast_left[program] > 0;
        let first = usize::from(!fast);
        let frame = self.take(first).or_else(|| self.take(1 - first));
        let Some(frame) = frame else {
            return Err(OutOfFrames {
                pages: self.frames.used(),
                page_bytes: self.frames.page_bytes(),
            });
        };
        if evicted {
            self.evicted[program].push((fault.vpn, frame));
        } else if fast {
            self.fast_left[program] -= 1;
        }
        Ok(frame)
    }

    fn unmap(&mut self, _vpn: u64, frame: u32) {
        self.frames.give(frame);
    }

    fn daemons(&self) -> Daemons {
        Daemons {
            // The moves are made by whoever makes the room, before its program starts.
            threads: 0,
            period: match self.evictions.is_empty() {
                true => 0,
                false => LOOK_NS,
            },
            sample_period: 0,
        }
    }

    fn tick(&mut self, now: u64, moves: &mut Vec<Move>) {
        if self.settled {
            return;
        }
        self.now = now;
        self.begin(moves);
        if !moves.is_empty() {
            self.moving.get_or_insert((now, now));
        }
        self.settle();
        // Nobody wakes this while moves are carried out: now all are done.
        self.settled = self.begun == self.evictions.len() && self.open.iter().all(|&n| n == 0);
        if self.settled
            && let Some((_, end)) = &mut self.moving
        {
            *end = now;
        }
    }

    fn moved(&mut self, done: &Move) {
        self.frames.give(done.from);
        self.moved += self.frames.page_bytes();
        // Moves are carried out in order: the first eviction that has any left.
        if let Some(open) = self.open.iter_mut().find(|n| **n > 0) {
            *open -= 1;
        }
    }
}
