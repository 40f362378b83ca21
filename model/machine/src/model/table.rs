//! Address translation: the page table of a program and the TLBs of a core.

use super::cache::{CacheArray, Found};
use super::ring::Ring;

/// Virtual to frame, two levels: stretches of 1 GiB, and a leaf of pages for each that is touched.
pub struct PageTable {
    /// Which leaf a stretch has; the first leaf, which stays empty, when nothing of it is mapped.
    roots: Box<[u32; ROOTS]>,
    /// Frame + 1 of every page of every leaf, one leaf after the other.
    leaves: Vec<u32>,
    /// log2 of the pages of a leaf.
    leaf_shift: u32,
    mapped: u64,
}

const STRETCH_SHIFT: u32 = 30;
/// Programs live in 48 bits of virtual addresses.
pub const ADDRESS_BITS: u32 = 48;
const ROOTS: usize = 1 << (ADDRESS_BITS - STRETCH_SHIFT);

impl PageTable {
    /// An empty table for pages of `page_bytes`, a power of two of at most 1 GiB.
    pub fn new(page_bytes: u64) -> PageTable {
        let leaf_shift = STRETCH_SHIFT - page_bytes.ilog2();
        let roots: Box<[u32]> = vec![0; ROOTS].into();
        PageTable {
            roots: roots.try_into().expect("as long as it was made"),
            leaves: vec![0; 1 << leaf_shift],
            leaf_shift,
            mapped: 0,
        }
    }

    /// The stretch of a page, and the place of its entry among the leaves.
    #[inline(always)]
    fn place(&self, vpn: u64) -> (usize, usize) {
        let stretch = (vpn >> self.leaf_shift) as usize % ROOTS;
        let page = vpn as usize & ((1 << self.leaf_shift) - 1);
        (
            stretch,
            (self.roots[stretch] as usize) << self.leaf_shift | page,
        )
    }

    /// The frame of a page, if it is mapped.
    #[inline(always)]
    pub fn frame(&self, vpn: u64) -> Option<u32> {
        self.leaves[self.place(vpn).1].checked_sub(1)
    }

    /// Maps a page to a frame (or to another one).
    pub fn map(&mut self, vpn: u64, frame: u32) {
        let (stretch, _) = self.place(vpn);
        if self.roots[stretch] == 0 {
            self.roots[stretch] = (self.leaves.len() >> self.leaf_shift) as u32;
            self.leaves
                .resize(self.leaves.len() + (1 << self.leaf_shift), 0);
        }
        let (_, at) = self.place(vpn);
        let entry = &mut self.leaves[at];
        self.mapped += (*entry == 0) as u64;
        *entry = frame + 1;
    }

    /// Unmaps a page; returns its frame if it had one.
    pub fn unmap(&mut self, vpn: u64) -> Option<u32> {
        let (_, at) = self.place(vpn);
        let frame = std::mem::take(&mut self.leaves[at]).checked_sub(1)?;
        self.mapped -= 1;
        Some(frame)
    }

    /// Pages mapped now.
    #[cfg(test)]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Every mapped page and its frame.
    pub fn pages(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let pages = 1 << self.leaf_shift;
        self.roots
            .iter()
            .enumerate()
            .filter(|(_, leaf)| **leaf != 0)
            .flat_map(move |(stretch, leaf)| {
                self.leaves[*leaf as usize * pages..][..pages]
                    .iter()
                    .enumerate()
                    .filter(|(_, e)| **e != 0)
                    .map(move |(page, e)| ((stretch * pages + page) as u64, e - 1))
            })
    }
}

/// The TLBs of one core: a first level that holds frames, and a second level that knows which pages it has (their frames
/// stand in the page table). Both are set-associative with exact LRU.
pub struct TlbHierarchy {
    first: First,
    second: CacheArray,
    /// The bit of a page's number that parts of one page differ in; 0 if pages have no parts.
    part: u64,
}

impl TlbHierarchy {
    /// The TLBs of a core of a machine. Pages whose numbers differ in the bit `part` alone are parts of one, and have one entry.
    pub fn new(m: &crate::describe::Tlb, part: u64) -> TlbHierarchy {
        let ways = m.l2_ways.clamp(1, m.l2_entries.max(1));
        TlbHierarchy {
            first: First::new(m.l1_entries, m.l1_ways),
            second: CacheArray::with_sets((m.l2_entries / ways).max(1) as u64, ways),
            part,
        }
    }

    /// Looks a page up in the first level, and makes it the most recent of its set.
    #[inline(always)]
    pub fn first(&mut self, vpn: u64) -> Option<u32> {
        let newest = self.first.newest.get(vpn as usize);
        if newest.page == vpn + 1 {
            return Some(newest.frame);
        }
        self.first.older(vpn)
    }

    /// Is a page the most recent one of its set in the first level?
    #[inline(always)]
    pub fn is_newest(&self, vpn: u64) -> bool {
        self.first.newest.get(vpn as usize).page == vpn + 1
    }

    /// Brings a page that the first level has not into it.
    #[inline(always)]
    pub fn remember(&mut self, vpn: u64, frame: u32) {
        self.first.push(vpn, frame);
    }

    /// Looks a page up in the second level, puts it in where it was missing, and makes it the most recent. Was it
    /// there?
    #[inline(always)]
    pub fn second(&mut self, vpn: u64) -> bool {
        self.second.access::<16>(vpn & !self.part, false) == Found::Hit
    }

    /// The other part of the page; none if pages have no parts.
    #[inline(always)]
    pub fn other_part(&self, vpn: u64) -> Option<u64> {
        (self.part != 0).then_some(vpn ^ self.part)
    }

    /// Where the first level has the page's other part: it has this one from now on.
    pub fn take_part(&mut self, vpn: u64, frame: u32) -> bool {
        let Some(other) = self.other_part(vpn) else {
            return false;
        };
        let found = self.first(other).is_some();
        if found {
            self.first.rename_newest(vpn, frame);
        }
        found
    }

    /// Forgets a page (a shoot-down).
    pub fn forget(&mut self, vpn: u64) {
        self.first.forget(vpn);
        if let Some(other) = self.other_part(vpn) {
            self.first.forget(other);
        }
        self.second.remove(vpn & !self.part);
    }
}

/// The first level. The newest entry of each set stands by itself: nearly every look-up ends there, and changes nothing.
struct First {
    newest: Ring<Newest>,
    /// The other ways of each set: page + 1 (0 when empty) and frame. They stand in a circle, newest first, so that one that
    /// comes in takes the place of the one that leaves.
    older: Vec<(u64, u32)>,
    /// Ways of a set less 1.
    others: usize,
}

/// The newest entry of a set.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    /// Page + 1, 0 when empty.
    page: u64,
    frame: u32,
    /// Where the circle of the others begins.
    begin: u32,
}

impl First {
    fn new(entries: u32, ways: u32) -> First {
        let ways = ways.clamp(1, entries.max(1));
        let sets = (entries / ways).max(1) as usize;
        let others = ways as usize - 1;
        First {
            newest: Ring::new(sets),
            older: vec![(0, 0); sets.next_power_of_two() * others],
            others,
        }
    }

    #[inline(always)]
    fn set(&mut self, vpn: u64) -> &mut [(u64, u32)] {
        let set = self.newest.place(vpn as usize);
        &mut self.older[set * self.others..][..self.others]
    }

    /// Looks a page up that is not the newest of its set, and makes it that.
    #[inline(always)]
    fn older(&mut self, vpn: u64) -> Option<u32> {
        let others = self.set(vpn);
        let found = others.iter().position(|(page, _)| *page == vpn + 1)?;
        Some(self.come_first(vpn, found))
    }

    /// Makes a page of the others the newest of its set.
    #[inline(never)]
    fn come_first(&mut self, vpn: u64, found: usize) -> u32 {
        let mut newest = self.newest.get(vpn as usize);
        let others = self.set(vpn);
        // Those that were newer take the place of the next older one each.
        let mut moved = (newest.page, newest.frame);
        let mut place = newest.begin as usize;
        loop {
            std::mem::swap(&mut others[place], &mut moved);
            if place == found {
                break;
            }
            place = if place + 1 < others.len() {
                place + 1
            } else {
                0
            };
        }
        (newest.page, newest.frame) = moved;
        self.newest.set(vpn as usize, newest);
        moved.1
    }

    /// Makes a page the newest of its set; the least recent one leaves.
    #[inline(always)]
    fn push(&mut self, vpn: u64, frame: u32) {
        let set = self.newest.place(vpn as usize);
        let mut newest = self.newest.get(set);
        if self.others > 0 {
            let last = self.others as u32 - 1;
            newest.begin = newest.begin.checked_sub(1).unwrap_or(last);
            let place = set * self.others + newest.begin as usize;
            self.older[place] = (newest.page, newest.frame);
        }
        (newest.page, newest.frame) = (vpn + 1, frame);
        self.newest.set(set, newest);
    }

    /// The newest entry of a set is for a page of the same set.
    fn rename_newest(&mut self, vpn: u64, frame: u32) {
        let newest = self.newest.at(vpn as usize);
        (newest.page, newest.frame) = (vpn + 1, frame);
    }

    /// An entry that is forgotten stays in its place, empty, until it is the least recent.
    fn forget(&mut self, vpn: u64) {
        let newest = self.newest.at(vpn as usize);
        if newest.page == vpn + 1 {
            (newest.page, newest.frame) = (0, 0);
        }
        for entry in self.set(vpn) {
            if entry.0 == vpn + 1 {
                *entry = (0, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn small() -> crate::describe::Tlb {
        let mut tlb = crate::Machine::load("optane-6230").unwrap().tlb;
        (tlb.l1_entries, tlb.l1_ways, tlb.l2_entries, tlb.l2_ways) = (8, 2, 16, 4);
        tlb
    }

    /// As many pages as a set has ways stay, whatever their distance; one more pushes the least recent out.
    #[test]
    fn pages_a_set_apart_share_its_ways() {
        let mut tlb = TlbHierarchy::new(&small(), 0);
        let pages = [3, 7, 11];
        tlb.remember(pages[0], 10);
        tlb.remember(pages[1], 11);
        assert_eq!(pages.map(|p| tlb.first(p)), [Some(10), Some(11), None]);
        assert_eq!(tlb.first(pages[0]), Some(10));
        tlb.remember(pages[2], 12);
        assert_eq!(pages.map(|p| tlb.first(p)), [Some(10), None, Some(12)]);
    }

    proptest! {
        #[test]
        fn a_page_table_is_a_map(ops in prop::collection::vec((0u64..1 << 36, 0u32..1000, any::<bool>()), 1..200)) {
            let mut table = PageTable::new(4096);
            let mut map = HashMap::new();
            for (vpn, frame, unmap) in ops {
                // Few distinct pages, far apart.
                let vpn = (vpn & 0xf) << 32 | (vpn & 3);
                if unmap {
                    prop_assert_eq!(table.unmap(vpn), map.remove(&vpn));
                } else {
                    table.map(vpn, frame);
                    map.insert(vpn, frame);
                }
                prop_assert_eq!(table.frame(vpn), map.get(&vpn).copied());
                prop_assert_eq!(table.mapped(), map.len() as u64);
            }
            let mut all: Vec<_> = table.pages().collect();
            let mut expected: Vec<_> = map.into_iter().collect();
            all.sort();
            expected.sort();
            prop_assert_eq!(all, expected);
        }

        /// Against one list for each set, most recent first, in which a forgotten entry leaves a hole.
        #[test]
        fn the_first_level_has_the_most_recent_pages_of_each_set(
            ways in 1u32..6,
            ops in prop::collection::vec((0u64..24, 0u32..9, 0u8..4), 1..300),
        ) {
            let mut first = First::new(2 * ways, ways);
            let mut slow = vec![vec![None; ways as usize]; 2];
            for (vpn, frame, what) in ops {
                let set = &mut slow[vpn as usize % 2];
                let place = set.iter().position(|e: &Option<(u64, u32)>| e.is_some_and(|e| e.0 == vpn));
                if what == 0 {
                    first.forget(vpn);
                    place.into_iter().for_each(|i| set[i] = None);
                    continue;
                }
                let newest = first.newest.get(vpn as usize);
                let found = if newest.page == vpn + 1 { Some(newest.frame) } else { first.older(vpn) };
                let entry = place.map(|i| set.remove(i));
                prop_assert_eq!(found, entry.flatten().map(|e| e.1));
                if found.is_none() {
                    first.push(vpn, frame);
                    set.pop();
                }
                set.insert(0, entry.unwrap_or(Some((vpn, frame))));
            }
        }

        /// The first level may have only valid entries, and none that was forgotten.
        #[test]
        fn a_tlb_never_lies(ops in prop::collection::vec((0u64..64, 0u32..9, 0u8..4), 1..300)) {
            let mut tlb = TlbHierarchy::new(&small(), 0);
            let mut truth = HashMap::new();
            for (vpn, frame, what) in ops {
                if what == 0 {
                    tlb.forget(vpn);
                    truth.remove(&vpn);
                    prop_assert_eq!(tlb.first(vpn), None);
                    prop_assert!(!tlb.second(vpn));
                } else if tlb.first(vpn).is_none() && !tlb.second(vpn) {
                    truth.insert(vpn, frame);
                    tlb.remember(vpn, frame);
                    prop_assert!(tlb.second(vpn));
                }
                if let Some(known) = tlb.first(vpn) {
                    prop_assert_eq!(Some(&known), truth.get(&vpn));
                }
            }
        }
    }
}
