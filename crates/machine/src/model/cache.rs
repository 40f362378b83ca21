//! One set-associative, write-back cache of 64 B lines with exact LRU.
//!
//! A set is a ring of tags with the most recent at its head, so that the order of the ring is the LRU order: a miss
//! turns the ring by one and overwrites what was least recent; a hit on the head, by far the most frequent, moves
//! nothing. The ring's head and the dirty bits of a set share one word.

use super::divide::{Divisor, find, prefetch};

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
    /// Tag + 1 of each slot, 0 when empty; `stride` slots a set, the surplus over the ways stays empty.
    tags: Box<[u32]>,
    /// Per set: the head in the lowest byte, above it one dirty bit per slot.
    state: Box<[u32]>,
    stride: usize,
    ways: u32,
    sets: Divisor,
}

/// First dirty bit of a set's state.
const DIRTY: u32 = 8;
/// Most ways that fit a set's state.
pub const MAX_WAYS: u32 = 24;

impl Cache {
    /// A cache of `bytes` with `ways` ways (at most [`MAX_WAYS`]). Sets are `bytes / 64 / ways`, at least 1.
    pub fn new(bytes: u64, ways: u32) -> Cache {
        let ways = ways.clamp(1, MAX_WAYS);
        Cache::with_sets((bytes / 64 / ways as u64).max(1), ways)
    }

    /// A cache of `sets` sets, for any kind of entry that has a number.
    pub fn with_sets(sets: u64, ways: u32) -> Cache {
        let ways = ways.clamp(1, MAX_WAYS);
        let stride = ways.next_multiple_of(8) as usize;
        Cache {
            tags: vec![0; sets as usize * stride].into(),
            state: vec![0; sets as usize].into(),
            stride,
            ways,
            sets: Divisor::new(sets),
        }
    }

    #[inline(always)]
    fn place(&self, line: u64) -> (usize, u32) {
        let (tag, set) = self.sets.divide(line);
        (set as usize, tag as u32 + 1)
    }

    /// Asks the host to bring the line's set near.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        let (set, _) = self.place(line);
        prefetch(&self.tags[set * self.stride]);
    }

    /// Looks `line` up and makes it the most recent. A store marks it dirty.
    #[inline(always)]
    pub fn hit(&mut self, line: u64, store: bool) -> bool {
        let (set, tag) = self.place(line);
        let at = set * self.stride;
        let tags = &mut self.tags[at..at + self.stride];
        let state = &mut self.state[set];
        let head = *state & 0xff;
        if tags[head as usize] == tag {
            *state |= (store as u32) << (DIRTY + head);
            return true;
        }
        match find(tags, tag) {
            Some(i) => {
                Self::bring_forward(tags, state, i as u32, self.ways, store);
                true
            }
            None => false,
        }
    }

    /// Moves slot `i` to the head: those between make room by one step.
    fn bring_forward(tags: &mut [u32], state: &mut u32, i: u32, ways: u32, store: bool) {
        let head = *state & 0xff;
        let tag = tags[i as usize];
        let dirty = (*state >> (DIRTY + i)) & 1 | store as u32;
        let mut to = i;
        while to != head {
            let from = if to == 0 { ways - 1 } else { to - 1 };
            tags[to as usize] = tags[from as usize];
            let bit = (*state >> (DIRTY + from)) & 1;
            *state = *state & !(1 << (DIRTY + to)) | bit << (DIRTY + to);
            to = from;
        }
        tags[head as usize] = tag;
        *state = *state & !(1 << (DIRTY + head)) | dirty << (DIRTY + head);
    }

    /// Puts in a line that [`Cache::hit`] did not find, as the most recent; the least recent goes.
    #[inline(always)]
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        let (set, tag) = self.place(line);
        let state = self.state[set];
        let head = state & 0xff;
        let head = if head == 0 { self.ways - 1 } else { head - 1 };
        let slot = &mut self.tags[set * self.stride + head as usize];
        let last = std::mem::replace(slot, tag);
        let was_dirty = (state >> (DIRTY + head)) & 1;
        self.state[set] =
            state & !0xff & !(1 << (DIRTY + head)) | (dirty as u32) << (DIRTY + head) | head;
        if last == 0 {
            return None;
        }
        Some(Victim {
            line: (last - 1) as u64 * self.sets.value() + set as u64,
            dirty: was_dirty == 1,
        })
    }

    /// The line that [`Cache::insert`] of `line` would push out now.
    #[inline(always)]
    pub fn victim_of(&self, line: u64) -> Option<u64> {
        let (set, _) = self.place(line);
        let head = self.state[set] & 0xff;
        let head = if head == 0 { self.ways - 1 } else { head - 1 };
        let last = self.tags[set * self.stride + head as usize];
        (last != 0).then(|| (last - 1) as u64 * self.sets.value() + set as u64)
    }

    /// Makes the line clean and says whether it was dirty (a write-back that keeps the line).
    pub fn clean(&mut self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        let at = set * self.stride;
        let Some(i) = find(&self.tags[at..at + self.stride], tag) else {
            return false;
        };
        let bit = 1 << (DIRTY + i as u32);
        let was = self.state[set] & bit != 0;
        self.state[set] &= !bit;
        was
    }

    /// Empties the slot of a line, wherever it stands in the order; the hole keeps its place.
    pub fn remove(&mut self, line: u64) {
        let (set, tag) = self.place(line);
        let at = set * self.stride;
        if let Some(i) = find(&self.tags[at..at + self.stride], tag) {
            self.tags[at + i] = 0;
            self.state[set] &= !(1 << (DIRTY + i as u32));
        }
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
