//! The tags of a DRAM cache: one byte per 64 B line, so that a 48 GB cache is 800 MB of tags and no data.
//!
//! A byte is `(tag + 1) << 1 | dirty`, 0 when empty; the tag is which of the slow memory's cache-sized stretches the
//! line comes from. Ways are neighbours, most recent first.

use super::divide::{Divisor, prefetch};

/// Result of looking a line up and putting it in where it was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The line was there.
    Hit,
    /// The line was missing and is now there.
    Miss {
        /// The line that had to go, when it was dirty: a line number of the slow memory.
        written_back: Option<u64>,
        /// Was any line pushed out (a conflict), dirty or not?
        conflict: bool,
    },
}

/// See the module.
pub struct Tags {
    slots: crate::model::host::Zeroed,
    ways: u64,
    sets: Divisor,
    used: u64,
}

/// The most stretches of slow memory that the tags can distinguish.
pub const MAX_RATIO: u64 = 126;

impl Tags {
    /// Tags for a cache of `bytes` with `ways` ways. The host's memory is taken as lines are touched.
    pub fn new(bytes: u64, ways: u32) -> Tags {
        let ways = ways.max(1) as u64;
        let sets = (bytes / 64 / ways).max(1);
        Tags {
            slots: crate::model::host::Zeroed::new((sets * ways) as usize),
            ways,
            sets: Divisor::new(sets),
            used: 0,
        }
    }

    #[inline(always)]
    fn place(&self, line: u64) -> (u64, usize, u8) {
        let (tag, set) = self.sets.divide(line);
        (
            set,
            (set * self.ways) as usize,
            ((tag as u8 + 1) & 0x7f) << 1,
        )
    }

    /// Asks the host to bring the line's tag near.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        let (_, at, _) = self.place(line);
        prefetch(self.slots.bytes(), at);
    }

    /// Looks a line up; a store marks it dirty. A missing line comes in.
    #[inline(always)]
    pub fn access(&mut self, line: u64, store: bool) -> Lookup {
        let (set, at, key) = self.place(line);
        let first = &mut self.slots.bytes_mut()[at];
        if *first & !1 == key {
            *first |= store as u8;
            return Lookup::Hit;
        }
        let last = if self.ways == 1 {
            std::mem::replace(first, key | store as u8)
        } else {
            match self.search(at, key, store) {
                Some(last) => last,
                None => return Lookup::Hit,
            }
        };
        self.used += (last == 0) as u64;
        Lookup::Miss {
            written_back: (last & 1 == 1)
                .then(|| ((last >> 1) - 1) as u64 * self.sets.value() + set),
            conflict: last != 0,
        }
    }

    /// Searches the ways after the most recent one. A missing line comes in, and the line that it pushes out is
    /// returned.
    #[inline(never)]
    fn search(&mut self, at: usize, key: u8, store: bool) -> Option<u8> {
        let ways = self.ways as usize;
        let set = &mut self.slots.bytes_mut()[at..at + ways];
        if let Some(i) = set.iter().position(|s| s & !1 == key) {
            let slot = set[i] | store as u8;
            set.copy_within(0..i, 1);
            set[0] = slot;
            return None;
        }
        let last = set[ways - 1];
        set.copy_within(0..ways - 1, 1);
        set[0] = key | store as u8;
        Some(last)
    }

    /// How many lines of the cache hold something, and how many there are.
    pub fn used(&self) -> (u64, u64) {
        (self.used, self.sets.value() * self.ways)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one list per set, most recent first.
        #[test]
        fn agrees_with_the_obvious_cache(
            ways in 1u32..5,
            sets in 1u64..9,
            ops in prop::collection::vec((0u64..200, any::<bool>()), 1..400),
        ) {
            let mut fast = Tags::new(sets * 64 * ways as u64, ways);
            let mut slow: Vec<Vec<(u64, bool)>> = vec![Vec::new(); sets as usize];
            for (line, store) in ops {
                let line = line % (sets * MAX_RATIO);
                let set = &mut slow[(line % sets) as usize];
                let expected = if let Some(i) = set.iter().position(|e| e.0 == line) {
                    let (l, d) = set.remove(i);
                    set.insert(0, (l, d || store));
                    Lookup::Hit
                } else {
                    set.insert(0, (line, store));
                    let gone = (set.len() > ways as usize).then(|| set.pop().unwrap());
                    Lookup::Miss {
                        written_back: gone.filter(|g| g.1).map(|g| g.0),
                        conflict: gone.is_some(),
                    }
                };
                prop_assert_eq!(fast.access(line, store), expected);
            }
            prop_assert_eq!(fast.used().0, slow.iter().map(|s| s.len() as u64).sum::<u64>());
        }
    }
}
