//! Lines that a thread touches while it is not recorded, so that caches are as they would be when it is recorded again.
//! A small direct-mapped filter drops lines that are touched over and over; of the others, the latest are kept. What it counts tells
//! the phases of the run.

use crate::ring::phases::{Accessed, Recent};
use crate::ring::{EVENT_TOUCHED, Shared};

/// Lines that are kept: 128 MiB of a last level. Most caches have evicted older ones.
const KEPT: usize = 1 << 21;
/// Words of an event.
const WORDS: usize = 48;

/// See the module. All zero is an empty one.
pub struct Lines {
    recent: Recent,
    kept: [u64; KEPT],
    /// Lines since the last report.
    count: usize,
    /// What was accessed since the interval or the window began.
    pub accessed: Accessed,
}

impl Lines {
    /// An empty one, which lasts as long as the process.
    pub fn new() -> *mut Lines {
        // SAFETY: all zero is an empty one.
        Box::into_raw(unsafe { Box::<Lines>::new_zeroed().assume_init() })
    }

    /// The thread touched an address.
    #[inline(always)]
    pub fn note(&mut self, address: u64, store: bool) {
        let found = self.recent.note(address, store);
        self.accessed.add(store, found.fresh);
        if !found.reported {
            self.kept[self.count % KEPT] = address & !63 | u64::from(store);
            self.count += 1;
        }
    }

    /// It does so in a window, where accesses are recorded.
    #[inline(always)]
    pub fn see(&mut self, address: u64, store: bool) {
        let found = self.recent.see(address, store);
        self.accessed.add(store, found.fresh);
    }

    /// The thread is recorded again in this slot: reports the lines that it touched meanwhile, the oldest first.
    pub fn tell(&mut self, shared: Shared, slot: usize) {
        let mut at = self.count.saturating_sub(KEPT);
        while at < self.count {
            let first = at % KEPT;
            let words = WORDS.min(self.count - at).min(KEPT - first);
            if let Some(words) = self.kept.get(first..first + words) {
                shared.put(slot, EVENT_TOUCHED, words);
            }
            at += words;
        }
        self.clear();
    }

    /// Nothing was touched.
    pub fn clear(&mut self) {
        self.count = 0;
        self.accessed = Accessed::default();
        self.recent.renew();
    }
}
