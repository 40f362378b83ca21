//! Wear levelling: a block of media that is written again and again is moved, and writes wait for that.
//!
//! Measured from outside: of 256 B that are overwritten for ever, every 14,000th write or so takes 50 us instead of a fraction
//! of one. That stays so while the region that is overwritten is no larger than 64 KiB, and is over beyond (Wang et al.,
//! Characterizing and modeling non-volatile memory systems, MICRO 2020, section on LENS; the single latencies are in
//! their repository, TheNetAdmin/VANS, tests/precision/overwrite).

use super::super::time::Ps;

/// log2 of the bytes of a block.
const BLOCK_SHIFT: u32 = 16;

/// Writes of media lines after which a block is moved: 896 for each of its sixteen pages of 4 KiB, as VANS has it
/// (`wear_leveling_threshold`). The first stalls that were measured are 14,130 to 14,401 writes apart.
const WRITES: u32 = 14_336;

/// How long writes wait for a move, ps: 256 steps of 270 clocks of DDR4-2666 (VANS, `migration_latency`). Those that were
/// measured took 110,000 to 119,000 cycles of a processor at 2.2 GHz, 50 to 54 us.
const MOVE: Ps = 256 * 270 * 750;

/// Which block a DIMM might have to move.
///
/// How the DIMM finds it is not published. Here it is one that gets more writes than all others together, and by how many
/// more is counted: of a larger region no block does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wear {
    block: u32,
    more: u32,
    /// Writes wait until then.
    until: Ps,
}

impl Wear {
    /// Media lines of `1 << line_shift` bytes that a move reads and writes.
    pub fn lines(line_shift: u32) -> u64 {
        1 << (BLOCK_SHIFT - line_shift)
    }

    /// A media line is written at `now`; does that begin a move?
    #[inline(always)]
    pub fn written(&mut self, now: Ps, line: u32, line_shift: u32) -> bool {
        let block = line >> (BLOCK_SHIFT - line_shift);
        if block == self.block {
            self.more += 1;
            return self.more == WRITES && self.begin(now);
        }
        match self.more.checked_sub(1) {
            Some(less) => self.more = less,
            None => (self.block, self.more) = (block, 1),
        }
        false
    }

    #[cold]
    fn begin(&mut self, now: Ps) -> bool {
        self.more = 0;
        self.until = now + MOVE;
        true
    }

    /// How long a write at `now` waits.
    #[inline(always)]
    pub fn wait(&self, now: Ps) -> Ps {
        self.until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In whatever order a region is written, one no larger than a block is moved once per fixed number of writes,
        /// and one of several blocks with nearly equal writes never.
        #[test]
        fn only_small_hot_regions_are_moved(lines in 1u32..2048, stride in 1u32..97, base in 0u32..1000) {
            let mut wear = Wear::default();
            let blocks = lines.div_ceil(256);
            // No block of several has more than half of the lines.
            let lines = if blocks > 1 { blocks * 256 } else { lines };
            let writes = 4 * WRITES + 100;
            let moves = (0..writes)
                .filter(|i| wear.written(u64::from(*i), base * 256 + i * stride % lines, 8))
                .count();
            prop_assert_eq!(moves, if blocks == 1 { 4 } else { 0 });
        }
    }
}
