//! Blocks of the file that go back to its file system while the region is in use.
//!
//! After a collection, free pages beyond what is used until the next one become holes of the file: those at its end first, as objects go to the first
//! room that there is. A hole is filled with blocks before anything is stored there, so that a store never meets a medium that is full.
//!
//! ```text
//! 1  marks say that the pages are empty, fenced
//! 2  what made them free is in its place in the medium, and nothing of them in a journal
//! 3  the system takes their blocks
//! ```
//!
//! A crash after any of these leaves pages in which nothing is, as their marks say.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::*;
use crate::pages::{Mark, is_marked};
use std::collections::BTreeMap;

/// Fewest bytes that are worth a hole.
const LEAST_HOLE: u64 = 32 << 10;
/// Bytes of a hole that are filled at a time, if it has as many.
const FILLED: u64 = 256 << 10;
/// Fewest bytes of all holes together that are worth making any: the medium is waited for.
const LEAST_HOLES: u64 = 4 << 20;

/// Where the file has no blocks.
#[derive(Default)]
pub(crate) struct Holes {
    /// From and to, in bytes of whole pages.
    ranges: BTreeMap<u64, u64>,
    /// Garbage was collected: there may be pages to release.
    pub due: bool,
    /// The file system makes no holes.
    refused: bool,
}

impl Holes {
    fn add(&mut self, from: u64, to: u64) {
        self.ranges.insert(from, to);
    }

    /// A hole that has bytes of a range.
    fn meeting(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (&hole, &end) = self.ranges.range(..to).next_back()?;
        (end > from).then_some((hole, end))
    }

    /// There are blocks in a part of a hole now.
    fn fill(&mut self, hole: u64, from: u64, to: u64) {
        let Some(end) = self.ranges.remove(&hole) else {
            return;
        };
        if hole < from {
            self.ranges.insert(hole, from);
        }
        if to < end {
            self.ranges.insert(to, end);
        }
    }
}

impl Space {
    /// Finds the holes that the file has from runs before.
    pub(super) fn find_holes(&mut self) {
        for (from, to) in self.image.holes() {
            let (from, to) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
            if from < to {
                self.holes.add(from, to);
            }
        }
    }

    /// Before objects are put into free room: it has blocks afterwards.
    #[inline]
    pub(super) fn fill_holes(&mut self, from: u64, to: u64) -> Result<()> {
        while let Some((hole, end)) = self.holes.meeting(from, to) {
            let first = from.max(hole) / PAGE * PAGE;
            let last = to.max(first + FILLED).next_multiple_of(PAGE).min(end);
            // On a medium that is nearly full there is room for less.
            let filled = match self.image.fill(first, last) {
                Ok(()) => last,
                Err(e) => {
                    let least = to.next_multiple_of(PAGE).min(end);
                    match least < last && self.image.fill(first, least).is_ok() {
                        true => least,
                        false => {
                            return Err(Error::Io {
                                path: self.path.clone(),
                                what: "there is no room in its medium for what is free of it",
                                source: e,
                            });
                        }
                    }
                }
            };
            self.holes.fill(hole, first, filled);
        }
        Ok(())
    }

    /// Between operations, after garbage was collected: releases free pages that are not needed soon.
    ///
    /// # Errors
    /// If the medium fails.
    #[cold]
    pub(super) fn give_back_pages(&mut self) -> Result<()> {
        self.holes.due = false;
        let ranges = self.free_ranges();
        let bytes: u64 = ranges.iter().map(|(from, to)| to - from).sum();
        if self.holes.refused || bytes < LEAST_HOLES {
            return Ok(());
        }
        // A mark is eight bytes, and a medium without room for them has not failed.
        if self.domain.make_room_to_commit(bytes / PAGE * 16).is_err() {
            return Ok(());
        }
        let mut opened = std::mem::take(&mut self.opened);
        opened.retain(|page| {
            !ranges
                .iter()
                .any(|(from, to)| (*from..*to).contains(&(page * PAGE)))
        });
        self.opened = opened;
        self.last_opened = u64::MAX;
        for page in ranges.iter().flat_map(|(from, to)| from / PAGE..to / PAGE) {
            let (at, mark) = self.mark_of(page);
            if mark != Mark::Empty {
                self.image.set_u64(at, Mark::Empty.word());
                self.flush(at, 8);
            }
        }
        self.fence(Fence::Header)?;
        if let Err(e) = self.domain.settle() {
            return Err(self.fail(Err(e)));
        }
        for (from, to) in ranges {
            if !self.image.punch(from, to) {
                // All is as it was, but for pages that count as empty.
                self.holes.refused = true;
                return Ok(());
            }
            self.holes.add(from, to);
        }
        Ok(())
    }

    /// Free pages that have blocks and are not needed until garbage is collected again: long runs of them, from the end of the file.
    fn free_ranges(&self) -> Vec<(u64, u64)> {
        if self.image.file().is_none() {
            return Vec::new();
        }
        let len = self.image.len() / PAGE * PAGE;
        let free = len.saturating_sub(self.alloc.used());
        let held: u64 = self.holes.ranges.iter().map(|(from, to)| to - from).sum();
        let soon = self.new_until(self.alloc.used());
        let needed = self.threshold.saturating_sub(self.alloc.used()) + soon;
        let mut more = free.saturating_sub(held + needed);
        let is_free = |page: u64| {
            is_marked(page, self.first)
                && self.alloc.is_page_free(page)
                && !self.unsettled.contains(&page)
                && self.holes.meeting(page * PAGE, (page + 1) * PAGE).is_none()
        };
        let (mut ranges, mut page) = (Vec::new(), len / PAGE);
        while page > self.first / PAGE && more >= LEAST_HOLE {
            let end = page;
            while page > self.first / PAGE && (end - page) * PAGE < more && is_free(page - 1) {
                page -= 1;
            }
            let bytes = (end - page) * PAGE;
            if bytes >= LEAST_HOLE {
                ranges.push((page * PAGE, end * PAGE));
                more -= bytes;
            }
            page = page.min(end - 1);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_filled_where_it_is_needed() {
        let mut holes = Holes::default();
        holes.add(100, 200);
        assert_eq!(holes.meeting(0, 100), None);
        assert_eq!(holes.meeting(200, 300), None);
        assert_eq!(holes.meeting(150, 160), Some((100, 200)));
        holes.fill(100, 150, 160);
        assert_eq!(holes.meeting(150, 160), None);
        assert_eq!(holes.meeting(90, 300), Some((160, 200)));
        holes.fill(160, 160, 200);
        assert_eq!(holes.meeting(90, 300), Some((100, 150)));
    }
}
