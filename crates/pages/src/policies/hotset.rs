//! `hotset`: HeMem (Raybuck et al., SOSP 2021), as paper D uses it.
//!
//! New pages go to DRAM while there is room, then to slow memory. Sampled accesses tell hot pages from cold ones;
//! each wake-up promotes hot pages of slow memory, those hot by their stores first. When DRAM is full, each takes the
//! frame of a cold page, which is demoted before. Nothing moves when every page in DRAM is hot.

use varve_machine::{Daemons, Fault, Source};

use super::daemon::Settings;
use super::{nearest_of, seen_from};
use crate::frames::Frames;
use crate::heat::Heat;
use crate::lists::Lists;
use crate::policy::{Policy, Remap};
use crate::topology::Topology;

/// Hot pages of DRAM that are looked at for having cooled, per wake-up: HeMem's artifact, COOLING_PAGES.
const COOLING_PAGES: u64 = 8192;

// Where a page stands. Cold pages of slow memory and free frames stand nowhere.
const NOWHERE: u8 = 0;
const FAST_COLD: u8 = 1;
const FAST_HOT: u8 = 2;
const SLOW_HOT: u8 = 3;
const SLOW_WRITE_HOT: u8 = 4;
const MOVING: u8 = 5;

/// Pages by tier and heat, in each list those that have waited longest first.
pub struct HotSet {
    fast: Vec<Vec<usize>>,
    slow: Vec<Vec<usize>>,
    settings: Settings,
    /// Frames of DRAM kept free for new pages.
    spare: u64,
    heat: Heat,
    lists: Lists,
    home: Vec<u8>,
    /// Pages in `FAST_HOT`, and how many of them to look at since all were cooled.
    fast_hot: u64,
    to_check: u64,
}

impl HotSet {
    /// For this machine, with `spare` frames of DRAM kept free.
    pub fn new(topology: &Topology, settings: Settings, spare: u64) -> HotSet {
        let frames = topology.frames();
        HotSet {
            fast: nearest_of(topology, true),
            slow: nearest_of(topology, false),
            settings,
            spare,
            heat: Heat::new(frames, settings.thresholds),
            lists: Lists::new(frames as usize, MOVING as usize),
            home: vec![NOWHERE; frames as usize],
            fast_hot: 0,
            to_check: 0,
        }
    }

    fn put(&mut self, frame: u32, home: u8) {
        let old = std::mem::replace(&mut self.home[frame as usize], home);
        if (FAST_COLD..MOVING).contains(&old) {
            self.lists.remove(old as usize, frame);
        }
        if (FAST_COLD..MOVING).contains(&home) {
            self.lists.push_back(home as usize, frame);
        }
        self.fast_hot += u64::from(home == FAST_HOT);
        self.fast_hot -= u64::from(old == FAST_HOT);
    }

    /// Puts the page in `frame` where its heat says; it keeps its place when it is there already.
    fn sort(&mut self, frames: &Frames, frame: u32) {
        let home = match (frames.is_fast(frame), self.heat.is_hot(frame)) {
            (true, false) => FAST_COLD,
            (true, true) => FAST_HOT,
            (false, false) => NOWHERE,
            (false, true) if self.heat.is_write_hot(frame) => SLOW_WRITE_HOT,
            (false, true) => SLOW_HOT,
        };
        if self.home[frame as usize] != home {
            self.put(frame, home);
        }
    }

    /// The first page of `list` whose heat still belongs there.
    fn first(&mut self, frames: &Frames, list: u8) -> Option<u32> {
        loop {
            let frame = self.lists.front(list as usize)?;
            self.sort(frames, frame);
            if self.home[frame as usize] == list {
                return Some(frame);
            }
        }
    }

    fn send(&mut self, remaps: &mut Vec<Remap>, from: u32, to: u32) {
        self.put(from, MOVING);
        remaps.push(Remap { from, to });
    }

    /// Sends a cold page of DRAM to slow memory; `None` when there is none, or no room for it.
    fn demote(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) -> Option<u32> {
        let from = self.first(frames, FAST_COLD)?;
        let to = take(frames, seen_from(&self.slow, frames.socket_of(from)))?;
        self.send(remaps, from, to);
        Some(from)
    }

    fn fast_free(&self, frames: &Frames) -> u64 {
        self.fast[0]
            .iter()
            .map(|&node| u64::from(frames.free(node)))
            .sum()
    }

    /// Hot pages of DRAM that have cooled since go back among the cold, some at each wake-up.
    fn check_hot_pages(&mut self, frames: &Frames) {
        let now = self.to_check.min(COOLING_PAGES).min(self.fast_hot);
        self.to_check = self.to_check.saturating_sub(COOLING_PAGES);
        for _ in 0..now {
            let Some(frame) = self.lists.front(FAST_HOT as usize) else {
                return;
            };
            self.put(frame, NOWHERE);
            self.sort(frames, frame);
        }
    }
}

impl Policy for HotSet {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let (fast, slow) = (
            seen_from(&self.fast, fault.socket),
            seen_from(&self.slow, fault.socket),
        );
        let room = self.fast_free(frames) > self.spare;
        let frame = if room { take(frames, fast) } else { None };
        let frame = frame
            .or_else(|| take(frames, slow))
            .or_else(|| take(frames, fast))?;
        self.sort(frames, frame);
        Some(frame)
    }

    fn freed(&mut self, _frames: &mut Frames, frame: u32) {
        self.put(frame, NOWHERE);
        self.heat.clear(frame);
    }

    fn daemons(&self) -> Daemons {
        self.settings.daemons
    }

    fn sample(&mut self, frames: &mut Frames, frame: u32, source: Source) {
        let change = self.heat.add(frame, source);
        if change.overheated {
            self.heat.cool();
            self.to_check = self.fast_hot;
        }
        if self.home[frame as usize] != MOVING {
            self.sort(frames, frame);
        }
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.check_hot_pages(frames);
        while remaps.len() < self.settings.moves {
            let written = self.first(frames, SLOW_WRITE_HOT);
            let Some(hot) = written.or_else(|| self.first(frames, SLOW_HOT)) else {
                break;
            };
            let room = self.fast_free(frames) > self.spare;
            let free = if room {
                take(frames, seen_from(&self.fast, frames.socket_of(hot)))
            } else {
                None
            };
            let Some(to) = free.or_else(|| self.demote(frames, remaps)) else {
                break;
            };
            self.send(remaps, hot, to);
        }
        let short = self.spare.saturating_sub(self.fast_free(frames));
        for _ in 0..short {
            if remaps.len() >= self.settings.moves || self.demote(frames, remaps).is_none() {
                break;
            }
        }
    }

    fn moved(&mut self, frames: &mut Frames, Remap { from, to }: Remap) {
        self.home[from as usize] = NOWHERE;
        self.heat.shift(from, to);
        self.sort(frames, to);
    }

    fn cancelled(&mut self, frames: &mut Frames, remap: Remap) {
        self.sort(frames, remap.from);
    }

    fn heat(&self) -> Option<&Heat> {
        Some(&self.heat)
    }

    fn bytes(&self) -> u64 {
        self.heat.bytes() + self.lists.bytes() + self.home.len() as u64
    }
}

fn take(frames: &mut Frames, nodes: &[usize]) -> Option<u32> {
    nodes.iter().find_map(|&node| frames.take_from(node))
}
