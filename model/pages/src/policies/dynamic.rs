//! `dynamic`: JC-dyn, Johnny Cache section 4.3.
//!
//! Sampled accesses heat pages and their bins. A new page goes to the coldest bin, and its first touch counts as an
//! access, so that a burst of new pages spreads. When more hot pages are in a bin than it holds at once, the daemon
//! moves the least hot of them to the coldest bin, unless that one is crowded as well.

use std::collections::{BTreeMap, BTreeSet};

use varve_access::{Daemons, Fault, Source};

use super::daemon::Settings;
use super::entry::{Advised, Entry, Live, Needs, Observed};
use crate::frames::{Frames, Remap};
use crate::heat::Heat;
use crate::policy::Policy;
use crate::ties::Ties;
use crate::topology::Topology;

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Johnny Cache, section 4.3",
    needs: Needs::MemoryMode,
    advised: Advised::Anywhere,
    observes: &[Observed::Uses],
    period: Some(super::daemon::PERIOD),
    params: &super::with_daemon(super::SEED),
    live: Live::Frames,
    ..Entry::new(
        "dynamic",
        "the coldest bin, and a daemon that parts hot pages in one bin: JC-dyn",
        |values, topology| {
            let settings = Settings::of(values, topology.page_bytes)?;
            let frames = Frames::in_bins(topology, LEVELS);
            let policy = Dynamic::new(topology, settings, values.count("seed"));
            Ok((frames, Box::new(policy)))
        },
    )
};

/// Levels of heat of a bin: the heat of its pages added up, which only very hot bins outgrow (they count as equals).
pub const LEVELS: u32 = 256;

/// Heat of pages; that of bins is in the frames.
pub struct Dynamic {
    nearest: Vec<Vec<usize>>,
    settings: Settings,
    heat: Heat,
    /// Bins to scan, each by its first frame.
    crowded: BTreeSet<u32>,
    /// Frames whose pages cannot be moved: others of their bins are.
    fixed: BTreeSet<u32>,
    ties: Ties,
}

impl Dynamic {
    /// For this machine.
    pub fn new(topology: &Topology, settings: Settings, seed: u64) -> Dynamic {
        Dynamic {
            nearest: super::nearest(topology),
            settings,
            ties: Ties::new(seed),
            heat: Heat::new(topology.frames(), settings.thresholds),
            crowded: BTreeSet::new(),
            fixed: BTreeSet::new(),
        }
    }

    /// Hot pages in the bin of `frame`. A page on its way counts in both of its bins.
    fn hot_in_bin(&self, frames: &Frames, frame: u32) -> Vec<u32> {
        frames
            .bin_mates(frame)
            .filter(|&mate| self.heat.is_hot(mate))
            .collect()
    }

    /// Pages that a bin holds at once, in the node of `frame`.
    fn ways(frames: &Frames, frame: u32) -> usize {
        let node = frames.node_of(frame);
        node.map_or(1, |node| frames.node(node).ways as usize)
    }

    fn cool(&mut self, frames: &mut Frames) {
        self.heat.cool();
        frames.cool();
        self.settings.decay.cooled();
    }

    /// Takes a frame for the page in `from` in the coldest bin, if it meets less heat there than where it is.
    fn colder(&self, frames: &mut Frames, from: u32) -> Option<u32> {
        let node = frames.node_of(from)?;
        let target = frames.peek(node)?;
        let others = frames.bin_heat(from).saturating_sub(self.heat.total(from));
        let crowded = self.hot_in_bin(frames, target).len() >= frames.node(node).ways as usize;
        if crowded || frames.bin_heat(target) >= others {
            return None;
        }
        frames.take_from(node)
    }
}

impl Policy for Dynamic {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let order = super::seen_from(&self.nearest, fault.socket);
        let frame = order
            .iter()
            .find_map(|&node| self.ties.take(frames, node))?;
        self.heat.add(frame, Source::Slow);
        frames.warm(frame, 1);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        frames.warm(frame, -(self.heat.total(frame) as i32));
        self.heat.clear(frame);
        self.fixed.remove(&frame);
    }

    fn found(&mut self, frames: &mut Frames, _: &Fault, frame: u32) {
        self.heat.add(frame, Source::Slow);
        frames.warm(frame, 1);
    }

    fn strayed(&mut self, frames: &mut Frames, stray: Remap) {
        self.fixed.remove(&stray.from);
        self.moved(frames, stray);
        if self.heat.is_hot(stray.to) {
            self.crowded.extend(frames.bin_mates(stray.to).next());
        }
    }

    fn fixed(&mut self, frames: &Frames, frame: u32) {
        self.fixed.insert(frame);
        self.crowded.extend(frames.bin_mates(frame).next());
    }

    fn review(&mut self, frames: &Frames, used: &mut dyn Iterator<Item = u32>) {
        // Pages that could not be moved may be free to move by now.
        self.fixed.clear();
        let mut hot: BTreeMap<u32, usize> = BTreeMap::new();
        for frame in used.filter(|&frame| self.heat.is_hot(frame)) {
            if let Some(bin) = frames.bin_mates(frame).next() {
                *hot.entry(bin).or_default() += 1;
            }
        }
        let crowded = hot
            .into_iter()
            .filter(|&(bin, n)| n > Self::ways(frames, bin));
        self.crowded.extend(crowded.map(|(bin, _)| bin));
    }

    fn daemons(&self) -> Daemons {
        self.settings.daemons
    }

    fn sample(&mut self, frames: &mut Frames, frame: u32, source: Source) {
        let change = self.heat.add(frame, source);
        frames.warm(frame, 1);
        if change.became_hot && self.hot_in_bin(frames, frame).len() > Self::ways(frames, frame) {
            self.crowded.extend(frames.bin_mates(frame).next());
        }
        if change.overheated {
            self.cool(frames);
        }
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        if self.settings.decay.is_due() {
            self.cool(frames);
        }
        let mut bins: Vec<u32> = std::mem::take(&mut self.crowded).into_iter().collect();
        bins.sort_by_key(|&bin| std::cmp::Reverse(frames.bin_heat(bin)));
        for (at, &bin) in bins.iter().enumerate() {
            let mut hot = self.hot_in_bin(frames, bin);
            hot.sort_by_key(|&frame| self.heat.total(frame));
            let too_many = hot.len().saturating_sub(Self::ways(frames, bin));
            hot.retain(|frame| !self.fixed.contains(frame));
            for &from in hot.iter().take(too_many) {
                if remaps.len() == self.settings.moves {
                    self.crowded.extend(&bins[at..]);
                    return;
                }
                // Nowhere to go; the bin is scanned again when its next page becomes hot.
                let Some(to) = self.colder(frames, from) else {
                    break;
                };
                self.heat.copy(from, to);
                frames.warm(to, self.heat.total(to) as i32);
                remaps.push(Remap { from, to });
            }
        }
    }

    fn moved(&mut self, frames: &mut Frames, Remap { from, to }: Remap) {
        let (expected, heat) = (self.heat.total(to) as i32, self.heat.total(from) as i32);
        frames.warm(to, heat - expected);
        frames.warm(from, -heat);
        self.heat.shift(from, to);
    }

    fn cancelled(&mut self, frames: &mut Frames, Remap { to, .. }: Remap) {
        // The target is free again: its bin loses the heat that was expected there.
        frames.warm(to, -(self.heat.total(to) as i32));
        self.heat.clear(to);
    }

    fn heat(&self) -> Option<&Heat> {
        Some(&self.heat)
    }

    fn bytes(&self) -> u64 {
        self.heat.bytes()
    }
}
