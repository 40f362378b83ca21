//! Pages of a group: each program's in its memory, moved where another needs the room.

use super::stage::Shared;
use crate::policy::place::Eviction;
use std::collections::BTreeMap;
use varve_access::{Daemons, Fault, Move, OutOfFrames, Pager};
use varve_machine::model::ADDRESS_BITS;
use varve_pages::{Frames, Topology};

/// Period of the daemon that migrates pages, in virtual ns. On a real machine the call is made when room is needed.
const LOOK_NS: u64 = 1000;

/// Is what a program has at an address to be in fast memory?
pub type IsFast = Box<dyn Fn(u64) -> bool + Send>;

/// See the module.
pub struct Rooms {
    frames: Frames,
    /// Nodes of fast memory and of slow, the nearest first.
    nodes: [Vec<usize>; 2],
    /// Program of each thread.
    program: Vec<usize>,
    /// Pages that each program may still have in fast memory.
    fast_left: Vec<u64>,
    /// Of a program in part: which addresses are to be there.
    in_part: Vec<Option<IsFast>>,
    evictions: Vec<Eviction>,
    /// Pages of evicted programs that are in fast memory, and their frames.
    evicted: Vec<BTreeMap<u64, u32>>,
    /// Evictions whose moves were handed out.
    begun: usize,
    /// Pages whose moves were handed out and are not done: of which eviction, and the frame that is kept for them.
    open: BTreeMap<u64, (usize, u32)>,
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
    /// Programs with `threads` threads and a number of pages in fast memory each: the first that are touched, or those that
    /// `in_part` names. The room of those in `evictions` is made of others'.
    pub fn new(
        topology: &Topology,
        threads: &[usize],
        fast_pages: &[u64],
        in_part: Vec<Option<IsFast>>,
        evictions: &[Eviction],
        stage: Shared,
    ) -> Rooms {
        let frames = Frames::in_order(topology);
        Rooms {
            nodes: [true, false].map(|fast| topology.nearest_of(0, fast)),
            program: (threads.iter().enumerate())
                .flat_map(|(i, &n)| std::iter::repeat_n(i, n))
                .collect(),
            fast_left: fast_pages.to_vec(),
            in_part,
            evictions: evictions.to_vec(),
            evicted: vec![BTreeMap::new(); threads.len()],
            begun: 0,
            open: BTreeMap::new(),
            settled: evictions.is_empty(),
            now: 0,
            stage,
            moved: 0,
            moving: None,
            frames,
        }
    }

    /// Is the program to make room, and still has its pages?
    fn holds(&self, program: usize) -> bool {
        self.evictions[self.begun..]
            .iter()
            .any(|e| e.who == program)
    }

    /// The program that a page is of.
    fn owner(&self, vpn: u64) -> usize {
        (vpn >> (ADDRESS_BITS - self.frames.page_bytes().ilog2())) as usize
    }

    /// Where a page is in its program's own addresses.
    fn address(&self, vpn: u64) -> u64 {
        (vpn * self.frames.page_bytes()) & ((1 << ADDRESS_BITS) - 1)
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
                self.open.insert(vpn, (self.begun, to));
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
            let all_done = self.open.values().all(|(j, _)| !mine(j));
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
        // One that makes room has been in fast memory until then.
        let holds = self.holds(program);
        let may = self.fast_left[program] > 0;
        let fast = match &self.in_part[program] {
            Some(is_fast) => may && is_fast(self.address(fault.vpn)),
            None => holds || may,
        };
        let first = usize::from(!fast);
        let frame = self.take(first).or_else(|| self.take(1 - first));
        let Some(frame) = frame else {
            return Err(OutOfFrames {
                pages: self.frames.used(),
                page_bytes: self.frames.page_bytes(),
            });
        };
        if holds {
            self.evicted[program].insert(fault.vpn, frame);
        } else if self.frames.is_fast(frame) {
            self.fast_left[program] = self.fast_left[program].saturating_sub(1);
        }
        Ok(frame)
    }

    fn unmap(&mut self, vpn: u64, frame: u32) {
        let program = self.owner(vpn);
        if let Some((_, to)) = self.open.remove(&vpn) {
            // Its move is off.
            self.frames.give(to);
        } else if self.evicted[program].remove(&vpn).is_none() && self.frames.is_fast(frame) {
            // It may have another page there.
            self.fast_left[program] = self.fast_left[program].saturating_add(1);
        }
        self.frames.give(frame);
    }

    fn daemons(&self) -> Daemons {
        Daemons {
            // The dispatcher makes room and migrates the pages, before the program starts.
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
        // The daemon is not woken during a migration: all are done now.
        self.settled = self.begun == self.evictions.len() && self.open.is_empty();
        if self.settled
            && let Some((_, end)) = &mut self.moving
        {
            *end = now;
        }
    }

    fn moved(&mut self, done: &Move) {
        self.frames.give(done.from);
        self.open.remove(&done.vpn);
        self.moved += self.frames.page_bytes();
    }
}
