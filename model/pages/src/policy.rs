//! Interface of a placement policy: observations in, decisions out. It has no clock, no input or output of its own, and
//! names neither the model nor an operating system.

use varve_access::{Daemons, Fault, Source};

use crate::frames::{Frames, Remap};
use crate::heat::Heat;
use crate::trays::{Colour, TrayState};

/// Decides which frame backs a page, and which page to move.
pub trait Policy: Send {
    /// A page is touched for the first time: takes a frame for it. `None` when no frame is left that may be used.
    /// Without a daemon, the number of frames does not depend on the faulting core.
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32>;

    /// The page in `frame` is gone; its frame is freed after this call.
    fn freed(&mut self, _frames: &mut Frames, _frame: u32) {}

    /// Work beside the program.
    fn daemons(&self) -> Daemons {
        Daemons::default()
    }

    /// An access to the page in `frame` was sampled.
    fn sample(&mut self, _frames: &mut Frames, _frame: u32, _source: Source) {}

    /// Bytes that memory controllers moved from and to DRAM until `now` (ns), since the beginning; reported right
    /// before each tick.
    fn traffic(&mut self, _now: u64, _bytes: u64) {}

    /// The daemon is awake: appends the pages to move, in order.
    fn tick(&mut self, _frames: &mut Frames, _remaps: &mut Vec<Remap>) {}

    /// A remap was carried out; `from` is freed after this call unless another remap has it as its target.
    fn moved(&mut self, _frames: &mut Frames, _done: Remap) {}

    /// A remap will not be carried out: its page is gone (`freed` for its frame follows), or it was passed over and
    /// stays where it is. The target is not the policy's any more.
    fn cancelled(&mut self, _frames: &mut Frames, _remap: Remap) {}

    /// Heat of the pages by frame, if the policy keeps it.
    fn heat(&self) -> Option<&Heat> {
        None
    }

    /// Is the page in `frame` of the hot colour, if the policy knows colours?
    fn is_hot(&self, _frame: u32) -> bool {
        false
    }

    /// Where pages of each colour are, if the policy knows colours.
    fn trays(&self) -> Option<TrayState> {
        None
    }

    /// A page was found in a frame that the kernel of the machine chose for it.
    fn found(&mut self, _frames: &mut Frames, _fault: &Fault, _frame: u32) {}

    /// The kernel has moved a page: it is the same, in another frame.
    fn strayed(&mut self, frames: &mut Frames, stray: Remap) {
        self.freed(frames, stray.from);
    }

    /// The page in `frame` cannot be moved, for now.
    fn fixed(&mut self, _frames: &Frames, _frame: u32) {}

    /// The page in `frame` has another colour from now on, if the policy knows colours.
    fn recolour(&mut self, _frame: u32, _colour: Colour) {}

    /// Pages that were passed over may be tried again: `used` are all frames with pages.
    fn review(&mut self, _frames: &Frames, _used: &mut dyn Iterator<Item = u32>) {}

    /// Limit of the memory that the policy's own book-keeping may use, bytes.
    fn bytes(&self) -> u64 {
        0
    }
}
