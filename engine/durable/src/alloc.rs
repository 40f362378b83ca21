//! Room for new objects: bumping through runs of free granules. Free granules are found by tracing references from the roots, or, in a region that
//! was not traced yet, whole free lines by the marks of its pages.
//!
//! A granule has the size of the objects' alignment, so that the room of one dead object between two live ones is room for another of its size. Only
//! maps in memory know granules: the file has bits for lines.

use crate::layout::CACHE_LINE;
use crate::layout::PAGE;
use varve_heap::layout::{LINE_SIZE, OBJECT_ALIGN};

/// Which granules hold objects, and where the next objects go.
#[derive(Debug)]
pub(crate) struct Allocator {
    /// One bit for each granule of the file, set if it is taken.
    taken: Vec<u64>,
    /// Bytes of a granule, the alignment of objects.
    granule: u64,
    granules: u64,
    small: Gap,
    /// For objects longer than a line: small holes on the way stay for small ones.
    medium: Gap,
    /// Granules that are taken.
    used: u64,
    /// Free granules taken last, from and to. The caller has not prepared them for objects yet.
    pub fresh: Option<(u64, u64)>,
    /// During marking: one bit for each granule, set if it was taken since marking began.
    recent: Option<Vec<u64>>,
}

/// Free bytes of the file, and the granule from which the search goes on.
#[derive(Debug, Default, Clone, Copy)]
struct Gap {
    cursor: u64,
    limit: u64,
    next: u64,
}

impl Allocator {
    /// All of a file of `bytes` is taken, where objects are at multiples of `granule`.
    pub fn new(bytes: u64, granule: u64) -> Allocator {
        let mut a = Allocator {
            taken: Vec::new(),
            granule,
            granules: 0,
            small: Gap::default(),
            medium: Gap::default(),
            used: 0,
            fresh: None,
            recent: None,
        };
        a.grow(bytes);
        a.take(0, a.granules);
        a
    }

    /// There are granules up to `bytes` now; new ones are free.
    pub fn grow(&mut self, bytes: u64) {
        self.granules = bytes / self.granule;
        let words = self.granules.div_ceil(64) as usize;
        self.taken.resize(words, 0);
        if let Some(recent) = &mut self.recent {
            recent.resize(words, 0);
        }
    }

    /// Frees all from `offset` on.
    pub fn clear_from(&mut self, offset: u64) {
        let from = offset.div_ceil(self.granule);
        self.used -= clear(&mut self.taken, from, self.granules);
        self.small = Gap::default();
        self.medium = Gap::default();
    }

    /// Takes the granules of an object.
    pub fn take_object(&mut self, offset: u64, bytes: u64) {
        let (from, to) = (
            offset / self.granule,
            (offset + bytes).div_ceil(self.granule),
        );
        self.take(from, to);
    }

    fn take(&mut self, from: u64, to: u64) {
        self.used += set(&mut self.taken, from, to);
        if let Some(recent) = &mut self.recent {
            set(recent, from, to);
        }
    }

    /// From here on granules that are taken are known as such. Lines taken before get no more objects.
    pub fn begin_cycle(&mut self) {
        self.retire();
        self.recent = Some(vec![0; self.taken.len()]);
    }

    /// Whether an offset is in a granule that was taken since marking began.
    #[inline]
    pub fn is_recent(&self, offset: u64) -> bool {
        let at = offset / self.granule;
        let word = |bits: &Vec<u64>| bits.get((at / 64) as usize).copied();
        let word = self.recent.as_ref().and_then(word).unwrap_or(0);
        word >> (at % 64) & 1 != 0
    }

    /// Marking has ended: from `offset` on, the granules of `live` and those that were taken since are taken, and no others. None if it was
    /// all in vain.
    pub fn end_cycle(&mut self, offset: u64, live: Option<&[u64]>) {
        let (Some(recent), Some(live)) = (self.recent.take(), live) else {
            return;
        };
        let first = offset.div_ceil(self.granule);
        self.used = 0;
        for (i, (taken, recent)) in self.taken.iter_mut().zip(recent).enumerate() {
            let found = live.get(i).copied().unwrap_or(0) | recent;
            // Granules of this word that are before the first.
            let before = first.saturating_sub(64 * i as u64);
            let kept = match before {
                64.. => u64::MAX,
                n => (1 << n) - 1,
            };
            *taken = *taken & kept | found & !kept;
            self.used += u64::from(taken.count_ones());
        }
        for gap in [&mut self.small, &mut self.medium] {
            gap.next = 0;
        }
    }

    /// Which lines of a page are taken, as a whole or in part: a bit for each.
    pub fn lines_of_page(&self, page: u64) -> u16 {
        let each = LINE_SIZE / self.granule;
        let first = page * (PAGE / self.granule);
        let mask = u64::MAX >> (64 - each);
        let mut lines = 0;
        for line in 0..PAGE / LINE_SIZE {
            let at = first + line * each;
            let word = self.taken.get((at / 64) as usize).copied().unwrap_or(0);
            lines |= u16::from(word >> (at % 64) & mask != 0) << line;
        }
        lines
    }

    /// Takes these lines of a page.
    pub fn take_lines(&mut self, page: u64, lines: u16) {
        let each = LINE_SIZE / self.granule;
        let first = page * (PAGE / self.granule);
        for line in (0..PAGE / LINE_SIZE).filter(|line| lines >> line & 1 != 0) {
            self.used += set(
                &mut self.taken,
                first + line * each,
                first + (line + 1) * each,
            );
        }
    }

    /// Gives whole granules back.
    pub fn free(&mut self, offset: u64, bytes: u64) {
        let from = self.free_rest(offset, offset + bytes);
        for gap in [&mut self.small, &mut self.medium] {
            gap.next = gap.next.min(from);
        }
    }

    /// Frees whole granules, which are not searched before all others. Returns the first of them.
    fn free_rest(&mut self, from: u64, to: u64) -> u64 {
        let from = from.div_ceil(self.granule);
        let to = (to / self.granule).min(self.granules).max(from);
        self.used -= clear(&mut self.taken, from, to);
        if let Some(recent) = &mut self.recent {
            clear(recent, from, to);
        }
        from
    }

    /// Takes free runs of `least` bytes or more, wherever they are, up to `bytes` in all: from and to of each run.
    pub fn take_free(&mut self, bytes: u64, least: u64) -> Vec<(u64, u64)> {
        let granule = self.granule;
        let (mut runs, mut missing, mut at) = (Vec::new(), bytes.div_ceil(granule), 0);
        while missing > 0
            && let Some((from, to)) = self.find(at, least.div_ceil(granule).min(missing), 1)
        {
            let to = to.min(from + missing);
            self.take(from, to);
            runs.push((from * granule, to * granule));
            (missing, at) = (missing - (to - from), to);
        }
        runs
    }

    /// Frees the unused part of the granules taken for later objects.
    pub fn retire(&mut self) {
        for gap in [self.small, self.medium] {
            self.free(gap.cursor, gap.limit.saturating_sub(gap.cursor));
        }
        self.small.limit = self.small.cursor;
        self.medium.limit = self.medium.cursor;
    }

    /// Puts no more objects into the granules taken last: they cannot be used.
    pub fn abandon(&mut self, bytes: u64) {
        let gap = self.gap(bytes <= LINE_SIZE);
        gap.limit = gap.cursor;
    }

    /// The granules taken last cannot be used now: they are free again, and no objects go there.
    pub fn free_fresh(&mut self, from: u64, to: u64) {
        for small in [true, false] {
            let gap = self.gap(small);
            if gap.limit == to && gap.cursor > from {
                gap.limit = gap.cursor;
            }
        }
        self.free(from, to - from);
    }

    /// Where the next objects go without another search for free granules: from and to.
    pub fn gaps(&self) -> [(u64, u64); 2] {
        [self.small, self.medium].map(|gap| (gap.cursor, gap.limit))
    }

    /// The end of the last granule that is taken.
    pub fn end(&self) -> u64 {
        let last = self.taken.iter().rposition(|&w| w != 0);
        last.map_or(0, |i| {
            (64 * i as u64 + 64 - u64::from(self.taken[i].leading_zeros())) * self.granule
        })
    }

    /// Bytes of granules that are taken.
    pub fn used(&self) -> u64 {
        self.used * self.granule
    }

    /// Has the next objects share no cache line with those before, or with any that follow their room; objects are at multiples of `align`.
    pub fn separate(&mut self, align: u64) {
        let apart = CACHE_LINE.max(align);
        for small in [true, false] {
            let mut gap = *self.gap(small);
            let from = gap.cursor.next_multiple_of(apart);
            let to = gap.limit / apart * apart;
            match from < to {
                true => {
                    self.free_rest(gap.cursor, from);
                    self.free_rest(to, gap.limit);
                    (gap.cursor, gap.limit) = (from, to);
                }
                false => {
                    self.free_rest(gap.cursor, gap.limit);
                    gap.limit = gap.cursor;
                }
            }
            *self.gap(small) = gap;
        }
    }

    #[inline]
    fn gap(&mut self, small: bool) -> &mut Gap {
        match small {
            true => &mut self.small,
            false => &mut self.medium,
        }
    }

    /// Room for an object of `bytes`, a multiple of [`OBJECT_ALIGN`]: its offset; none if the file has to grow first. Free granules taken for it and
    /// for later objects are in [`Allocator::fresh`], for the caller to take out. `apart`: no cache line of that has anything else.
    #[inline]
    pub fn allocate(&mut self, bytes: u64, apart: bool) -> Option<u64> {
        debug_assert!(bytes.is_multiple_of(OBJECT_ALIGN) && bytes > 0);
        let small = bytes <= LINE_SIZE;
        let gap = self.gap(small);
        if gap.cursor + bytes > gap.limit {
            self.next_gap(bytes, apart)?;
        }
        let gap = self.gap(small);
        let at = gap.cursor;
        gap.cursor += bytes;
        Some(at)
    }

    /// Goes on in another run of free granules.
    #[cold]
    fn next_gap(&mut self, bytes: u64, apart: bool) -> Option<()> {
        let small = bytes <= LINE_SIZE;
        let gap = *self.gap(small);
        self.free_rest(gap.cursor, gap.limit);
        let granule = self.granule;
        let (count, align) = (
            bytes.div_ceil(granule),
            match apart {
                true => (CACHE_LINE / granule).max(1),
                false => 1,
            },
        );
        // A gap that was skipped as too short, or freed since, may do.
        let found = self.find(gap.next, count, align);
        let found = match gap.next {
            0 => found,
            _ => found.or_else(|| self.find(0, count, align)),
        };
        let gap = self.gap(small);
        let Some((from, to)) = found else {
            gap.limit = gap.cursor;
            return None;
        };
        // A hole is taken as a whole by small objects. Longer ones take their own alone, but for chunks where they follow each other.
        let to = match small {
            true => to,
            false => to.min(from + count.next_multiple_of(align).max(CHUNK / granule)),
        };
        *gap = Gap {
            cursor: from * granule,
            limit: to * granule,
            next: to,
        };
        self.take(from, to);
        self.fresh = Some((from * granule, to * granule));
        Some(())
    }

    /// The next run of at least `count` free granules, from and to multiples of `align`.
    fn find(&self, from: u64, count: u64, align: u64) -> Option<(u64, u64)> {
        let most = (MOST / self.granule).max(count).next_multiple_of(align);
        let mut at = from;
        while let Some(free) = self.next_free(at) {
            let start = free.next_multiple_of(align);
            let end = self.next_taken(start, start + most);
            let end = match align {
                1 => end,
                _ => end / align * align,
            };
            if end >= start + count {
                return Some((start, end));
            }
            at = end.max(start) + 1;
        }
        None
    }

    /// The first free granule from one on.
    fn next_free(&self, from: u64) -> Option<u64> {
        let mut word = (from / 64) as usize;
        let mut free = !*self.taken.get(word)? & u64::MAX << (from % 64);
        while free == 0 {
            word += 1;
            free = !*self.taken.get(word)?;
        }
        let at = 64 * word as u64 + u64::from(free.trailing_zeros());
        (at < self.granules).then_some(at)
    }

    /// The first taken granule from one on, or the end of the file, or `limit`.
    fn next_taken(&self, from: u64, limit: u64) -> u64 {
        let limit = limit.min(self.granules);
        if from >= limit {
            return from;
        }
        let mut word = (from / 64) as usize;
        let mut taken = self.taken[word] & u64::MAX << (from % 64);
        while taken == 0 && 64 * (word as u64 + 1) < limit {
            word += 1;
            taken = self.taken[word];
        }
        let at = 64 * word as u64 + u64::from(taken.trailing_zeros());
        at.min(limit)
    }

    /// Whether nothing of a page is taken.
    pub fn is_page_free(&self, page: u64) -> bool {
        let each = PAGE / self.granule;
        let (from, to) = (page * each, (page + 1) * each);
        self.next_taken(from, to) == to
    }
}

/// Sets bits; how many were not.
pub(crate) fn set(bits: &mut [u64], from: u64, to: u64) -> u64 {
    let mut new = 0;
    words(from, to, |word, mask| {
        new += u64::from((mask & !bits[word]).count_ones());
        bits[word] |= mask;
    });
    new
}

/// Clears bits; how many were set.
fn clear(bits: &mut [u64], from: u64, to: u64) -> u64 {
    let mut old = 0;
    words(from, to, |word, mask| {
        old += u64::from((mask & bits[word]).count_ones());
        bits[word] &= !mask;
    });
    old
}

/// The words of a range of bits, and which bits of each.
#[inline]
fn words(from: u64, to: u64, mut each: impl FnMut(usize, u64)) {
    let mut at = from;
    while at < to {
        let end = (at / 64 * 64 + 64).min(to);
        let mask = u64::MAX >> (64 - (end - at)) << (at % 64);
        each((at / 64) as usize, mask);
        at = end;
    }
}

/// Bytes that longer objects take at a time.
const CHUNK: u64 = 32 << 10;
/// Most bytes that are taken at a time for small objects.
const MOST: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_never_overlap_and_holes_are_used_again() {
        let mut a = Allocator::new(64 * LINE_SIZE, 8);
        assert_eq!(a.allocate(8, false), None);
        a.grow(4096 * LINE_SIZE);
        let mut ends: std::collections::BTreeMap<u64, u64> = Default::default();
        let mut next = 8u64;
        while let Some(at) = a.allocate(next, false) {
            ends.insert(at, at + next);
            next = (next * 7 + 8) % 3000 / 8 * 8 + 8;
        }
        let spans: Vec<_> = ends.iter().collect();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "no overlap");
        assert!(ends.len() > 500);
        // Every third object lives on: freed lines are found again, and live ones stay.
        let live: Vec<_> = ends.iter().step_by(3).map(|(&a, &e)| (a, e)).collect();
        a.clear_from(64 * LINE_SIZE);
        live.iter().for_each(|&(s, e)| a.take_object(s, e - s));
        let used = a.used();
        let again = a.allocate(256, false).unwrap();
        assert!(again >= 64 * LINE_SIZE && a.used() >= used);
        assert!(live.iter().all(|&(s, e)| again + 256 <= s || again >= e));
    }

    #[test]
    fn regions_begin_on_a_cache_line_of_their_own() {
        let mut a = Allocator::new(0, 8);
        a.grow(64 * LINE_SIZE);
        let first = a.allocate(24, false).unwrap();
        a.separate(8);
        let second = a.allocate(24, false).unwrap();
        assert_ne!(first / CACHE_LINE, second / CACHE_LINE);
    }

    /// The room of one dead object between two live ones is room for another of its size, whatever lines they share.
    #[test]
    fn a_hole_takes_as_much_as_was_there() {
        for bytes in [72, 1016, 10_016] {
            let mut a = Allocator::new(0, 8);
            a.grow(4 << 20);
            let mut all = Vec::new();
            while let Some(at) = a.allocate(bytes, false) {
                all.push(at);
            }
            let mut live = vec![0; (4 << 20) / 8 / 64];
            a.begin_cycle();
            for &at in all.iter().step_by(2) {
                set(&mut live, at / 8, (at + bytes).div_ceil(8));
            }
            a.end_cycle(0, Some(&live));
            let again = std::iter::from_fn(|| a.allocate(bytes, false)).count();
            assert!(
                again >= all.len() / 2 - 1,
                "{again} of {} of {bytes}",
                all.len()
            );
        }
    }

    /// In a failure-atomic region, logged and unlogged data never share a cache line.
    #[test]
    fn room_that_is_apart_shares_no_cache_line() {
        let mut a = Allocator::new(0, 8);
        a.grow(1 << 20);
        let all: Vec<u64> = std::iter::from_fn(|| a.allocate(72, false)).collect();
        let mut live = vec![0; (1 << 20) / 8 / 64];
        a.begin_cycle();
        let lives = |i: &usize| !matches!(i % 7, 2..=4);
        for i in (0..all.len()).filter(lives) {
            set(&mut live, all[i] / 8, (all[i] + 72).div_ceil(8));
        }
        a.end_cycle(0, Some(&live));
        // A gap from before, and others.
        a.allocate(40, false).unwrap();
        a.fresh = None;
        a.separate(8);
        let lines: std::collections::HashSet<u64> = (0..all.len())
            .filter(lives)
            .flat_map(|i| all[i] / CACHE_LINE..=(all[i] + 71) / CACHE_LINE)
            .collect();
        let mut found = 0;
        while let Some(at) = a.allocate(64, true) {
            found += 1;
            assert!((at / CACHE_LINE..=(at + 63) / CACHE_LINE).all(|line| !lines.contains(&line)));
            let (from, to) = a.fresh.take().unwrap_or((0, 0));
            assert!(from.is_multiple_of(CACHE_LINE) && to.is_multiple_of(CACHE_LINE));
        }
        assert!(found > all.len() / 7, "{found}");
    }
}
