//! Lines that a thread touches while it is not recorded, so that caches are as they would be when it is recorded again.
//! A small direct-mapped filter drops lines that are touched over and over; of the others, the latest are kept.

use crate::ring::{EVENT_TOUCHED, Shared};

/// Lines of the filter: fewer than a second level holds.
const FILTER: usize = 4096;
/// Lines that are kept: 128 MiB of a last level. Most caches have evicted older ones.
const KEPT: usize = 1 << 21;
/// Words of an event.
const WORDS: usize = 48;

/// See the module. All zero is an empty one.
pub struct Lines {
    filter: [u64; FILTER],
    kept: [u64; KEPT],
    /// Lines since the last report.
    count: usize,
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
        let line = address & !63 | u64::from(store);
        let entry = &mut self.filter[(address >> 6) as usize % FILTER];
        // a line that was stored to is not reported again when it is read
        if *entry == line || *entry == line | 1 {
            return;
        }
        *entry = line;
        self.kept[self.count % KEPT] = line;
        self.count += 1;
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
        self.filter.fill(0);
    }
}
