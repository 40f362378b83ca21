//! Inputs and decisions of a policy.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A page of a process that is tiered: the process's number in this run, and the address divided by the size of pages. Or one of an
/// object that processes share: the object's number, and the place in it divided by the size of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(u64);

/// Bits of an address divided by 4096: programs have 47 bits of addresses, or 48.
const NUMBER_BITS: u32 = 36;
/// Objects have numbers from here on, and processes below.
pub(super) const OBJECTS: u32 = 1 << 27;

impl Page {
    /// Page `number` of process `process` of this run.
    pub fn new(process: u32, number: u64) -> Page {
        Page(u64::from(process) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1))
    }

    /// The process's number in this run, from 0 on.
    pub fn process(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32
    }

    /// Its address divided by the size of pages.
    pub fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// A place of 15 bits for each process and each object, for pictures with all of them: of processes first.
    pub fn space(self) -> u16 {
        let number = self.process() as u16 & 0x7fff;
        match self.process() < OBJECTS {
            true => number,
            false => number | 0x8000,
        }
    }

    /// Both in one number. Of the first process that is [`Page::number`].
    pub fn key(self) -> u64 {
        self.0
    }

    /// The page of a key.
    pub fn of_key(key: u64) -> Page {
        Page(key)
    }
}

/// Tables by page, which every scan reads in full: numbers of pages that follow each other need no better mixing than this.
pub type Pages<T> = HashMap<Page, T, BuildHasherDefault<PageHasher>>;

/// See [`Pages`].
#[derive(Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number without a pattern: 2^64 over the golden ratio, after Knuth. Tables take the upper and the lower bits.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A request to migrate a page from one frame to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The current frame.
    pub from: u32,
    /// The target frame. If another page is there, that one has to go first.
    pub to: u32,
}

/// The state of a policy that chooses frames, in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameState {
    /// Known pages.
    pub pages: u64,
    /// Hot pages.
    pub hot: u64,
    /// Misplaced hot pages: in a bin with more hot pages than it holds at once, or on a DIMM for cold ones.
    pub misplaced: u64,
    /// Pages that would have to migrate to end that.
    pub to_move: u64,
    /// Hot and cold pages of each DIMM, for policies on DIMMs.
    pub dimms: Vec<(u64, u64)>,
    /// Hot DIMMs of each node, for policies on DIMMs.
    pub hot_dimms: usize,
    /// Decisions by bandwidth: the time in ns, the number of hot DIMMs from then on, and whether that reverted the last decision.
    pub governed: Vec<(u64, usize, bool)>,
}

/// Decides the frame of each page. It gets observations, and never a process or a node. Where nodes are
/// chosen, a frame stands for room in fast or in slow memory. Where frames are, they are numbers of [`super::Spans`].
pub trait TierPolicy {
    /// A page was found, in this frame if frames are chosen. `hot`: the name of its mapping is one of `--hot`. Returns its target frame.
    /// `None`: the policy does not track it, and it stays where it is.
    fn found(&mut self, page: Page, frame: Option<u32>, hot: bool) -> Option<u32>;

    /// The page in this frame is gone, or belongs to another owner.
    fn gone(&mut self, frame: u32);

    /// The page in this frame was accessed. `fast`: it is in fast memory now, whatever its target.
    fn used(&mut self, frame: u32, writes: bool, fast: bool);

    /// Appends the requested migrations, in order. Requests that are not done by the next call are dropped.
    fn decide(&mut self, remaps: &mut Vec<Remap>);

    /// A request of the last [`TierPolicy::decide`] is done. If frames are chosen, the vacated one is not in the reserve.
    fn moved(&mut self, done: Remap);

    /// The page in a frame, if it is known.
    fn page_in(&self, frame: u32) -> Option<Page>;

    /// Whether a frame is in fast memory.
    fn is_fast(&self, frame: u32) -> bool;

    /// Whether the policy classes the page in this frame as hot.
    fn is_hot(&self, frame: u32) -> bool;

    /// Whether it needs accesses.
    fn wants_uses(&self) -> bool;

    /// A page's residency, after any migration: in fast or in slow memory; `None`: it is gone. Called also for pages of which
    /// no decision is made. Policies do not need it; reports of residency do.
    fn is_at(&mut self, _page: Page, _fast: Option<bool>) {}

    /// The page in `from` is in `to` now, without a request. This and the following methods are called only when frames are chosen.
    fn strayed(&mut self, from: u32, to: u32);

    /// This frame is in the reserve from now on.
    fn offered(&mut self, frame: u32);

    /// This frame is no longer in the reserve.
    fn withdrawn(&mut self, frame: u32);

    /// The page in this frame cannot migrate for now.
    fn fixed(&mut self, frame: u32);

    /// Pages that were dropped are to be considered again.
    fn review(&mut self);

    /// Memory traffic since the beginning, at time `now` in ns.
    fn traffic(&mut self, _now: u64, _bytes: u64) {}

    /// The class of a frame of the reserve: 0 for none, 1 and more for a use of the policy.
    fn class(&self, frame: u32) -> u8;

    /// The current state.
    fn state(&self) -> FrameState;
}
