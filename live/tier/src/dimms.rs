//! DIMMs whose frames a page policy chooses.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use varve_pages::heat::Heat;

/// Frames of a DIMM, and which one of its node it is.
pub(crate) struct DimmPlace {
    pub first: u32,
    pub frames: u32,
    pub place: usize,
}

/// DIMMs, and who says which pages are hot.
pub(crate) struct Dimms {
    pub frames: Vec<DimmPlace>,
    /// Hot DIMMs of each node, at the last check.
    pub hot: Cell<usize>,
    /// By use, where no names of mappings are given.
    pub heat: Option<Heat>,
    /// The colour of the current page.
    pub colour: Arc<AtomicBool>,
    /// There are no cold pages: they are spread over all DIMMs.
    pub all_hot: bool,
}

impl Dimms {
    /// A page is found next, and its owner calls it hot or not.
    pub(crate) fn finds(&self, hot: bool) {
        self.colour.store(hot || self.all_hot, Ordering::Relaxed);
    }

    pub(crate) fn goes_by_use(&self) -> bool {
        self.heat.is_some()
    }

    /// The class of a frame of the reserve: 1 for hot pages, 2 for cold ones.
    pub(crate) fn class(&self, frame: u32) -> u8 {
        let mut dimms = self.frames.iter();
        let at = dimms.find(|d| frame.wrapping_sub(d.first) < d.frames);
        // Of each node the first ones are hot.
        at.map_or(0, |dimm| match dimm.place < self.hot.get() {
            true => 1,
            false => 2,
        })
    }

    /// `hot` DIMMs of each node are hot now.
    pub(crate) fn are_hot(&self, hot: usize) {
        self.hot.set(hot);
    }
}
