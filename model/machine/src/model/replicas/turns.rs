//! Order of turns: of some instances, the one whose next request is due first.

use crate::model::ring::Ring;
use crate::model::time::Ps;

/// The time at which each of a few is due, as a tournament: the earlier of two meets the earlier of two others.
///
/// ```text
///           1
///       2       3         each place has the earlier of the two below it
///     4   5   6   7       the lowest row has them all
/// ```
pub struct Turns {
    /// The time above, the number below, so that the earlier of two says both; those of one time take turns by number.
    places: Ring<u64>,
    /// Copy of the top entry, so that it is still in a register when it is asked for.
    first: u64,
    /// Bits of a number.
    bits: u32,
}

/// Later than any time.
const NEVER: u64 = u64::MAX;

impl Turns {
    /// For `count` instances, none of which is due.
    pub fn new(count: usize) -> Turns {
        let lowest = count.next_power_of_two();
        let mut places = Ring::new(2 * lowest);
        for place in 0..2 * lowest {
            places.set(place, NEVER);
        }
        Turns {
            places,
            first: NEVER,
            bits: lowest.ilog2(),
        }
    }

    /// One is due at a time, below 2^64 by the number of all.
    #[inline(always)]
    pub fn set(&mut self, number: usize, at: Ps) {
        self.put(number, at << self.bits | number as u64);
    }

    /// One is not due any more.
    #[inline(always)]
    pub fn rest(&mut self, number: usize) {
        self.put(number, NEVER);
    }

    #[inline(always)]
    fn put(&mut self, number: usize, key: u64) {
        let (mut place, mut first) = (number | 1 << self.bits, key);
        self.places.set(place, first);
        while place > 1 {
            first = first.min(self.places.get(place ^ 1));
            place /= 2;
            self.places.set(place, first);
        }
        self.first = first;
    }

    /// The instance that is due first, if that is no later than `until`, and its time.
    #[inline(always)]
    pub fn first(&self, until: Ps) -> Option<(usize, Ps)> {
        let first = self.first;
        let at = first >> self.bits;
        let number = first as usize & ((1 << self.bits) - 1);
        (first != NEVER && at <= until).then_some((number, at))
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use proptest::prelude::*;

    proptest! {
        /// Against a linear scan.
        #[test]
        fn the_first_is_the_first(
            count in 1usize..70,
            changes in prop::collection::vec((0usize..70, 0u64..50, any::<bool>()), 1..200),
            until in 0u64..50,
        ) {
            let (mut turns, mut slow) = (Turns::new(count), vec![None; count]);
            for (number, at, rests) in changes {
                let number = number % count;
                if rests {
                    turns.rest(number);
                } else {
                    turns.set(number, at);
                }
                slow[number] = (!rests).then_some(at);
                let due = slow.iter().enumerate().filter_map(|(i, at)| at.map(|at| (at, i)));
                let expected = due.min().filter(|d| d.0 <= until).map(|(at, i)| (i, at));
                prop_assert_eq!(turns.first(until), expected);
            }
        }
    }
}
