//! Line marks: one byte per 256 bytes of heap, from which a mark-region space finds its holes.
//!
//! A line is free when its byte is 0. Small objects (up to a line) mark only the line in which they begin, so that
//! marking stays cheap; in return the first free line after a used one is never handed out, because such an object
//! may reach into it.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::layout::*;

/// A free line.
const FREE: u8 = 0;
/// A line that an allocator took since the last full collection. The two other values are the two marks.
const TAKEN: u8 = 3;

/// The byte that means "live" while `mark` is the live mark of objects.
#[inline]
pub(crate) fn live_value(mark: u8) -> u8 {
    match mark {
        MARK_A => 1,
        _ => 2,
    }
}

/// The state of a block after sweeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Lines that hold live objects, as marked.
    pub live: u8,
    /// Lines that can be handed out.
    pub available: u8,
}

/// The marks of all lines of the address range.
pub(crate) struct Lines {
    bytes: Box<[AtomicU8]>,
}

impl Lines {
    /// All lines of `extent` bytes, free.
    pub fn new(extent: u64) -> Lines {
        Lines {
            bytes: zeroed_table((extent / LINE_SIZE) as usize),
        }
    }

    /// The marks as tracing keeps them close: see [`mark`].
    #[inline]
    pub fn bytes(&self) -> &[AtomicU8] {
        &self.bytes
    }

    /// The next hole of `block` at or after line `from`, as lines of the block. It is taken.
    pub fn take_hole(&self, block: u32, from: usize) -> Option<Range<usize>> {
        let lines = self.of(block);
        let hole = next_hole(lines, from)?;
        for line in &lines[hole.clone()] {
            line.store(TAKEN, Relaxed);
        }
        Some(hole)
    }

    /// Takes all lines of a free block.
    #[inline]
    pub fn take_block(&self, block: u32) {
        for line in self.of(block) {
            line.store(TAKEN, Relaxed);
        }
    }

    /// Frees all lines of a block but those marked `live`.
    pub fn sweep(&self, block: u32, live: u8) -> Swept {
        let lines = self.of(block);
        let mut swept = Swept {
            live: 0,
            available: 0,
        };
        let mut before = FREE;
        for line in lines {
            let value = if line.load(Relaxed) == live {
                live
            } else {
                FREE
            };
            line.store(value, Relaxed);
            swept.live += u8::from(value != FREE);
            swept.available += u8::from(value == FREE && before == FREE);
            before = value;
        }
        swept
    }

    /// Calls `f` with every hole of a block.
    pub fn holes(&self, block: u32, mut f: impl FnMut(Range<usize>)) {
        let mut from = 0;
        while let Some(hole) = next_hole(self.of(block), from) {
            from = hole.end;
            f(hole);
        }
    }

    /// Whether the line at `offset` is in use.
    #[inline]
    pub fn in_use(&self, offset: u64) -> bool {
        self.bytes[(offset / LINE_SIZE) as usize].load(Relaxed) != FREE
    }

    fn of(&self, block: u32) -> &[AtomicU8] {
        &self.bytes[block as usize * LINES_PER_BLOCK..][..LINES_PER_BLOCK]
    }
}

/// Marks the lines of a live object.
#[inline(always)]
pub(crate) fn mark(lines: &[AtomicU8], offset: u64, bytes: u64, live: u8) {
    let first = (offset / LINE_SIZE) as usize;
    lines[first].store(live, Relaxed);
    if bytes > LINE_SIZE {
        let last = ((offset + bytes - 1) / LINE_SIZE) as usize;
        for line in &lines[first + 1..=last] {
            line.store(live, Relaxed);
        }
    }
}

/// Free lines at or after `from` whose predecessor is free too.
fn next_hole(lines: &[AtomicU8], from: usize) -> Option<Range<usize>> {
    let free = |line: usize| lines[line].load(Relaxed) == FREE;
    let mut start = from;
    while start < lines.len() {
        if free(start) && (start == 0 || free(start - 1)) {
            let end = (start..lines.len())
                .find(|&line| !free(line))
                .unwrap_or(lines.len());
            return Some(start..end);
        }
        start += 1;
    }
    None
}

/// A table of zero bytes that takes memory only where it is touched.
pub(crate) fn zeroed_table(len: usize) -> Box<[AtomicU8]> {
    let bytes = vec![0u8; len].into_boxed_slice();
    // SAFETY: an AtomicU8 has the size, the alignment and the valid values of a u8.
    unsafe { Box::from_raw(Box::into_raw(bytes) as *mut [AtomicU8]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One block whose used lines are the given ones.
    fn block_with(used: &[usize]) -> Lines {
        let lines = Lines::new(BLOCK_SIZE);
        for &line in used {
            mark(&lines.bytes, line as u64 * LINE_SIZE, 8, live_value(MARK_A));
        }
        lines
    }

    fn holes(lines: &Lines) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        lines.holes(0, |hole| all.push((hole.start, hole.end)));
        all
    }

    #[test]
    fn the_line_after_a_used_one_is_kept() {
        assert_eq!(holes(&block_with(&[])), [(0, 128)]);
        assert_eq!(holes(&block_with(&[0, 5, 7, 127])), [(2, 5), (9, 127)]);
        assert_eq!(holes(&block_with(&[126])), [(0, 126)]);
    }

    #[test]
    fn taken_holes_are_not_found_again_and_are_free_after_a_sweep_without_marks() {
        let lines = block_with(&[3]);
        assert_eq!(lines.take_hole(0, 0), Some(0..3));
        assert_eq!(lines.take_hole(0, 3), Some(5..128));
        assert_eq!(lines.take_hole(0, 0), None);
        assert_eq!(
            lines.sweep(0, live_value(MARK_A)),
            Swept {
                live: 1,
                available: 126
            }
        );
        assert_eq!(holes(&lines), [(0, 3), (5, 128)]);
        assert_eq!(
            lines.sweep(0, live_value(MARK_B)),
            Swept {
                live: 0,
                available: 128
            }
        );
    }

    #[test]
    fn objects_longer_than_a_line_mark_all_their_lines() {
        let lines = Lines::new(BLOCK_SIZE);
        mark(
            &lines.bytes,
            2 * LINE_SIZE + 200,
            3 * LINE_SIZE,
            live_value(MARK_B),
        );
        assert_eq!(holes(&lines), [(0, 2), (7, 128)]);
        let lines = Lines::new(BLOCK_SIZE);
        mark(
            &lines.bytes,
            2 * LINE_SIZE + 200,
            LINE_SIZE,
            live_value(MARK_B),
        );
        assert_eq!(
            holes(&lines),
            [(0, 2), (4, 128)],
            "the implicit line covers the rest"
        );
    }
}
