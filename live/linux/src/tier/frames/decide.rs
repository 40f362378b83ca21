//! What is told to whoever decides about frames, and what comes back. Frames are numbers of [`super::Spans`].

use crate::tier::decide::Page;

/// A page that is to go to another frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// Where it is.
    pub from: u32,
    /// A frame of the reserve.
    pub to: u32,
}

/// How things are, in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameState {
    /// Pages that are known.
    pub pages: u64,
    /// Hot pages.
    pub hot: u64,
    /// Hot pages where they should not be: in a bin with more hot pages than it holds at once, or on a DIMM for cold ones.
    pub misplaced: u64,
    /// How many pages would have to move to end that.
    pub to_move: u64,
    /// Hot and cold pages of each DIMM, where DIMMs are what it is about.
    pub dimms: Vec<(u64, u64)>,
    /// Hot DIMMs of each node, where DIMMs are what it is about.
    pub hot_dimms: usize,
    /// What bandwidth led to: when, in ns, how many DIMMs were to be hot from then on, and whether that took back the last time.
    pub governed: Vec<(u64, usize, bool)>,
}

/// Whoever decides which frame a page is to be in. It is told what is seen, and never sees a process or an address.
pub trait DecideFrames {
    /// A page was found in this frame. `hot`: its owner says so.
    fn found(&mut self, frame: u32, page: Page, hot: bool);

    /// The page in this frame is no more, or is another one's.
    fn gone(&mut self, frame: u32);

    /// The page in `from` is in `to` now, without having been asked to.
    fn strayed(&mut self, from: u32, to: u32);

    /// The page in this frame was seen in use.
    fn used(&mut self, frame: u32, writes: bool);

    /// This frame is in the reserve from now on.
    fn offered(&mut self, frame: u32);

    /// It is not any more.
    fn withdrawn(&mut self, frame: u32);

    /// Appends what is to be moved. What is not moved until the next time is forgotten.
    fn decide(&mut self, remaps: &mut Vec<Remap>);

    /// One of the last [`DecideFrames::decide`] was carried out. The frame that was left is not in the reserve.
    fn moved(&mut self, done: Remap);

    /// The page in this frame cannot be moved, for now.
    fn fixed(&mut self, frame: u32);

    /// What was forgotten is to be looked at again.
    fn review(&mut self);

    /// Whether the page in this frame is thought to be hot.
    fn is_hot(&self, frame: u32) -> bool;

    /// Whether it wants to be told what is in use.
    fn wants_uses(&self) -> bool;

    /// Whether it wants to be told of bandwidth.
    fn wants_traffic(&self) -> bool {
        false
    }

    /// So many bytes have gone to memory and back since the beginning, by now, in ns.
    fn traffic(&mut self, _now: u64, _bytes: u64) {}

    /// What a frame of the reserve would be good for: 0 for nothing, 1 and more for one of several things.
    fn class(&self, frame: u32) -> u8;

    /// How things are.
    fn state(&self) -> FrameState;
}
