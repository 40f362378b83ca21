//! The lines that were accessed last, one for each set of the first-level cache: most accesses are to one of them.
//!
//! Such a line is in the cache, and the most recent of its set: an access to it moves nothing. Lookups here are by
//! virtual line, so that a hit needs no translation either. The caller checks that the page's translation is in the
//! first-level TLB.

use super::NONE;

/// Entries: lines of the smallest page, whose virtual and physical numbers end alike.
const MOST: u64 = 64;

/// See the module.
pub(super) struct Recent {
    /// Virtual line, and 1 where it is known to be dirty: `line << 1 | dirty`.
    lines: [u64; MOST as usize],
    /// The entries in use, a power of two, less 1.
    mask: u64,
}

impl Recent {
    /// For a cache of `sets` sets.
    pub fn new(sets: u64) -> Recent {
        // Two lines of one set have the same entry when the number of entries divides that of sets: a line that pushes
        // another from the first place of its set then pushes it from here.
        let entries = MOST.min(1 << sets.max(1).trailing_zeros());
        Recent {
            lines: [NONE; MOST as usize],
            mask: entries - 1,
        }
    }

    #[inline(always)]
    fn place(&self, line: u64) -> usize {
        (line & self.mask & (MOST - 1)) as usize
    }

    /// Is a line the most recent of its set, and dirty if it is to be stored to?
    #[inline(always)]
    pub fn has(&self, line: u64, store: bool) -> bool {
        self.lines[self.place(line)] | !store as u64 == line << 1 | 1
    }

    /// A line was just looked up in the cache, which has it now.
    #[inline(always)]
    pub fn note(&mut self, line: u64, store: bool) {
        let place = self.place(line);
        self.lines[place] = line << 1 | store as u64;
    }

    /// A line may have become clean.
    #[inline(always)]
    pub fn forget(&mut self, line: u64) {
        let place = self.place(line);
        self.lines[place] = NONE;
    }

    /// Pages may have moved.
    pub fn forget_all(&mut self) {
        self.lines = [NONE; MOST as usize];
    }
}
