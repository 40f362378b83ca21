//! Uses of the memory of a Java virtual machine, by address.

use std::collections::BTreeMap;
use varve_trace::Use;

/// Ranges of memory that do not overlap: a later one replaces earlier ones in its addresses.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// By first address: end, and use.
    all: BTreeMap<u64, (u64, Use)>,
}

impl Ranges {
    /// A range is for this from now on.
    pub fn set(&mut self, start: u64, bytes: u64, what: Use) {
        let end = start.saturating_add(bytes);
        if start == end {
            return;
        }
        let before = self.all.range(..start).next_back();
        if let Some((&first, &(last, of))) = before.filter(|(_, (last, _))| *last > start) {
            self.all.insert(first, (start, of));
            if last > end {
                self.all.insert(end, (last, of));
            }
        }
        let inside: Vec<u64> = self.all.range(start..end).map(|(&at, _)| at).collect();
        for at in inside {
            if let Some((last, of)) = self.all.remove(&at).filter(|(last, _)| *last > end) {
                self.all.insert(end, (last, of));
            }
        }
        self.all.insert(start, (end, what));
    }

    /// The use of an address, if the machine reported it.
    pub fn at(&self, address: u64) -> Option<Use> {
        let (_, &(end, what)) = self.all.range(..=address).next_back()?;
        (address < end).then_some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a table of all addresses.
        #[test]
        fn what_comes_later_has_what_it_names(
            all in prop::collection::vec((0u64..100, 0u64..40, prop::sample::select(&Use::ALL[..])), 0..20)
        ) {
            let mut ranges = Ranges::default();
            let mut table = [None; 200];
            for (start, bytes, what) in all {
                ranges.set(start, bytes, what);
                table[start as usize..(start + bytes) as usize].fill(Some(what));
            }
            for (address, what) in table.into_iter().enumerate() {
                prop_assert_eq!(ranges.at(address as u64), what, "at {}", address);
            }
        }
    }
}
