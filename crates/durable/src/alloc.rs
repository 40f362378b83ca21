//! Room for new objects: bumping through runs of free lines. Nothing of this is in the file; which lines are free is what recovery finds by
//! following references from the roots.

use crate::layout::CACHE_LINE;
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
        self.taken.resize(self.lines.div_ceil(64) as usize, 0);
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
    }

    fn is_taken(&self, line: u64) -> bool {
        self.taken[(line / 64) as usize] >> (line % 64) & 1 != 0
    }

    /// Bytes of lines that are taken.
    pub fn used(&self) -> u64 {
        self.used * LINE_SIZE
    }

    /// Has the next objects share no cache line with those before.
    pub fn separate(&mut self) {
        for gap in [&mut self.small, &mut self.medium] {
            gap.cursor = gap.cursor.next_multiple_of(CACHE_LINE).min(gap.limit);
        }
    }

    /// Room for an object of `bytes`, a multiple of [`OBJECT_ALIGN`]: its offset; none if the file has to grow first.
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
        a.separate();
        let second = a.allocate(24).unwrap();
        assert_ne!(first / CACHE_LINE, second / CACHE_LINE);
    }
}
