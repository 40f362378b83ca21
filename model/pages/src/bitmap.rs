//! A set of used slots that finds the lowest free one in a handful of steps.
//!
//! A tree of 64-bit words: a bit of level 0 is a slot, a bit of level `n + 1` is a word of level `n` that is
//! all ones. Everything starts as zeros, so that a huge set costs nothing until it is used.

/// Slots `0..len`, each used or free; free at first.
#[derive(Clone, Debug)]
pub struct Bitmap {
    levels: Vec<Vec<u64>>,
    len: usize,
}

impl Bitmap {
    /// `len` free slots.
    pub fn new(len: usize) -> Bitmap {
        let mut levels = Vec::new();
        let mut bits = len;
        loop {
            let words = bits.div_ceil(64).max(1);
            let mut level = vec![0u64; words];
            // Bits beyond the end count as used, so that no search ever finds them.
            let spare = words * 64 - bits;
            if spare == 64 {
                level[words - 1] = !0;
            } else if spare > 0 {
                level[words - 1] = !0 << (64 - spare);
            }
            levels.push(level);
            if words == 1 {
                return Bitmap { levels, len };
            }
            bits = words;
        }
    }

    /// Is `slot` used?
    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        debug_assert!(slot < self.len);
        self.levels[0][slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Marks `slot` used.
    #[inline]
    pub fn insert(&mut self, slot: usize) {
        debug_assert!(slot < self.len);
        let mut at = slot;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word |= 1 << (at % 64);
            if *word != !0 {
                return;
            }
            at /= 64;
        }
    }

    /// Marks `slot` free.
    #[inline]
    pub fn remove(&mut self, slot: usize) {
        debug_assert!(slot < self.len);
        let mut at = slot;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_full = *word == !0;
            *word &= !(1 << (at % 64));
            if !was_full {
                return;
            }
            at /= 64;
        }
    }

    /// The lowest free slot that is `from` or higher.
    #[inline]
    pub fn first_free(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let index = at / 64;
            let free = level.get(index).map_or(0, |word| !word & (!0 << (at % 64)));
            if free != 0 {
                let mut found = index * 64 + free.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    found = found * 64 + (!below[found]).trailing_zeros() as usize;
                }
                return Some(found);
            }
            at = index + 1;
        }
        None
    }

    /// Limit of the memory that it may use, bytes.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| 8 * level.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Bitmap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_array_of_flags(
            len in prop_oneof![1usize..200, 4000usize..5000, Just(64), Just(4096)],
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400),
            runs in prop::collection::vec((any::<prop::sample::Index>(), 0usize..5000), 0..4),
        ) {
            let mut fast = Bitmap::new(len);
            let mut slow = vec![false; len];
            for (start, run) in runs {
                let start = start.index(len);
                let end = (start + run).min(len);
                (start..end).for_each(|slot| fast.insert(slot));
                slow[start..end].fill(true);
            }
            for (used, slot) in steps {
                let slot = slot.index(len);
                if used { fast.insert(slot) } else { fast.remove(slot) }
                slow[slot] = used;
                prop_assert_eq!(fast.contains(slot), used);
                for from in [0, slot, slot + 1] {
                    let expected = (from..len).find(|&s| !slow[s]);
                    prop_assert_eq!(fast.first_free(from), expected);
                }
            }
        }
    }

    #[test]
    fn an_empty_set_has_no_free_slot() {
        assert_eq!(Bitmap::new(0).first_free(0), None);
    }
}
