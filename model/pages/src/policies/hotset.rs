//! `hotset`: HeMem (Raybuck et al., SOSP 2021), as Johnny Cache uses it.
//!
//! New pages go to DRAM while there is room, then to slow memory. Sampled accesses distinguish hot pages from cold
//! ones; each wake-up promotes hot pages of slow memory, those hot by their stores first. When DRAM is full, each takes
//! the frame of a cold page, which is demoted before. Nothing moves when every page in DRAM is hot. Each socket is
//! managed on its own; memory of another socket is used only when that of the thread's own is full.

use varve_access::{Daemons, Fault, Source};

use super::daemon::Settings;
use super::entry::{Advised, Entry, Live, Needs, Observed};
use super::{nearest_of, seen_from};
use crate::frames::{Frames, Remap};
use crate::heat::Heat;
use crate::lists::Lists;
use crate::policy::Policy;
use crate::topology::Topology;
use varve_spec::{Param, Want};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Raybuck et al., HeMem, SOSP 2021; Johnny Cache, section 2.1",
    needs: Needs::Flat,
    advised: Advised::Anywhere,
    observes: &[Observed::Uses],
    period: Some(super::daemon::PERIOD),
    params: &super::with_daemon(SPARE),
    live: Live::Nodes,
    ..Entry::new(
        "hotset",
        "DRAM first; a daemon exchanges hot pages of slow memory for cold ones of DRAM: HeMem",
        |values, topology| {
            let settings = Settings::of(values, topology.page_bytes)?;
            let spare = (values.count("spare") / topology.page_bytes).min(u64::from(u32::MAX));
            let policy = HotSet::new(topology, settings, spare as u32);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};

const SPARE: Param = Param::scaled(
    "spare",
    Want::Bytes,
    "0",
    "DRAM of each socket kept free for new pages; HeMem's artifact makes room only for a hot page, hence 0",
);

/// Limit of hot DRAM pages that one wake-up scans for cooling: HeMem's artifact, COOLING_PAGES.
const COOLING_PAGES: u64 = 8192;

// Where a page stands. Cold pages of slow memory and free frames stand nowhere.
const NOWHERE: u8 = 0;
const FAST_COLD: u8 = 1;
const FAST_HOT: u8 = 2;
const SLOW_HOT: u8 = 3;
const SLOW_WRITE_HOT: u8 = 4;
const MOVING: u8 = 5;

/// Lists of each socket: one for each place where a page may stand, `NOWHERE` unused.
const LISTS: usize = MOVING as usize;

/// Pages by socket, tier and heat, in each list those that have waited longest first.
pub struct HotSet {
    nearest: Vec<Vec<usize>>,
    fast: Vec<Vec<usize>>,
    slow: Vec<Vec<usize>>,
    settings: Settings,
    /// Frames of DRAM kept free for new pages, per socket.
    spare: u32,
    heat: Heat,
    lists: Lists,
    home: Vec<u8>,
    sockets: Vec<Socket>,
}

#[derive(Clone, Copy, Default)]
struct Socket {
    /// Pages in `FAST_HOT`.
    fast_hot: u64,
    /// How many of them are still to be scanned since all were cooled.
    to_check: u64,
}

impl HotSet {
    /// For this machine, with `spare` frames of DRAM kept free on each socket.
    pub fn new(topology: &Topology, settings: Settings, spare: u32) -> HotSet {
        let frames = topology.frames();
        let nearest = super::nearest(topology);
        HotSet {
            fast: nearest_of(topology, true),
            slow: nearest_of(topology, false),
            settings,
            spare,
            heat: Heat::new(frames, settings.thresholds),
            lists: Lists::new(frames as usize, LISTS * nearest.len()),
            home: vec![NOWHERE; frames as usize],
            sockets: vec![Socket::default(); nearest.len()],
            nearest,
        }
    }

    fn cool(&mut self) {
        self.heat.cool();
        self.settings.decay.cooled();
        self.sockets
            .iter_mut()
            .for_each(|socket| socket.to_check = socket.fast_hot);
    }

    fn put(&mut self, frames: &Frames, frame: u32, home: u8) {
        let old = std::mem::replace(&mut self.home[frame as usize], home);
        let socket = frames.socket_of(frame) as usize;
        if (FAST_COLD..MOVING).contains(&old) {
            self.lists.remove(list(socket, old), frame);
        }
        if (FAST_COLD..MOVING).contains(&home) {
            self.lists.push_back(list(socket, home), frame);
        }
        self.sockets[socket].fast_hot += u64::from(home == FAST_HOT);
        self.sockets[socket].fast_hot -= u64::from(old == FAST_HOT);
    }

    /// Puts the page in `frame` in the list of its heat; it keeps its place when it is there already.
    fn sort(&mut self, frames: &Frames, frame: u32) {
        let home = match (frames.is_fast(frame), self.heat.is_hot(frame)) {
            (true, false) => FAST_COLD,
            (true, true) => FAST_HOT,
            (false, false) => NOWHERE,
            (false, true) if self.heat.is_write_hot(frame) => SLOW_WRITE_HOT,
            (false, true) => SLOW_HOT,
        };
        if self.home[frame as usize] != home {
            self.put(frames, frame, home);
        }
    }

    /// The first page in a list of `socket` whose heat still belongs there.
    fn first(&mut self, frames: &Frames, socket: usize, home: u8) -> Option<u32> {
        loop {
            let frame = self.lists.front(list(socket, home))?;
            self.sort(frames, frame);
            if self.home[frame as usize] == home {
                return Some(frame);
            }
        }
    }

    fn send(&mut self, frames: &Frames, remaps: &mut Vec<Remap>, from: u32, to: u32) {
        self.put(frames, from, MOVING);
        remaps.push(Remap { from, to });
    }

    /// Sends a cold page of DRAM to slow memory; `None` when there is none, or no room for it.
    fn demote(
        &mut self,
        frames: &mut Frames,
        socket: usize,
        remaps: &mut Vec<Remap>,
    ) -> Option<u32> {
        let from = self.first(frames, socket, FAST_COLD)?;
        let to = self.slow[socket]
            .iter()
            .find_map(|&node| frames.take_from(node))?;
        self.send(frames, remaps, from, to);
        Some(from)
    }

    /// Nodes of DRAM on `socket` with more than the frames to be kept free, and how many such frames are missing.
    fn room(&self, frames: &Frames, socket: usize) -> (Option<usize>, u32) {
        let own = self.fast[socket]
            .iter()
            .find(|&&n| frames.node(n).socket as usize == socket);
        let free = own.map_or(self.spare, |&node| frames.free(node));
        (
            own.copied().filter(|_| free > self.spare),
            self.spare.saturating_sub(free),
        )
    }

    /// Hot pages of DRAM that have cooled since go back among the cold, some at each wake-up.
    fn check_hot_pages(&mut self, frames: &Frames, socket: usize) {
        let Socket { fast_hot, to_check } = self.sockets[socket];
        self.sockets[socket].to_check = to_check.saturating_sub(COOLING_PAGES);
        for _ in 0..to_check.min(COOLING_PAGES).min(fast_hot) {
            let Some(frame) = self.lists.front(list(socket, FAST_HOT)) else {
                return;
            };
            self.put(frames, frame, NOWHERE);
            self.sort(frames, frame);
        }
    }

    fn promote(&mut self, frames: &mut Frames, socket: usize, remaps: &mut Vec<Remap>) {
        while remaps.len() < self.settings.moves {
            let written = self.first(frames, socket, SLOW_WRITE_HOT);
            let Some(hot) = written.or_else(|| self.first(frames, socket, SLOW_HOT)) else {
                break;
            };
            let free = self
                .room(frames, socket)
                .0
                .and_then(|node| frames.take_from(node));
            let Some(to) = free.or_else(|| self.demote(frames, socket, remaps)) else {
                break;
            };
            self.send(frames, remaps, hot, to);
        }
    }
}

impl Policy for HotSet {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = seen_from(&self.nearest, fault.socket).iter();
        let spare = |node: usize| frames.node(node).fast && frames.free(node) <= self.spare;
        let node = order
            .clone()
            .copied()
            .find(|&node| frames.free(node) > 0 && !spare(node));
        let node = node.or_else(|| order.copied().find(|&node| frames.free(node) > 0))?;
        let frame = frames.take_from(node)?;
        self.sort(frames, frame);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        self.put(frames, frame, NOWHERE);
        self.heat.clear(frame);
    }

    fn daemons(&self) -> Daemons {
        self.settings.daemons
    }

    fn sample(&mut self, frames: &mut Frames, frame: u32, source: Source) {
        let change = self.heat.add(frame, source);
        if change.overheated {
            self.cool();
        }
        if self.home[frame as usize] != MOVING {
            self.sort(frames, frame);
        }
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        if self.settings.decay.is_due() {
            self.cool();
        }
        for socket in 0..self.sockets.len() {
            self.check_hot_pages(frames, socket);
            self.promote(frames, socket, remaps);
            for _ in 0..self.room(frames, socket).1 {
                let full = remaps.len() >= self.settings.moves;
                if full || self.demote(frames, socket, remaps).is_none() {
                    break;
                }
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

fn list(socket: usize, home: u8) -> usize {
    socket * LISTS + home as usize
}
