//! Memory of one node to measure in, and chains of lines through it.

use crate::mapped::Mapped;
use crate::nodes::Policy;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Words of a line.
pub(crate) const STEP: usize = LINE / 8;

/// Words of memory on one node.
pub(crate) struct Memory {
    mapped: Mapped,
    pub bytes: usize,
}

impl Memory {
    /// Maps and touches `bytes`, a multiple of 2 MiB, bound to the node when there are several.
    pub fn on_node(bytes: usize, node: u32, bind: bool) -> Option<Memory> {
        let mapped = Mapped::new(bytes).ok()?;
        // SAFETY: advice about a new mapping of ours.
        unsafe { libc::madvise(mapped.as_ptr(), bytes, libc::MADV_HUGEPAGE) };
        if bind {
            let bound = Policy::new(libc::MPOL_BIND, &[node]);
            bound.bind(mapped.start(), bytes, 0).ok()?;
        }
        let mut memory = Memory { mapped, bytes };
        memory.words().fill(1);
        Some(memory)
    }

    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: the mapping holds `bytes` bytes, page-aligned, and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.as_ptr(), self.bytes / 8) }
    }
}

/// The next number of xorshift64 (Marsaglia, "Xorshift RNGs", 2003): any order will do that no prefetcher guesses.
/// `state` is the number before and never 0.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Links the first `lines` lines into one cycle in random order (Sattolo's algorithm): the first word of each
/// line holds the index of the first word of the next.
pub(crate) fn link_randomly(words: &mut [u64], lines: usize) {
    for line in 0..lines {
        words[line * STEP] = (line * STEP) as u64;
    }
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    for line in (1..lines).rev() {
        let other = (next_random(&mut random) % line as u64) as usize;
        words.swap(line * STEP, other * STEP);
    }
}

/// Links the first `lines` lines into one cycle, each to the one behind it.
pub(crate) fn link_in_order(words: &mut [u64], lines: usize) {
    for line in 0..lines {
        words[line * STEP] = ((line + 1) % lines * STEP) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_visits_every_line_once() {
        for link in [link_randomly, link_in_order] {
            let lines = 1000;
            let mut words = vec![0u64; lines * STEP];
            link(&mut words, lines);
            let mut at = 0;
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..lines {
                assert!(seen.insert(at), "line {at} twice");
                at = words[at] as usize;
            }
            assert_eq!(at, 0);
        }
    }
}
