//! Room for new objects: bumping through runs of free lines. Which lines are free is what following references from the roots finds, or, in a
//! region that was not followed yet, what the marks of its pages say.

use crate::layout::CACHE_LINE;
use crate::layout::PAGE;
use varve_heap::layout::{LINE_SIZE, OBJECT_ALIGN};

/// Which lines hold objects, and where the next objects go.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// One bit for each line of the file, set if it is taken.
    taken: Vec<u64>,
    lines: u64,
    small: Gap,
    /// For objects longer than a line: small holes on the way stay for small ones.
    medium: Gap,
    /// Lines that are taken.
    used: u64,
    /// What was taken of free lines last, from and to, which nobody has prepared for objects yet.
    pub fresh: Option<(u64, u64)>,
    /// While garbage is looked for: one bit for each line, set if it was taken since that began.
    recent: Option<Vec<u64>>,
}

/// Free bytes of the file, and the line from which to look for more.
#[derive(Debug, Default, Clone, Copy)]
struct Gap {
    cursor: u64,
    limit: u64,
    next: u64,
}

impl Allocator {
    /// All lines of a file of `bytes` are taken.
    pub fn new(bytes: u64) -> Allocator {
        let mut a = Allocator::default();
        a.grow(bytes);
        a.take(0, a.lines);
        a
    }

    /// There are lines up to `bytes` now; new ones are free.
    pub fn grow(&mut self, bytes: u64) {
        self.lines = bytes / LINE_SIZE;
        let words = self.lines.div_ceil(64) as usize;
        self.taken.resize(words, 0);
        if let Some(recent) = &mut self.recent {
            recent.resize(words, 0);
        }
    }

    /// Frees all lines from the one of `offset` on.
    pub fn clear_from(&mut self, offset: u64) {
        for line in offset.div_ceil(LINE_SIZE)..self.lines {
            if self.is_taken(line) {
                self.used -= 1;
            }
            self.taken[(line / 64) as usize] &= !(1 << (line % 64));
        }
        self.small = Gap::default();
        self.medium = Gap::default();
    }

    /// Takes the lines of an object.
    pub fn take_object(&mut self, offset: u64, bytes: u64) {
        self.take(offset / LINE_SIZE, (offset + bytes).div_ceil(LINE_SIZE));
    }

    fn take(&mut self, from: u64, to: u64) {
        for line in from..to {
            if !self.is_taken(line) {
                self.used += 1;
            }
            self.taken[(line / 64) as usize] |= 1 << (line % 64);
        }
        if let Some(recent) = &mut self.recent {
            for line in from..to {
                recent[(line / 64) as usize] |= 1 << (line % 64);
            }
        }
    }

    /// From here on lines that are taken are known as such. What was taken before gets no more objects.
    pub fn begin_cycle(&mut self) {
        self.retire();
        self.recent = Some(vec![0; self.taken.len()]);
    }

    /// Whether an offset is in a line that was taken since garbage is looked for.
    #[inline]
    pub fn is_recent(&self, offset: u64) -> bool {
        let line = offset / LINE_SIZE;
        let word = |bits: &Vec<u64>| bits.get((line / 64) as usize).copied();
        let word = self.recent.as_ref().and_then(word).unwrap_or(0);
        word >> (line % 64) & 1 != 0
    }

    /// Garbage was looked for: from the line of `offset` on, the lines of `live` and those that were taken since are taken, and no others. None if
    /// it was all in vain.
    pub fn end_cycle(&mut self, offset: u64, live: Option<&[u64]>) {
        let (Some(recent), Some(live)) = (self.recent.take(), live) else {
            return;
        };
        let first = offset.div_ceil(LINE_SIZE);
        self.used = 0;
        for (i, (taken, recent)) in self.taken.iter_mut().zip(recent).enumerate() {
            let found = live.get(i).copied().unwrap_or(0) | recent;
            // Lines of this word that are before the first.
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

    fn is_taken(&self, line: u64) -> bool {
        self.taken[(line / 64) as usize] >> (line % 64) & 1 != 0
    }

    /// Which lines of a page are taken, a bit for each.
    pub fn lines_of_page(&self, page: u64) -> u16 {
        let line = page * (PAGE / LINE_SIZE);
        let word = self.taken.get((line / 64) as usize).copied();
        (word.unwrap_or(0) >> (line % 64)) as u16
    }

    /// Takes these lines of a page.
    pub fn take_lines(&mut self, page: u64, lines: u16) {
        let line = page * (PAGE / LINE_SIZE);
        let word = &mut self.taken[(line / 64) as usize];
        let new = u64::from(lines) << (line % 64) & !*word;
        *word |= new;
        self.used += u64::from(new.count_ones());
    }

    /// Gives whole lines back.
    pub fn free(&mut self, offset: u64, bytes: u64) {
        let (from, to) = (offset.div_ceil(LINE_SIZE), (offset + bytes) / LINE_SIZE);
        for line in (from..to).filter(|&l| l < self.lines) {
            if self.is_taken(line) {
                self.used -= 1;
                self.taken[(line / 64) as usize] &= !(1 << (line % 64));
            }
            if let Some(recent) = &mut self.recent {
                recent[(line / 64) as usize] &= !(1 << (line % 64));
            }
        }
        for gap in [&mut self.small, &mut self.medium] {
            gap.next = gap.next.min(from);
        }
    }

    /// Takes free lines, wherever they are, of so many bytes or as many as there are: from and to of each run.
    pub fn take_free(&mut self, bytes: u64) -> Vec<(u64, u64)> {
        let (mut runs, mut missing, mut line) = (Vec::new(), bytes.div_ceil(LINE_SIZE), 0);
        while missing > 0
            && let Some((from, to)) = self.find(line, 1)
        {
            let to = to.min(from + missing);
            self.take(from, to);
            runs.push((from * LINE_SIZE, to * LINE_SIZE));
            (missing, line) = (missing - (to - from), to);
        }
        runs
    }

    /// Gives back what no object was put into, of what was taken for those to come.
    pub fn retire(&mut self) {
        for gap in [self.small, self.medium] {
            let from = gap.cursor.next_multiple_of(LINE_SIZE);
            self.free(from, gap.limit.saturating_sub(from));
        }
        self.small.limit = self.small.cursor;
        self.medium.limit = self.medium.cursor;
    }

    /// Puts no more objects into what was taken last: their places cannot be used.
    pub fn abandon(&mut self, bytes: u64) {
        let gap = match bytes <= LINE_SIZE {
            true => &mut self.small,
            false => &mut self.medium,
        };
        gap.limit = gap.cursor;
    }

    /// Where the next objects go without another look for free lines: from and to.
    pub fn gaps(&self) -> [(u64, u64); 2] {
        [self.small, self.medium].map(|gap| (gap.cursor, gap.limit))
    }

    /// The end of the last line that is taken.
    pub fn end(&self) -> u64 {
        let last = self.taken.iter().rposition(|&w| w != 0);
        last.map_or(0, |i| {
            (64 * i as u64 + 64 - u64::from(self.taken[i].leading_zeros())) * LINE_SIZE
        })
    }

    /// Bytes of lines that are taken.
    pub fn used(&self) -> u64 {
        self.used * LINE_SIZE
    }

    /// Has the next objects share no cache line with those before; objects are at multiples of `align`.
    pub fn separate(&mut self, align: u64) {
        for gap in [&mut self.small, &mut self.medium] {
            gap.cursor = gap
                .cursor
                .next_multiple_of(CACHE_LINE.max(align))
                .min(gap.limit);
        }
    }

    /// Room for an object of `bytes`, a multiple of [`OBJECT_ALIGN`]: its offset; none if the file has to grow first. What was taken of free
    /// lines for it and others is left in [`Allocator::fresh`], for the caller to take out.
    #[inline]
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        debug_assert!(bytes.is_multiple_of(OBJECT_ALIGN) && bytes > 0);
        let small = bytes <= LINE_SIZE;
        let mut gap = if small { self.small } else { self.medium };
        if gap.cursor + bytes > gap.limit {
            let lines = bytes.div_ceil(LINE_SIZE);
            let (from, to) = self.find(gap.next, lines)?;
            // A hole is taken as a whole by small objects. Longer ones take their lines alone, but for chunks where they follow each other.
            let to = if small {
                to
            } else {
                to.min(from + lines.max(CHUNK))
            };
            self.take(from, to);
            self.fresh = Some((from * LINE_SIZE, to * LINE_SIZE));
            gap = Gap {
                cursor: from * LINE_SIZE,
                limit: to * LINE_SIZE,
                next: to,
            };
        }
        let at = gap.cursor;
        gap.cursor += bytes;
        match small {
            true => self.small = gap,
            false => self.medium = gap,
        }
        Some(at)
    }

    /// The next run of at least `lines` free lines.
    fn find(&self, from: u64, lines: u64) -> Option<(u64, u64)> {
        let mut line = from;
        while line < self.lines {
            let word = self.taken[(line / 64) as usize];
            if word == u64::MAX && line.is_multiple_of(64) {
                line += 64;
                continue;
            }
            if self.is_taken(line) {
                line += 1;
                continue;
            }
            let start = line;
            while line < self.lines && !self.is_taken(line) && line - start < MOST.max(lines) {
                line += 1;
            }
            if line - start >= lines {
                return Some((start, line));
            }
        }
        None
    }
}

/// Lines that longer objects take at a time.
const CHUNK: u64 = 128;
/// Most lines that are taken at a time for small objects.
const MOST: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_never_overlap_and_holes_are_used_again() {
        let mut a = Allocator::new(64 * LINE_SIZE);
        assert_eq!(a.allocate(8), None);
        a.grow(4096 * LINE_SIZE);
        let mut ends: std::collections::BTreeMap<u64, u64> = Default::default();
        let mut next = 8u64;
        while let Some(at) = a.allocate(next) {
            ends.insert(at, at + next);
            next = (next * 7 + 8) % 3000 / 8 * 8 + 8;
        }
        let spans: Vec<_> = ends.iter().collect();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "no overlap");
        assert!(ends.len() > 500);
        // Every third object lives on: what is freed is found again, and the living are left alone.
        let live: Vec<_> = ends.iter().step_by(3).map(|(&a, &e)| (a, e)).collect();
        a.clear_from(64 * LINE_SIZE);
        live.iter().for_each(|&(s, e)| a.take_object(s, e - s));
        let used = a.used();
        let again = a.allocate(256).unwrap();
        assert!(again >= 64 * LINE_SIZE && a.used() >= used);
        assert!(
            live.iter()
                .all(|&(s, e)| again + 256 <= s / LINE_SIZE * LINE_SIZE || again >= e)
        );
    }

    #[test]
    fn regions_begin_on_a_cache_line_of_their_own() {
        let mut a = Allocator::new(0);
        a.grow(64 * LINE_SIZE);
        let first = a.allocate(24).unwrap();
        a.separate(8);
        let second = a.allocate(24).unwrap();
        assert_ne!(first / CACHE_LINE, second / CACHE_LINE);
    }
}
