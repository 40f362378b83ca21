//! Memory to which a program gave a color: its ranges, as they are now.

use super::address_map::PAGE;
use std::collections::{BTreeMap, HashMap};

/// A range of one color.
#[derive(Clone, Copy)]
struct ColoredRange {
    end: u64,
    site: u32,
}

/// See the module. Ranges do not overlap.
pub struct Hinted {
    /// The sites that stand for hot and for cold memory.
    sites: [u32; 2],
    ranges: BTreeMap<u64, ColoredRange>,
    /// Large objects that are alive: their bytes.
    large: BTreeMap<u64, u64>,
    /// The site of the color of a piece of a large object, by the piece's first byte, where it is not the object's.
    pieces: HashMap<u64, u32>,
}

impl Hinted {
    /// No memory has a color. `sites` stand for hot and for cold memory.
    pub fn new(sites: [u32; 2]) -> Hinted {
        Hinted {
            sites,
            ranges: BTreeMap::new(),
            large: BTreeMap::new(),
            pieces: HashMap::new(),
        }
    }

    /// The site that stands for hot memory, or for cold.
    pub fn site(&self, hot: bool) -> u32 {
        self.sites[usize::from(!hot)]
    }

    /// The site of the color of an address, if it has one.
    pub fn at(&self, address: u64) -> Option<u32> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some(range.site)
    }

    /// The site of the color of all of some bytes, if they have one.
    pub fn over(&self, start: u64, end: u64) -> Option<u32> {
        let (_, range) = self.ranges.range(..=start).next_back()?;
        (end <= range.end).then_some(range.site)
    }

    /// The site of the color of a whole page, if it has one.
    pub fn of_page(&self, page: u64) -> Option<u32> {
        self.over(page, page + PAGE)
    }

    /// A range has the color of a site, whatever it had before.
    pub fn color(&mut self, start: u64, end: u64, site: u32) {
        self.forget(start, end);
        if start < end {
            self.ranges.insert(start, ColoredRange { end, site });
        }
    }

    /// A range has no color any more.
    pub fn forget(&mut self, start: u64, end: u64) {
        if let Some((&first, &range)) = self.ranges.range(..start).next_back()
            && range.end > start
        {
            self.ranges.insert(
                first,
                ColoredRange {
                    end: start,
                    ..range
                },
            );
            if range.end > end {
                self.ranges.insert(end, range);
            }
        }
        let inside: Vec<u64> = self.ranges.range(start..end).map(|(&at, _)| at).collect();
        for at in inside {
            if let Some(range) = self.ranges.remove(&at)
                && range.end > end
            {
                self.ranges.insert(end, range);
            }
        }
    }

    /// An object is gone: a range that was its own, and no more, has no color any more.
    pub fn freed(&mut self, start: u64, bytes: u64) {
        self.large.remove(&start);
        if self
            .ranges
            .get(&start)
            .is_some_and(|range| range.end == start + bytes)
        {
            self.ranges.remove(&start);
        }
    }

    /// A large object is there.
    pub fn born(&mut self, start: u64, bytes: u64) {
        self.large.insert(start, bytes);
    }

    /// The large object that has all of a page.
    pub fn object_of(&self, page: u64) -> Option<u64> {
        let (&start, &bytes) = self.large.range(..=page).next_back()?;
        (page + PAGE <= start + bytes).then_some(start)
    }

    /// A piece of a large object has the color of a site.
    pub fn set_piece(&mut self, from: u64, site: u32) {
        self.pieces.insert(from, site);
    }

    /// Forgets the color of a piece, and returns its site.
    pub fn take_piece(&mut self, from: u64) -> Option<u32> {
        self.pieces.remove(&from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The last color that was given to an address is its own, until it is forgotten.
        #[test]
        fn an_address_has_its_last_color(steps in prop::collection::vec((0u64..40, 0u64..20, 0u32..3), 0..40)) {
            let (mut hinted, mut naive) = (Hinted::new([7, 8]), HashMap::new());
            for (start, bytes, step) in steps {
                let end = start + bytes;
                match step {
                    2 => hinted.forget(start, end),
                    site => hinted.color(start, end, site),
                }
                for at in start..end {
                    match step {
                        2 => naive.remove(&at),
                        site => naive.insert(at, site),
                    };
                }
                for at in 0..64 {
                    prop_assert_eq!(hinted.at(at), naive.get(&at).copied());
                }
            }
        }
    }

    #[test]
    fn a_page_has_a_color_if_all_of_it_has() {
        let mut hinted = Hinted::new([1, 2]);
        hinted.color(PAGE, 3 * PAGE - 1, hinted.site(false));
        assert_eq!(
            (hinted.of_page(PAGE), hinted.of_page(2 * PAGE)),
            (Some(2), None)
        );
        hinted.freed(PAGE, PAGE);
        assert_eq!(
            hinted.of_page(PAGE),
            Some(2),
            "the range is not this object's"
        );
        hinted.freed(PAGE, 2 * PAGE - 1);
        assert_eq!(hinted.at(PAGE), None);
    }
}
