//! The program's own addresses in two tiers. Each page has a place in both, and each line of 64 bytes is used in one of them: plans
//! differ in the memory of a line, and in nothing else.

use super::address_map::{AddressMap, MappedByte, PAGE};
use std::collections::HashMap;

/// Where slow memory begins.
pub const SLOW_BASE: u64 = 1 << 47;
/// Bytes of a stretch: addresses keep their place in it.
const STRETCH: u64 = 1 << 30;
/// Stretches of a tier. A program that touches more has several in one place.
const STRETCHES: u64 = SLOW_BASE / STRETCH;

/// Is an address of a layout by site in fast memory?
pub fn is_fast(address: u64) -> bool {
    address < SLOW_BASE
}

/// The place of each stretch of the program's own addresses, in order of first use.
#[derive(Default)]
pub struct TierPlaces {
    stretches: HashMap<u64, u64>,
}

impl TierPlaces {
    /// An address in a tier.
    pub fn at(&mut self, own: u64, fast: bool) -> u64 {
        let next = self.stretches.len() as u64 + 1;
        let number = *self.stretches.entry(own / STRETCH).or_insert(next);
        in_tier(number % STRETCHES * STRETCH + own % STRETCH, fast)
    }

    /// The end of the stretch of an address.
    pub fn end(own: u64) -> u64 {
        own / STRETCH * STRETCH + STRETCH
    }
}

/// A place in a tier, as one in either.
fn in_tier(place: u64, fast: bool) -> u64 {
    place % SLOW_BASE + if fast { 0 } else { SLOW_BASE }
}

/// Where a byte of the program is, of whose page `mapped` is known: in fast memory, if something on its line is there.
pub fn place(map: &AddressMap, own: u64, mapped: MappedByte) -> MappedByte {
    let fast = map
        .line_has(own, is_fast)
        .unwrap_or_else(|| is_fast(mapped.address));
    let page = in_tier(mapped.address / PAGE * PAGE, fast);
    MappedByte {
        address: page + own % PAGE,
        ..mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Bytes of different addresses, or tiers, have different places; each keeps its place in its page.
        #[test]
        fn places_are_apart(all in prop::collection::vec((0u64..1 << 48, any::<bool>()), 1..200)) {
            let mut tiers = TierPlaces::default();
            let mut places = HashMap::new();
            for (own, fast) in all {
                let at = tiers.at(own, fast);
                prop_assert_eq!(is_fast(at), fast);
                prop_assert_eq!(at % PAGE, own % PAGE);
                prop_assert_eq!(*places.entry(at).or_insert((own, fast)), (own, fast));
                prop_assert_eq!(at, tiers.at(own, fast));
            }
        }
    }
}
