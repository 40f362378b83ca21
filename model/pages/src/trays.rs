//! Trays: colours of pages on DIMMs that lie one after the other.
//!
//! ```text
//!   DIMM        0         1         2         3
//!   hot = 1   | hot   | | cold  | | -     | | -     |     cold fills one DIMM before the next
//!   hot = 3   | hot   | | hot   | | hot   | | cold  |     hot takes its DIMMs in turn
//! ```
//!
//! The first DIMMs of a socket are hot, in the number that [`Trays::set_hot`] sets. Pages that are then in the wrong
//! place, or unevenly spread, are moved at the next tick. With a limit a hot DIMM takes at most that number of pages:
//! where no hot DIMM has room another one becomes hot. No clock, no machine: frames and colours in, frames and remaps
//! out.

use std::collections::{BTreeMap, BTreeSet};

use crate::frames::{Frames, Remap};
use crate::governor::Decision;
use crate::topology::Topology;

/// The application's declaration for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// It will be accessed often.
    Hot,
    /// It will not.
    Cold,
}

/// A DIMM: where its frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimm {
    /// Its socket.
    pub socket: u32,
    /// Its first frame.
    pub first: u32,
    /// Frames.
    pub frames: u32,
}

/// Which frames are on which DIMM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimmMap {
    dimms: Vec<Dimm>,
}

/// Why pages cannot be put on DIMMs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrayError {
    /// Each page is on several DIMMs.
    #[error(
        "trays need to know which DIMM a page is on, but the channels of this machine are interleaved; use a machine with dram.interleave_bytes = 0, such as haswell-2620v3"
    )]
    Interleaved,
    /// A map with a hole.
    #[error(
        "the DIMM map does not cover the memory: no DIMM has the {bytes} B from {from:#x} on; name each DIMM as BASE+BYTES, joined by /"
    )]
    Uncovered {
        /// First byte without a DIMM.
        from: u64,
        /// Bytes without.
        bytes: u64,
    },
    /// A map of other memory, or with the same memory twice.
    #[error(
        "the DIMM map does not fit the memory: {base:#x}+{bytes} is {why}; name each DIMM as BASE+BYTES, joined by /"
    )]
    Misplaced {
        /// The entry's first byte.
        base: u64,
        /// Its length.
        bytes: u64,
        /// The problem.
        why: &'static str,
    },
    /// More hot DIMMs than a socket has.
    #[error(
        "{hot} hot DIMMs: a socket of this machine has {dimms}, give 1 to {dimms}, or 0 for all"
    )]
    TooMany {
        /// Asked for.
        hot: usize,
        /// Of a socket.
        dimms: usize,
    },
}

impl TrayError {
    /// The same of a machine that is `scale` times as large.
    pub fn at_full_size(self, scale: u64) -> TrayError {
        match self {
            TrayError::Uncovered { from, bytes } => TrayError::Uncovered {
                from: from * scale,
                bytes: bytes * scale,
            },
            TrayError::Misplaced { base, bytes, why } => TrayError::Misplaced {
                base: base * scale,
                bytes: bytes * scale,
                why,
            },
            other => other,
        }
    }
}

impl DimmMap {
    /// The DIMMs of a machine whose channels are not interleaved.
    ///
    /// # Errors
    /// Channels are interleaved.
    pub fn of(topology: &Topology) -> Result<DimmMap, TrayError> {
        let (mut first, mut dimms) = (0, Vec::new());
        for node in &topology.nodes {
            if node.fast && node.dimms == 0 {
                return Err(TrayError::Interleaved);
            }
            for i in 0..node.dimms {
                let frames = node.frames / node.dimms;
                dimms.push(Dimm {
                    socket: node.socket,
                    first: first + i * frames,
                    frames,
                });
            }
            first += node.frames;
        }
        match dimms.is_empty() {
            true => Err(TrayError::Interleaved),
            false => Ok(DimmMap { dimms }),
        }
    }

    /// DIMMs at these places of physical memory, base and bytes each: together all DRAM, none of it twice.
    ///
    /// # Errors
    /// A range that is not covered, covered twice, or not DRAM.
    pub fn given(topology: &Topology, map: &[(u64, u64)]) -> Result<DimmMap, TrayError> {
        let page = topology.page_bytes;
        let mut places = map.to_vec();
        places.sort_unstable();
        let (mut first, mut dimms) = (0u64, Vec::new());
        for node in &topology.nodes {
            let end = first + u64::from(node.frames);
            let mut at = first * page;
            while node.fast && at < end * page {
                let next = places.iter().position(|p| p.0 + p.1 > at);
                let Some((base, bytes)) = next.map(|i| places.remove(i)) else {
                    let bytes = end * page - at;
                    return Err(TrayError::Uncovered { from: at, bytes });
                };
                let wrong = |why| TrayError::Misplaced { base, bytes, why };
                if base > at {
                    let bytes = base.min(end * page) - at;
                    return Err(TrayError::Uncovered { from: at, bytes });
                }
                if base < at {
                    return Err(wrong("partly on another DIMM"));
                }
                if base % page != 0 || bytes % page != 0 {
                    return Err(wrong("no whole number of pages"));
                }
                if base + bytes > end * page {
                    return Err(wrong("larger than the rest of the socket's DRAM"));
                }
                dimms.push(Dimm {
                    socket: node.socket,
                    first: (base / page) as u32,
                    frames: (bytes / page) as u32,
                });
                at = base + bytes;
            }
            first = end;
        }
        if let Some(&(base, bytes)) = places.first() {
            let why = "no DRAM of this machine, or on another DIMM";
            return Err(TrayError::Misplaced { base, bytes, why });
        }
        Ok(DimmMap { dimms })
    }

    /// DIMMs that the caller has found. Their frames must not overlap.
    pub fn of_dimms(dimms: Vec<Dimm>) -> DimmMap {
        DimmMap { dimms }
    }

    /// All DIMMs.
    pub fn dimms(&self) -> &[Dimm] {
        &self.dimms
    }

    /// DIMMs of the socket that has fewest.
    pub fn per_socket(&self) -> usize {
        let sockets = self.dimms.iter().map(|d| d.socket);
        let of = |s| self.dimms.iter().filter(|d| d.socket == s).count();
        sockets.map(of).min().unwrap_or(0)
    }
}

/// Pages by colour, for reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrayState {
    /// Pages by socket and DIMM: hot, cold.
    pub pages: Vec<Vec<(u32, u32)>>,
    /// Hot DIMMs of each socket.
    pub hot: usize,
    /// Decisions of the governor, with their times in ns.
    pub decisions: Vec<(u64, Decision)>,
    /// DIMMs that became hot because the hot ones were full.
    pub overflows: u32,
}

/// Colours on DIMMs.
pub struct Trays {
    /// By socket.
    sockets: Vec<Vec<Tray>>,
    /// Hot DIMMs of each socket.
    hot: usize,
    /// Most pages of a hot DIMM.
    limit: Option<u32>,
    /// The DIMM whose turn it is, by socket.
    turn: Vec<usize>,
    /// Pages by frame.
    pages: BTreeMap<u32, Colour>,
    /// Times that all hot DIMMs were full.
    overflows: u32,
    /// Pages may be in wrong places.
    unsettled: bool,
    /// Pages that are on their way, by the frame they leave.
    moving: BTreeMap<u32, u32>,
    /// Those of them that have to do with another number of hot DIMMs.
    spreading: BTreeSet<u32>,
    /// The number of hot DIMMs is another one, and not all pages that therefore have to move are on their way yet.
    to_spread: bool,
}

struct Tray {
    dimm: Dimm,
    /// Pages on it, those that are on their way to it among them.
    used: u32,
}

impl Trays {
    /// With `hot` hot DIMMs on each socket, 0 for all.
    ///
    /// # Errors
    /// More hot DIMMs than there are.
    pub fn new(map: &DimmMap, hot: usize, limit: Option<u32>) -> Result<Trays, TrayError> {
        let dimms = map.per_socket();
        if hot > dimms {
            return Err(TrayError::TooMany { hot, dimms });
        }
        let last = map.dimms.iter().map(|d| d.socket).max().unwrap_or(0);
        let tray = |&dimm: &Dimm| Tray { dimm, used: 0 };
        let sockets: Vec<Vec<Tray>> = (0..=last)
            .map(|s| {
                map.dimms
                    .iter()
                    .filter(|d| d.socket == s)
                    .map(tray)
                    .collect()
            })
            .collect();
        Ok(Trays {
            turn: vec![0; sockets.len()],
            sockets,
            hot: if hot == 0 { dimms } else { hot },
            limit,
            pages: BTreeMap::new(),
            overflows: 0,
            unsettled: false,
            moving: BTreeMap::new(),
            spreading: BTreeSet::new(),
            to_spread: false,
        })
    }

    /// Hot DIMMs of each socket.
    pub fn hot(&self) -> usize {
        self.hot
    }

    /// DIMMs of each socket.
    pub fn dimms(&self) -> usize {
        self.sockets.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Another number of hot DIMMs, from 1 to all: pages move at the next tick.
    pub fn set_hot(&mut self, hot: usize) {
        let hot = hot.clamp(1, self.dimms().max(1));
        self.unsettled |= hot != self.hot;
        self.to_spread |= hot != self.hot;
        self.hot = hot;
    }

    /// Whether pages still have to move because the number of hot DIMMs changed.
    pub fn is_spreading(&self) -> bool {
        self.to_spread || !self.spreading.is_empty()
    }

    /// A frame for a page of this colour near `socket`.
    pub fn place(&mut self, frames: &mut Frames, socket: u32, colour: Colour) -> Option<u32> {
        let near = (socket as usize).min(self.sockets.len() - 1);
        let others = (0..self.sockets.len()).filter(move |&s| s != near);
        let order: Vec<usize> = std::iter::once(near).chain(others).collect();
        for socket in order {
            if colour == Colour::Hot && self.is_over_limit(socket) {
                // Overflow: one more DIMM takes hot pages, and all are spread anew.
                self.set_hot(self.hot + 1);
                self.overflows += 1;
            }
            if let Some(frame) = self.take(frames, socket, colour) {
                self.pages.insert(frame, colour);
                return Some(frame);
            }
        }
        None
    }

    fn is_over_limit(&self, socket: usize) -> bool {
        let full = |t: &Tray| self.limit.is_some_and(|limit| t.used >= limit);
        self.hot < self.dimms() && self.sockets[socket][..self.hot].iter().all(full)
    }

    /// The first free frame of the DIMMs in the order of the colour.
    fn take(&mut self, frames: &mut Frames, socket: usize, colour: Colour) -> Option<u32> {
        let order = self.order(socket, colour);
        let at = order
            .into_iter()
            .find(|&at| self.sockets[socket][at].free(frames).is_some())?;
        let tray = &mut self.sockets[socket][at];
        let frame = tray.free(frames)?;
        frames.take(frame);
        tray.used += 1;
        if colour == Colour::Hot && at < self.hot {
            self.turn[socket] = (at + 1) % self.hot;
        }
        Some(frame)
    }

    /// Hot: its DIMMs in turn, then the others. Cold: its DIMMs one after the other, then the hot ones from the last on.
    fn order(&self, socket: usize, colour: Colour) -> Vec<usize> {
        let (hot, all) = (self.hot, self.sockets[socket].len());
        match colour {
            Colour::Hot => {
                let turn = self.turn[socket] % hot;
                let within = |at: &usize| {
                    let used = self.sockets[socket][*at].used;
                    self.limit.is_none_or(|limit| used < limit)
                };
                let in_turn: Vec<usize> = (0..hot).map(|i| (turn + i) % hot).collect();
                let (first, full): (Vec<usize>, Vec<usize>) = in_turn.into_iter().partition(within);
                first.into_iter().chain(full).chain(hot..all).collect()
            }
            Colour::Cold => (hot..all).chain((0..hot).rev()).collect(),
        }
    }

    /// The page in `frame` is gone.
    pub fn freed(&mut self, frame: u32) {
        if self.pages.remove(&frame).is_some() {
            self.leave(frame);
        }
    }

    fn leave(&mut self, frame: u32) {
        if let Some((socket, at)) = self.find(frame) {
            self.sockets[socket][at].used -= 1;
        }
    }

    fn find(&self, frame: u32) -> Option<(usize, usize)> {
        let has = |t: &Tray| frame.wrapping_sub(t.dimm.first) < t.dimm.frames;
        let sockets = self.sockets.iter().enumerate();
        sockets
            .filter_map(|(s, trays)| Some((s, trays.iter().position(has)?)))
            .next()
    }

    /// The pages that are to move: those whose colour has other DIMMs now, and the hot ones that have to move for an
    /// even spread. Empty if nothing has changed.
    pub fn remaps(&mut self, frames: &mut Frames, out: &mut Vec<Remap>) {
        if !std::mem::take(&mut self.unsettled) {
            return;
        }
        let (before, mut stuck) = (out.len(), false);
        for socket in 0..self.sockets.len() {
            let here: Vec<(u32, usize, Colour)> = self
                .pages
                .iter()
                .filter_map(|(&frame, &colour)| {
                    // Pages on their way count where they go.
                    let (s, at) = self.find(*self.moving.get(&frame).unwrap_or(&frame))?;
                    (s == socket).then_some((frame, at, colour))
                })
                .collect();
            let mut hot = vec![0; self.sockets[socket].len()];
            for (_, at, _) in here.iter().filter(|p| p.2 == Colour::Hot) {
                hot[*at] += 1;
            }
            let share = hot.iter().sum::<usize>().div_ceil(self.hot);
            let mut room: Vec<usize> = hot[..self.hot]
                .iter()
                .map(|pages| share.saturating_sub(*pages))
                .collect();
            let mut seen = vec![0; hot.len()];
            let mut leaving = Vec::new();
            for &(frame, at, colour) in &here {
                let stays = match colour {
                    Colour::Hot if at < self.hot => {
                        seen[at] += 1;
                        !leaves(seen[at] - 1, hot[at].saturating_sub(share), hot[at])
                    }
                    Colour::Hot => false,
                    Colour::Cold => at >= self.hot || self.hot == self.sockets[socket].len(),
                };
                if !stays && !self.moving.contains_key(&frame) {
                    leaving.push((frame, colour));
                }
            }
            let mut turn = 0;
            for (from, colour) in leaving {
                let target = match colour {
                    Colour::Hot => (0..self.hot).map(|i| (turn + i) % self.hot).find(|&at| {
                        room[at] > 0 && self.sockets[socket][at].free(frames).is_some()
                    }),
                    Colour::Cold => (self.hot..self.sockets[socket].len())
                        .find(|&at| self.sockets[socket][at].free(frames).is_some()),
                };
                let Some(at) = target else {
                    stuck = true;
                    continue;
                };
                let tray = &mut self.sockets[socket][at];
                let Some(to) = tray.free(frames) else {
                    continue;
                };
                frames.take(to);
                tray.used += 1;
                if colour == Colour::Hot {
                    room[at] -= 1;
                    turn = at + 1;
                }
                self.moving.insert(from, to);
                out.push(Remap { from, to });
            }
        }
        // Where pages that are leaving were in the way, there is room the next time.
        self.unsettled = stuck && out.len() > before;
        if self.to_spread {
            self.spreading.extend(out[before..].iter().map(|r| r.from));
        }
        self.to_spread &= self.unsettled;
    }

    /// A remap was carried out.
    pub fn moved(&mut self, done: Remap) {
        self.moving.remove(&done.from);
        self.spreading.remove(&done.from);
        if let Some(colour) = self.pages.remove(&done.from) {
            self.leave(done.from);
            self.pages.insert(done.to, colour);
        }
    }

    /// A remap will not be carried out.
    pub fn cancelled(&mut self, remap: Remap) {
        self.moving.remove(&remap.from);
        self.spreading.remove(&remap.from);
        self.leave(remap.to);
    }

    /// A page of this colour was found in a frame that the kernel chose. Nothing happens to frames of no DIMM.
    pub fn found(&mut self, frame: u32, colour: Colour) {
        if let Some((socket, at)) = self.find(frame) {
            self.sockets[socket][at].used += 1;
            self.pages.insert(frame, colour);
            self.unsettled = true;
        }
    }

    /// The kernel has moved a page.
    pub fn strayed(&mut self, stray: Remap) {
        if let Some(colour) = self.pages.remove(&stray.from) {
            self.leave(stray.from);
            self.found(stray.to, colour);
        }
    }

    /// A page has another colour from now on.
    pub fn recolour(&mut self, frame: u32, colour: Colour) {
        if let Some(now) = self.pages.get_mut(&frame) {
            self.unsettled |= *now != colour;
            *now = colour;
        }
    }

    /// The next tick scans for pages that are in wrong places.
    pub fn review(&mut self) {
        self.unsettled = true;
    }

    /// Where pages are; the governor's decisions are not known here.
    pub fn state(&self) -> TrayState {
        let empty = |trays: &Vec<Tray>| vec![(0, 0); trays.len()];
        let mut pages: Vec<Vec<(u32, u32)>> = self.sockets.iter().map(empty).collect();
        for (&frame, &colour) in &self.pages {
            if let Some((socket, at)) = self.find(frame) {
                match colour {
                    Colour::Hot => pages[socket][at].0 += 1,
                    Colour::Cold => pages[socket][at].1 += 1,
                }
            }
        }
        TrayState {
            pages,
            hot: self.hot,
            decisions: Vec::new(),
            overflows: self.overflows,
        }
    }

    /// The colour of the page in a frame.
    pub fn colour(&self, frame: u32) -> Option<Colour> {
        self.pages.get(&frame).copied()
    }
}

/// Whether page `at` of `of` leaves, so that `leaving` of them do, evenly spaced: neighbours are used together, and would
/// share their new DIMM if they left together.
fn leaves(at: usize, leaving: usize, of: usize) -> bool {
    (at + 1) * leaving / of > at * leaving / of
}

impl Tray {
    /// The lowest free frame.
    fn free(&self, frames: &Frames) -> Option<u32> {
        frames
            .free_from(self.dimm.first)
            .filter(|f| f - self.dimm.first < self.dimm.frames)
    }
}
