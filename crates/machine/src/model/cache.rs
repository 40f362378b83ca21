//! One set-associative, write-back cache of 64 B lines with exact LRU.
//!
//! A set is a row of `u32` slots, most recent first: `(tag + 1) << 1 | dirty`, 0 when empty. The order of the slots
//! is the LRU order, so a hit on the first slot, by far the most frequent, touches nothing.

use super::divide::Divisor;

/// A line that had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Line number (physical address / 64).
    pub line: u64,
    /// Must it be written back?
    pub dirty: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Cache {
    slots: Box<[u32]>,
    /// Slots of one set in memory: the ways, rounded up to a multiple of 8; the surplus stays empty.
    stride: usize,
    ways: usize,
    sets: Divisor,
}

impl Cache {
    /// A cache of `bytes` with `ways` ways. Sets are `bytes / 64 / ways`, at least 1.
    pub fn new(bytes: u64, ways: u32) -> Cache {
        let ways = ways.max(1) as usize;
        let sets = (bytes / 64 / ways as u64).max(1);
        let stride = ways.next_multiple_of(8);
        Cache {
            slots: vec![0; sets as usize * stride].into(),
            stride,
            ways,
            sets: Divisor::new(sets),
        }
    }

    #[inline(always)]
    fn place(&self, line: u64) -> (usize, u32) {
        let (tag, set) = self.sets.divide(line);
        (set as usize * self.stride, (tag as u32 + 1) << 1)
    }

    /// Asks the host to bring the line's set near.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        let (at, _) = self.place(line);
        super::divide::prefetch(&self.slots[at]);
    }

    /// Looks `line` up and makes it the most recent. A store marks it dirty.
    #[inline(always)]
    pub fn hit(&mut self, line: u64, store: bool) -> bool {
        let (at, key) = self.place(line);
        let set = &mut self.slots[at..at + self.stride];
        let dirty = store as u32;
        if set[0] & !1 == key {
            set[0] |= dirty;
            return true;
        }
        Self::hit_behind(set, key, dirty)
    }

    #[inline]
    fn hit_behind(set: &mut [u32], key: u32, dirty: u32) -> bool {
        let mut base = 0;
        for eight in set.chunks_exact(8) {
            let mut found = 0u32;
            for (i, slot) in eight.iter().enumerate() {
                found |= ((slot & !1 == key) as u32) << i;
            }
            if found != 0 {
                let mut i = base + found.trailing_zeros() as usize;
                let slot = set[i] | dirty;
                while i > 0 {
                    set[i] = set[i - 1];
                    i -= 1;
                }
                set[0] = slot;
                return true;
            }
            base += 8;
        }
        false
    }

    /// Puts in a line that [`Cache::hit`] did not find, as the most recent; the least recent goes.
    #[inline(always)]
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        let (at, key) = self.place(line);
        let set = &mut self.slots[at..at + self.ways];
        let last = set[self.ways - 1];
        for i in (1..set.len()).rev() {
            set[i] = set[i - 1];
        }
        set[0] = key | dirty as u32;
        if last == 0 {
            return None;
        }
        let number = (at / self.stride) as u64;
        let tag = ((last >> 1) - 1) as u64;
        Some(Victim {
            line: tag * self.sets.value() + number,
            dirty: last & 1 == 1,
        })
    }

    /// The line that [`Cache::insert`] of `line` would push out now.
    #[inline(always)]
    pub fn victim_of(&self, line: u64) -> Option<u64> {
        let (at, _) = self.place(line);
        let last = self.slots[at + self.ways - 1];
        (last != 0)
            .then(|| ((last >> 1) - 1) as u64 * self.sets.value() + (at / self.stride) as u64)
    }

    /// Makes the line clean and says whether it was dirty (a write-back that keeps the line).
    pub fn clean(&mut self, line: u64) -> bool {
        let (at, key) = self.place(line);
        for slot in &mut self.slots[at..at + self.ways] {
            if *slot == key | 1 {
                *slot = key;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obvious cache: one list per set, most recent first.
    struct Slow {
        sets: Vec<Vec<(u64, bool)>>,
        ways: usize,
    }

    impl Slow {
        fn access(&mut self, line: u64, store: bool) -> (bool, Option<Victim>) {
            let n = self.sets.len() as u64;
            let set = &mut self.sets[(line % n) as usize];
            if let Some(i) = set.iter().position(|e| e.0 == line) {
                let (l, d) = set.remove(i);
                set.insert(0, (l, d || store));
                return (true, None);
            }
            set.insert(0, (line, store));
            let gone = (set.len() > self.ways).then(|| set.pop().unwrap());
            (false, gone.map(|(line, dirty)| Victim { line, dirty }))
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_cache(
            ways in 1u32..20,
            sets in 1u64..13,
            ops in prop::collection::vec((0u64..300, any::<bool>(), 0u8..20), 1..600),
        ) {
            let mut fast = Cache::new(sets * 64 * ways as u64, ways);
            let mut slow = Slow { sets: vec![Vec::new(); sets as usize], ways: ways as usize };
            for (line, store, what) in ops {
                // Far up, as the frames of a large machine are.
                let line = line + (1 << 29);
                if what == 0 {
                    let n = slow.sets.len() as u64;
                    let entry = slow.sets[(line % n) as usize].iter_mut().find(|e| e.0 == line);
                    let was = entry.is_some_and(|e| std::mem::take(&mut e.1));
                    prop_assert_eq!(fast.clean(line), was);
                    continue;
                }
                let (hit, gone) = slow.access(line, store);
                prop_assert_eq!(fast.hit(line, store), hit);
                if !hit {
                    let expected = fast.victim_of(line);
                    let victim = fast.insert(line, store);
                    prop_assert_eq!(victim, gone);
                    prop_assert_eq!(expected, gone.map(|v| v.line));
                }
            }
        }
    }
}
