//! One set-associative, write-back cache of 64 B lines with exact LRU.
//!
//! A set is one record of words, at most one or two of the host's cache lines: the tags of its ways, which never move;
//! the order of the ways as a list of 4-bit way numbers, most recent lowest; and a dirty bit for each. Making a way the
//! most recent is then a few shifts of one word.

use super::divide::{Divisor, equal_among_8, equal_among_16, prefetch};
use super::host::Zeroed;

/// See the module.
pub struct Cache {
    /// One record of `stride` words a set.
    records: Zeroed,
    sets: Divisor,
    stride: Divisor,
    shape: Shape,
}

/// How a record is laid out: tag + 1 of each way (0 when empty), order, dirty bits.
#[derive(Clone, Copy)]
struct Shape {
    stride: usize,
    ways: u32,
    /// One bit for each way.
    all: u32,
    /// Where the order stands: an even word, so that it is aligned.
    order: usize,
    /// Where the dirty bits stand.
    dirty: usize,
    /// Where the least recent way stands in the order, in bits.
    least: u32,
}

/// Where a line goes: the first word of its set's record, and its tag.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: usize,
    tag: u32,
}

/// Most ways of a cache.
pub const MAX_WAYS: u32 = 24;
/// Most ways whose order fits 64 bits. The order of more has 5 bits for each, in 128.
const NARROW: u32 = 16;

impl Shape {
    fn of(ways: u32) -> Shape {
        let words = if ways > NARROW { 4 } else { 2 };
        let order = ways.next_multiple_of(words) as usize;
        let dirty = order + words as usize;
        // Lookups read tags by 8.
        let looked_at = ways.next_multiple_of(8) as usize;
        let stride = (dirty + 1).max(looked_at).next_multiple_of(4);
        Shape {
            // A record that nearly fills a cache line of the host begins at one.
            stride: if stride == 12 { 16 } else { stride },
            ways,
            all: (1 << ways) - 1,
            order,
            dirty,
            least: (ways - 1) * if ways > NARROW { 5 } else { 4 },
        }
    }
}

impl Cache {
    /// A cache of `bytes` with `ways` ways (at most [`MAX_WAYS`]). Sets are `bytes / 64 / ways`, at least 1.
    pub fn new(bytes: u64, ways: u32) -> Cache {
        let ways = ways.clamp(1, MAX_WAYS);
        Cache::with_sets((bytes / 64 / ways as u64).max(1), ways)
    }

    /// A cache of `sets` sets, for any kind of entry that has a number.
    pub fn with_sets(sets: u64, ways: u32) -> Cache {
        let (sets, ways) = (sets.max(1), ways.clamp(1, MAX_WAYS));
        let shape = Shape::of(ways);
        let mut records = Zeroed::new(sets as usize * shape.stride * 4);
        for record in records.words_mut().chunks_exact_mut(shape.stride) {
            if ways > NARROW {
                let order = (0..ways).fold(0, |o, w| o | (w as u128) << (5 * w));
                set_wide(&mut record[shape.order..], order);
            } else {
                let order = (0..ways).fold(0, |o, w| o | (w as u64) << (4 * w));
                record[shape.order] = order as u32;
                record[shape.order + 1] = (order >> 32) as u32;
            }
        }
        Cache {
            records,
            sets: Divisor::new(sets),
            stride: Divisor::new(shape.stride as u64),
            shape,
        }
    }

    /// Where a line goes in this cache.
    #[inline(always)]
    pub fn place(&self, line: u64) -> Place {
        let (tag, set) = self.sets.divide(line);
        Place {
            at: set as usize * self.shape.stride,
            tag: tag as u32 + 1,
        }
    }

    /// The record that begins at `at`.
    #[inline(always)]
    fn record(&mut self, at: usize) -> *mut u32 {
        let words = self.records.words_mut();
        debug_assert!(at + self.shape.stride <= words.len());
        // SAFETY: `at` comes from `place`: the stride times a remainder of the number of sets. The array has a record
        // of that many words for each set.
        unsafe { words.as_mut_ptr().add(at) }
    }

    /// Word `i` of the record at `at`.
    #[inline(always)]
    fn word(&mut self, at: usize, i: usize) -> &mut u32 {
        debug_assert!(i < self.shape.stride);
        // SAFETY: `i` is a way or a place of the shape, below the stride.
        unsafe { &mut *self.record(at).add(i) }
    }

    /// The order of a set of at most [`NARROW`] ways.
    #[inline(always)]
    fn order(&mut self, at: usize) -> &mut u64 {
        let i = self.shape.order;
        // SAFETY: the order takes two words of the record, the first of them even in a page-aligned array of records
        // of even length: it is aligned.
        unsafe { &mut *self.record(at).add(i).cast::<u64>() }
    }

    /// One bit for the way that holds a tag, or 0.
    #[inline(always)]
    fn find(&mut self, at: usize, tag: u32) -> u32 {
        let first = self.record(at);
        // SAFETY: a record has room for its ways rounded up to a multiple of 8, and for 16 words when it has more than
        // 8 ways.
        let found = unsafe {
            let eight = |k| equal_among_8(&*first.add(k).cast(), tag) << k;
            if self.shape.ways <= 8 {
                eight(0)
            } else if self.shape.ways <= 16 {
                equal_among_16(&*first.cast(), tag)
            } else {
                equal_among_16(&*first.cast(), tag) | eight(16)
            }
        };
        found & self.shape.all
    }

    /// Asks the host to bring a set near.
    #[inline(always)]
    pub fn prefetch(&self, p: Place) {
        let words = self.records.words();
        prefetch(&words[p.at]);
        if self.shape.stride > 16 {
            prefetch(&words[p.at + 16]);
        }
    }

    /// Looks a line up and makes it the most recent. A store marks it dirty.
    #[inline(always)]
    pub fn hit(&mut self, p: Place, store: bool) -> bool {
        let Place { at, tag } = p;
        let found = self.find(at, tag);
        if found == 0 {
            return false;
        }
        let way = found.trailing_zeros();
        if self.shape.ways > NARROW {
            let order = at + self.shape.order;
            forward_wide(&mut self.records.words_mut()[order..], way);
        } else {
            let order = self.order(at);
            *order = forward(*order, way as u64);
        }
        *self.word(at, self.shape.dirty) |= (store as u32) << way;
        true
    }

    /// Puts in a line that [`Cache::hit`] did not find, as the most recent; the least recent goes. Returns that one
    /// when it is dirty and has to be written back.
    #[inline(always)]
    pub fn insert(&mut self, p: Place, dirty: bool) -> Option<u64> {
        let Place { at, tag } = p;
        let least = self.shape.least;
        // What leaves the list at its upper end stays above it, where nobody looks.
        let way = if self.shape.ways > NARROW {
            let order = at + self.shape.order;
            turn_wide(&mut self.records.words_mut()[order..], least)
        } else {
            let order = self.order(at);
            let way = (*order >> least) & 15;
            *order = *order << 4 | way;
            way as u32
        };
        let last = std::mem::replace(self.word(at, way as usize), tag);
        let bits = self.word(at, self.shape.dirty);
        let was = *bits & (1 << way) != 0;
        *bits = *bits & !(1 << way) | (dirty as u32) << way;
        was.then(|| self.line(last, at))
    }

    /// The line of a stored tag. An empty way is never asked for: it is never dirty.
    #[inline(always)]
    fn line(&self, stored: u32, at: usize) -> u64 {
        (stored - 1) as u64 * self.sets.value() + self.stride.divide(at as u64).0
    }

    /// The dirty line that [`Cache::insert`] would push out now, if there is one: a hint, which caches of many ways
    /// do not give.
    #[inline(always)]
    pub fn victim_of(&mut self, p: Place) -> Option<u64> {
        let at = p.at;
        if self.shape.ways > NARROW {
            return None;
        }
        let way = (*self.order(at) >> self.shape.least) as usize & 15;
        let last = *self.word(at, way);
        let dirty = *self.word(at, self.shape.dirty) & (1 << way) != 0;
        dirty.then(|| self.line(last, at))
    }

    /// Makes the line clean and says whether it was dirty (a write-back that keeps the line).
    pub fn clean(&mut self, p: Place) -> bool {
        let Place { at, tag } = p;
        let found = self.find(at, tag);
        let bits = self.word(at, self.shape.dirty);
        let was = *bits & found != 0;
        *bits &= !found;
        was
    }

    /// Empties the way of a line, wherever it stands in the order; the hole keeps its place.
    pub fn remove(&mut self, p: Place) {
        let Place { at, tag } = p;
        let found = self.find(at, tag);
        if found != 0 {
            *self.word(at, found.trailing_zeros() as usize) = 0;
            *self.word(at, self.shape.dirty) &= !found;
        }
    }
}

fn wide(order: &[u32]) -> u128 {
    (0..4).fold(0, |o, i| o | (order[i] as u128) << (32 * i))
}

fn set_wide(words: &mut [u32], order: u128) {
    for (i, word) in words[..4].iter_mut().enumerate() {
        *word = (order >> (32 * i)) as u32;
    }
}

/// Makes a way of a wide set the most recent.
#[inline(never)]
fn forward_wide(words: &mut [u32], way: u32) {
    let order = wide(words);
    let mut place = 0;
    while (order >> place) & 31 != way as u128 {
        place += 5;
    }
    let below = order & ((1 << place) - 1);
    let above = (order >> (place + 5)) << (place + 5);
    set_wide(words, above | below << 5 | way as u128);
}

/// Makes the least recent way of a wide set the most recent, and says which it is.
#[inline(never)]
fn turn_wide(words: &mut [u32], least: u32) -> u32 {
    let order = wide(words);
    let way = (order >> least) & 31;
    set_wide(words, order << 5 | way);
    way as u32
}

/// A list of 4-bit numbers in which `way`, one of them, has moved to the lowest place.
#[inline(always)]
fn forward(order: u64, way: u64) -> u64 {
    const ONES: u64 = 0x1111_1111_1111_1111;
    // The lowest 4 bits that are 0 now are where `way` stood.
    let differs = order ^ (way * ONES);
    let zero = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
    // Every bit up to and with those 4.
    let upto = zero ^ zero.wrapping_sub(1);
    (order & !upto) | ((order << 4) & upto) | way
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
        /// Was it there, and which dirty line had to go?
        fn access(&mut self, line: u64, store: bool) -> (bool, Option<u64>) {
            let n = self.sets.len() as u64;
            let set = &mut self.sets[(line % n) as usize];
            if let Some(i) = set.iter().position(|e| e.0 == line) {
                let (l, d) = set.remove(i);
                set.insert(0, (l, d || store));
                return (true, None);
            }
            set.insert(0, (line, store));
            let gone = (set.len() > self.ways).then(|| set.pop().unwrap());
            (false, gone.filter(|g| g.1).map(|g| g.0))
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_cache(
            ways in 1u32..=MAX_WAYS,
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
                    prop_assert_eq!(fast.clean(fast.place(line)), was);
                    continue;
                }
                let (hit, gone) = slow.access(line, store);
                let place = fast.place(line);
                prop_assert_eq!(fast.hit(place, store), hit);
                if !hit {
                    if ways <= NARROW {
                        prop_assert_eq!(fast.victim_of(place), gone);
                    }
                    prop_assert_eq!(fast.insert(place, store), gone);
                }
            }
        }
    }
}
