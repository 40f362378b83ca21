//! A medium whose every possible content after a crash can be inspected.

use super::{Domain, Fence};
use crate::layout::CACHE_LINE;
use std::io;

const LINE: usize = CACHE_LINE as usize;

/// A moment at which the power may fail.
pub struct Crash<'a> {
    /// The bytes that are in the medium for certain.
    pub medium: &'a [u8],
    /// Lines that may be there or not, each by itself: their offsets, and their current contents.
    pub pending: &'a [(u64, [u8; LINE])],
    /// The fence that the region waits at, or none: it has just begun to write something back.
    pub at: Option<Fence>,
}

impl Crash<'_> {
    /// The medium if those pending lines reached it for which `reached` holds, by their number.
    pub fn image(&self, mut reached: impl FnMut(usize) -> bool) -> Vec<u8> {
        let mut image = self.medium.to_vec();
        for (i, (offset, line)) in self.pending.iter().enumerate() {
            if reached(i) {
                let at = *offset as usize;
                let end = (at + LINE).min(image.len());
                image[at..end].copy_from_slice(&line[..end - at]);
            }
        }
        image
    }
}

/// The observer of each possible crash.
type Look = Box<dyn FnMut(&Crash<'_>) + Send>;

/// Compares memory with the fenced contents, at each write-back and each fence.
///
/// Every line in which they differ may have reached the medium: caches write back any line at any time. A line that was written back is there for
/// certain once a fence has ended; one that was only stored to may never be.
pub struct Simulated {
    base: *const u8,
    medium: Vec<u8>,
    written_back: std::collections::BTreeSet<u64>,
    look: Look,
    /// A fence that does nothing: the mistake that tests must find.
    left_out: Option<Fence>,
}

// SAFETY: the memory belongs to the image that has this domain, and is read between its stores, on its thread.
unsafe impl Send for Simulated {}

impl Simulated {
    /// For memory at `base`, of which nothing is in the medium yet. `look` is called at each moment of interest.
    pub fn new(base: *const u8, look: impl FnMut(&Crash<'_>) + Send + 'static) -> Simulated {
        Simulated {
            base,
            medium: Vec::new(),
            written_back: Default::default(),
            look: Box::new(look),
            left_out: None,
        }
    }

    /// The same without a kind of fence.
    pub fn without(mut self, fence: Fence) -> Simulated {
        self.left_out = Some(fence);
        self
    }

    fn line(&self, offset: u64) -> [u8; LINE] {
        let mut line = [0; LINE];
        let bytes = LINE.min(self.medium.len() - offset as usize);
        // SAFETY: the region has at least as many bytes as the medium here.
        unsafe {
            std::ptr::copy_nonoverlapping(self.base.add(offset as usize), line.as_mut_ptr(), bytes)
        };
        line
    }

    fn pending(&self) -> Vec<(u64, [u8; LINE])> {
        let mut pending = Vec::new();
        for offset in (0..self.medium.len() as u64).step_by(LINE) {
            let line = self.line(offset);
            let end = (offset as usize + LINE).min(self.medium.len());
            let held = &self.medium[offset as usize..end];
            if line[..held.len()] != *held {
                pending.push((offset, line));
            }
        }
        pending
    }

    fn show(&mut self, at: Option<Fence>) {
        let pending = self.pending();
        let crash = Crash {
            medium: &self.medium,
            pending: &pending,
            at,
        };
        (self.look)(&crash);
    }
}

impl Domain for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn grown(&mut self, bytes: u64) {
        // A file's length and its zeroes are the file system's, which keeps them.
        self.medium.resize(bytes as usize, 0);
    }

    fn write_back(&mut self, address: *const u8, bytes: u64) {
        self.show(None);
        let start = (address.addr() - self.base.addr()) as u64;
        let first = start / CACHE_LINE * CACHE_LINE;
        self.written_back
            .extend((first..start + bytes).step_by(LINE));
    }

    fn fence(&mut self, why: Fence) -> io::Result<()> {
        self.show(Some(why));
        if self.left_out == Some(why) {
            return Ok(());
        }
        for offset in std::mem::take(&mut self.written_back) {
            let line = self.line(offset);
            let end = (offset as usize + LINE).min(self.medium.len());
            self.medium[offset as usize..end].copy_from_slice(&line[..end - offset as usize]);
        }
        Ok(())
    }
}
