//! One set-associative, write-back cache of 64 B lines with exact LRU.
//!
//! A set is one record of words, at most one or two of the host's cache lines: the order of its ways as a list of
//! 4-bit way numbers, most recent lowest; a dirty bit for each; and their tags, which never move. Making a way the most
//! recent is then a few shifts of one word.
//!
//! A large cache consists of slices, which a hash of the address chooses ([`Sets`]).

use super::divide::prefetch;
use super::host::Zeroed;
use crate::arch::{equal_among_8, equal_among_12, equal_among_16};

/// See the module.
pub struct CacheArray {
    /// One record of `stride` words a set, and room to read beyond the last one.
    records: Zeroed,
    sets: Sets,
    stride: usize,
    ways: u32,
    /// Where the least recent way stands in the order, in bits.
    least: u32,
}

/// The sets of a cache: those of a slice, found by the lowest bits of a line's number, and which slice, found by a hash.
///
/// With a number of slices that is no power of two the hash gives neighbouring lines to slices that meet in another order in
/// each round of a stream, so that lines that were written together are evicted at different times. That is so on Skylake
/// servers (McCalpin, Mapping addresses to L3/CHA slices in Intel processors, 2021); the hash itself is ours. Pairs of lines
/// stay together: input, half of the parts of a media line are evicted together when one thread writes in sequence (write
/// ratio 0.46 to 0.57, data set of Yang et al., FAST 2020).
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    low: u32,
    slices: u32,
    /// The sets of a slice less 1.
    mask: u32,
}

/// log2 of the sets of a slice: 2048 (McCalpin, as above).
const SLICE_SHIFT: u32 = 11;

impl Sets {
    /// For `sets` sets, at least 1.
    pub fn new(sets: u64) -> Sets {
        let sets = sets.max(1);
        let low = sets.trailing_zeros().min(SLICE_SHIFT);
        Sets {
            low,
            slices: (sets >> low) as u32,
            mask: (1 << low) - 1,
        }
    }

    fn number(self) -> u64 {
        u64::from(self.slices) << self.low
    }

    /// Tag and set of a line.
    #[inline(always)]
    pub fn divide(self, line: u64) -> (u64, u64) {
        let (tag, low) = (line >> self.low, line & u64::from(self.mask));
        if self.slices == 1 {
            return (tag, low);
        }
        let slice = (u64::from(hash(line >> 1)) * u64::from(self.slices)) >> 16;
        (tag, slice << self.low | low)
    }

    /// The line of a tag and a set.
    #[inline(always)]
    fn line(self, tag: u64, set: u64) -> u64 {
        tag << self.low | set & u64::from(self.mask)
    }
}

/// A linear hash: every bit is the exclusive or of some bits.
#[inline(always)]
fn hash(n: u64) -> u16 {
    let left = n ^ n << 3 ^ n << 7 ^ n << 11 ^ n << 13;
    let right = n >> 5 ^ n >> 9 ^ n >> 14 ^ n >> 19 ^ n >> 26;
    (left ^ right) as u16
}

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The line was there.
    Hit,
    /// It was not, and is now; the least recent line of its set is gone. A dirty one has to be written back.
    Miss(Option<u64>),
}

/// Where a line goes in a cache: its set, and the bits of the line that are stored there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheSlot {
    set: u32,
    /// The line without the bits that number the set in its slice, + 1.
    tag: u32,
}

/// Most ways of a cache.
pub const MAX_WAYS: u32 = 24;
/// Most ways whose order fits 64 bits. The order of more has 5 bits for each, in 128.
const NARROW: u32 = 16;

// A record: the order in 2 words, the dirty bits, a word that is not used, and the tag + 1 of each way (0 when empty).
// That of more than 16 ways: the order in 4 words, the dirty bits, 3 words that are not used, the tags.
const DIRTY: usize = 2;
const TAGS: usize = 4;
const WIDE_DIRTY: usize = 4;
const WIDE_TAGS: usize = 8;

impl CacheArray {
    /// A cache of `bytes` with `ways` ways (at most [`MAX_WAYS`]). Sets are `bytes / 64 / ways`, at least 1.
    pub fn new(bytes: u64, ways: u32) -> CacheArray {
        let ways = ways.clamp(1, MAX_WAYS);
        CacheArray::with_sets((bytes / 64 / ways as u64).max(1), ways)
    }

    /// A cache of `sets` sets, for any kind of entry that has a number.
    pub fn with_sets(sets: u64, ways: u32) -> CacheArray {
        let (sets, ways) = (sets.max(1), ways.clamp(1, MAX_WAYS));
        // A record of up to 12 ways is one cache line of the host.
        let stride = match ways {
            0..=12 => 16,
            13..=NARROW => TAGS + NARROW as usize,
            _ => WIDE_TAGS + MAX_WAYS as usize,
        };
        // The tags of 16 ways are read whatever their number.
        let words = sets as usize * stride + NARROW as usize;
        let mut records = Zeroed::new(words * 4);
        let first = sets as usize * stride;
        for record in records.words_mut()[..first].chunks_exact_mut(stride) {
            if ways > NARROW {
                let order = (0..ways).fold(0, |o, w| o | (w as u128) << (5 * w));
                set_wide(record, order);
            } else {
                let order = (0..ways).fold(0, |o, w| o | (w as u64) << (4 * w));
                record[0] = order as u32;
                record[1] = (order >> 32) as u32;
            }
        }
        CacheArray {
            records,
            sets: Sets::new(sets),
            stride,
            ways,
            least: (ways - 1) * if ways > NARROW { 5 } else { 4 },
        }
    }

    /// May its tags be compared by 8 ([`CacheArray::access`])?
    pub fn is_small(&self) -> bool {
        self.ways <= 8
    }

    /// Where a line goes.
    #[inline(always)]
    pub fn place(&self, line: u64) -> CacheSlot {
        let (tag, set) = self.sets.divide(line);
        CacheSlot {
            set: set as u32,
            tag: tag as u32 + 1,
        }
    }

    /// Asks the host to bring the set of a line near.
    #[inline(always)]
    pub fn prefetch(&self, place: CacheSlot) {
        let words = self.records.words();
        let at = place.set as usize * self.stride;
        prefetch(words, at);
        if self.stride > 16 {
            prefetch(words, at + 16);
        }
    }

    /// Looks a line up, puts it in where it was missing, and makes it the most recent. A store marks it dirty.
    ///
    /// `LANES`, 8 or 16, is how many tags are compared at once; a cache of at most 8 ways does with 8, and one of more
    /// than 16 does with either.
    #[inline(always)]
    pub fn access<const LANES: usize>(&mut self, line: u64, store: bool) -> Found {
        // SAFETY: the place is of this cache.
        unsafe { self.look::<LANES>(self.place(line), store) }
    }

    /// As [`CacheArray::access`], for the line that goes to a place of this cache.
    #[inline(always)]
    pub fn access_at<const LANES: usize>(&mut self, place: CacheSlot, store: bool) -> Found {
        assert!((place.set as u64) < self.sets.number());
        // SAFETY: the cache has that set.
        unsafe { self.look::<LANES>(place, store) }
    }

    /// # Safety
    ///
    /// The set of the place is below the number of sets.
    #[inline(always)]
    unsafe fn look<const LANES: usize>(&mut self, place: CacheSlot, store: bool) -> Found {
        debug_assert!(LANES == 16 || self.ways <= 8 || self.ways > NARROW);
        let (tag, set) = (place.tag, place.set as u64);
        let at = set as usize * self.stride;
        if self.ways > NARROW {
            return self.access_wide(at, set, tag, store);
        }
        let words = self.records.words_mut();
        debug_assert!(at + TAGS + LANES <= words.len());
        // SAFETY: `set` is below the number of sets, and the array has `stride` words for each set, at least
        // `TAGS` and one for each way, and 16 words after the last one: the order and dirty words, `LANES` tags, and
        // the tag of each way lie inside. The array is aligned to a page and the stride even, so that the order is
        // aligned.
        let (order, dirty, tags) = unsafe {
            let record = words.as_mut_ptr().add(at);
            (
                &mut *record.cast::<u64>(),
                &mut *record.add(DIRTY),
                record.add(TAGS),
            )
        };
        // SAFETY: as above. Beyond the ways stand zeros, and the wanted tag is none.
        let found = unsafe {
            if LANES == 8 {
                equal_among_8(&*tags.cast(), tag)
            } else if self.ways <= 12 {
                // No look beyond the host's cache line.
                equal_among_12(&*tags.cast(), tag)
            } else {
                equal_among_16(&*tags.cast(), tag)
            }
        };
        if found != 0 {
            let way = found.trailing_zeros();
            *order = forward(*order, way as u64);
            *dirty |= (store as u32) << way;
            return Found::Hit;
        }
        // The way that leaves the list at its upper end stays in the bits above it, which no code reads.
        let way = (*order >> self.least) & 15;
        *order = *order << 4 | way;
        // SAFETY: the order holds numbers of ways.
        let last = unsafe { std::mem::replace(&mut *tags.add(way as usize), tag) };
        let bit = 1 << way;
        let was = *dirty & bit != 0;
        *dirty = *dirty & !bit | (store as u32) << way;
        // An empty way is never dirty.
        Found::Miss(was.then(|| self.sets.line((last - 1) as u64, set)))
    }

    /// As [`CacheArray::access`], for more than 16 ways.
    #[inline(never)]
    fn access_wide(&mut self, at: usize, set: u64, tag: u32, store: bool) -> Found {
        let sets = self.sets;
        let record = &mut self.records.words_mut()[at..at + WIDE_TAGS + MAX_WAYS as usize];
        let tags = &mut record[WIDE_TAGS..];
        if let Some(way) = tags.iter().position(|t| *t == tag) {
            forward_wide(record, way as u32);
            record[WIDE_DIRTY] |= (store as u32) << way;
            return Found::Hit;
        }
        let way = turn_wide(record, self.least);
        let last = std::mem::replace(&mut record[WIDE_TAGS + way as usize], tag);
        let was = record[WIDE_DIRTY] & (1 << way) != 0;
        record[WIDE_DIRTY] = record[WIDE_DIRTY] & !(1 << way) | (store as u32) << way;
        Found::Miss(was.then(|| sets.line((last - 1) as u64, set)))
    }

    /// The dirty line that would have to go for a missing one now, if there is one: a hint, which caches of more than
    /// 16 ways do not give.
    #[inline(always)]
    pub fn victim_of(&self, place: CacheSlot) -> Option<u64> {
        let set = place.set as u64;
        let record = &self.records.words()[set as usize * self.stride..][..self.stride];
        let order = record[0] as u64 | (record[1] as u64) << 32;
        let way = (order >> self.least) as usize & 15;
        if self.ways > NARROW || record[DIRTY] & (1 << way) == 0 {
            return None;
        }
        Some(self.sets.line((record[TAGS + way] - 1) as u64, set))
    }

    /// The record of a line, where its dirty bits and tags stand in it, and the way that holds the line.
    fn way(&mut self, line: u64) -> Option<(&mut [u32], usize, usize, usize)> {
        let (tag, set) = self.sets.divide(line);
        let tag = tag as u32 + 1;
        let at = set as usize * self.stride;
        let (dirty, tags) = if self.ways > NARROW {
            (WIDE_DIRTY, WIDE_TAGS)
        } else {
            (DIRTY, TAGS)
        };
        let record = &mut self.records.words_mut()[at..at + self.stride];
        let ways = &record[tags..tags + self.ways as usize];
        let way = ways.iter().position(|t| *t == tag)?;
        Some((record, dirty, tags, way))
    }

    /// Makes the line clean. Returns whether it was dirty (a write-back that keeps the line).
    pub fn clean(&mut self, line: u64) -> bool {
        let Some((record, dirty, _, way)) = self.way(line) else {
            return false;
        };
        let was = record[dirty] & (1 << way) != 0;
        record[dirty] &= !(1 << way);
        was
    }

    /// Empties the way of a line, wherever it stands in the order; the hole keeps its place.
    pub fn remove(&mut self, line: u64) {
        if let Some((record, dirty, tags, way)) = self.way(line) {
            record[tags + way] = 0;
            record[dirty] &= !(1 << way);
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

/// Makes the least recent way of a wide set the most recent, and returns it.
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
        places: Sets,
        sets: Vec<Vec<(u64, bool)>>,
        ways: usize,
    }

    impl Slow {
        /// Was it there, and which dirty line had to go?
        fn access(&mut self, line: u64, store: bool) -> (bool, Option<u64>) {
            let set = &mut self.sets[self.places.divide(line).1 as usize];
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

    /// As many lines in a row as a cache holds fill its sets evenly, and a line is found again from its place.
    #[test]
    fn a_stream_fills_all_sets() {
        for sets in [1, 64, 6 << 11, 20 << 11, 26 << 11] {
            let places = Sets::new(sets);
            let mut met = vec![0; sets as usize];
            let rounds = 64;
            for line in (1 << 29)..(1 << 29) + sets * rounds {
                let (tag, set) = places.divide(line);
                assert_eq!(places.line(tag, set), line);
                met[set as usize] += 1;
            }
            let (least, most) = (met.iter().min().unwrap(), met.iter().max().unwrap());
            assert!(most - least <= rounds / 8, "{sets}: {least} to {most}");
        }
    }

    /// Pairs leave together, and blocks of four lines do not.
    #[test]
    fn a_stream_leaves_by_pairs() {
        let mut cache = CacheArray::with_sets(26 << 11, 11);
        let mut left: Vec<u64> = Vec::new();
        for line in 0..(26 << 11) * 30 {
            if let Found::Miss(Some(out)) = cache.access::<16>(line, true) {
                left.push(line - out);
            }
        }
        let ages = |n: usize| {
            left.chunks_exact(n)
                .filter(|c| c.iter().all(|a| *a == c[0]))
                .count()
                * n
        };
        assert!(
            ages(2) * 10 > left.len() * 9,
            "{} of {}",
            ages(2),
            left.len()
        );
        assert!(ages(4) * 2 < left.len(), "{} of {}", ages(4), left.len());
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_cache(
            ways in 1u32..=MAX_WAYS,
            sets in 1u64..13,
            ops in prop::collection::vec((0u64..300, any::<bool>(), 0u8..20), 1..600),
        ) {
            let mut fast = CacheArray::new(sets * 64 * ways as u64, ways);
            let mut slow = Slow {
                places: Sets::new(sets),
                sets: vec![Vec::new(); sets as usize],
                ways: ways as usize,
            };
            for (line, store, what) in ops {
                // Far up, as the frames of a large machine are.
                let line = line + (1 << 29);
                if what == 0 {
                    let set = slow.places.divide(line).1 as usize;
                    let entry = slow.sets[set].iter_mut().find(|e| e.0 == line);
                    let was = entry.is_some_and(|e| std::mem::take(&mut e.1));
                    prop_assert_eq!(fast.clean(line), was);
                    continue;
                }
                let expected = match slow.access(line, store) {
                    (true, _) => Found::Hit,
                    (false, gone) => Found::Miss(gone),
                };
                let found = if fast.is_small() {
                    fast.access::<8>(line, store)
                } else {
                    fast.access::<16>(line, store)
                };
                prop_assert_eq!(found, expected);
            }
        }
    }
}
