//! Opens pages before they are stored to, and seals them: see [`pages`](crate::pages).

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::*;
use crate::pages::{Mark, is_marked, sum_of, tables, tables_of, wrong_sum};

/// Most pages that are open before some are sealed, in small regions: 64 MiB. In large ones it is an eighth of them.
const MOST_OPEN: u64 = (64 << 20) / PAGE;
/// Most pages that are sealed at a time, which takes some microseconds.
const SEALED_AT_A_TIME: usize = 16;

impl Space {
    /// Makes marks for all groups of the file that have none. Nothing was ever in those: the marks are where the first of them begins.
    pub(crate) fn mark_groups(&mut self) -> Result<()> {
        let tables = tables(&self.image).map_err(|what| Error::Lost {
            path: self.path.clone(),
            what,
        })?;
        let covered = tables.iter().take_while(|t| t.is_some()).count();
        let mut at = match covered {
            0 => self.first,
            n => n as u64 * GROUP_PAGES * PAGE,
        };
        for group in covered..tables.len() {
            if at + GROUP_MARKS > self.image.len() {
                return Err(Error::Damaged {
                    path: self.path.clone(),
                    what: "it ends where marks of pages must be".into(),
                });
            }
            self.alloc.take_object(at, GROUP_MARKS);
            self.image.write(at, &[0; GROUP_MARKS as usize]);
            self.flush(at, GROUP_MARKS);
            self.fence(Fence::Header)?;
            let entry = DIRECTORY + 8 * group as u64;
            self.image.set_u64(entry, with_sum(at));
            self.flush(entry, 8);
            self.fence(Fence::Header)?;
            at += GROUP_MARKS;
        }
        self.tables_at = tables_of(&self.image);
        Ok(())
    }

    /// A page's mark, and where it is.
    #[inline]
    pub(super) fn mark_of(&self, page: u64) -> (u64, Mark) {
        let at = self.tables_at[(page / GROUP_PAGES) as usize] + page % GROUP_PAGES * 8;
        (at, Mark::of(self.image.u64(at)))
    }

    /// Before bytes are stored to: their pages are open afterwards.
    ///
    /// # Errors
    /// If a page is not as it was sealed, or the medium fails.
    #[inline]
    pub(crate) fn open_pages(&mut self, offset: u64, bytes: u64) -> Result<()> {
        let (from, to) = (offset / PAGE, (offset + bytes.max(1) - 1) / PAGE);
        match from == to && from == self.last_opened {
            true => Ok(()),
            false => self.open_range(from, to),
        }
    }

    #[inline(never)]
    fn open_range(&mut self, from: u64, to: u64) -> Result<()> {
        let sealed = |mark| matches!(mark, Mark::Sealed { .. });
        let must_fence = (from..=to).any(|page| sealed(self.mark_of(page).1));
        for page in from..=to {
            self.open_page(page)?;
        }
        if must_fence {
            // Neighbours are likely to be next, and the fence is one for all. A damaged one is not met yet.
            let together = self.domain.pages_at_a_time();
            let end = (from / together + 1) * together;
            for page in from / together * together..end.min(self.image.len() / PAGE) {
                if is_marked(page, self.first) && sealed(self.mark_of(page).1) {
                    let _ = self.open_page(page);
                }
            }
        }
        self.last_opened = to;
        match must_fence {
            true => self.fence(Fence::Opened),
            false => Ok(()),
        }
    }

    fn open_page(&mut self, page: u64) -> Result<()> {
        let (at, mark) = self.mark_of(page);
        match mark {
            Mark::Open => return Ok(()),
            Mark::Empty => {}
            Mark::Sealed { lines, sum } if self.is_as_sealed(page, lines, sum) => {}
            _ => return Err(self.damaged_page(page)),
        }
        self.image.set_u64(at, Mark::Open.word());
        self.flush(at, 8);
        self.opened.push_back(page);
        Ok(())
    }

    fn is_as_sealed(&self, page: u64, lines: u16, sum: u32) -> bool {
        let mut bytes = [0; PAGE as usize];
        self.image.read(page * PAGE, &mut bytes);
        sum_of(&bytes, lines) == sum
    }

    fn damaged_page(&self, page: u64) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            what: wrong_sum(page),
        }
    }

    /// After an operation: where many pages are open, seals some of those that have been so longest, a bounded share of the cost of a store. After
    /// garbage was collected, releases free pages.
    #[inline]
    pub(crate) fn seal_if_many(&mut self) -> Result<()> {
        if self.opened.len() as u64 > MOST_OPEN && self.depth == 0 {
            self.seal_some();
        }
        match self.holes.due && self.depth == 0 {
            true => self.give_back_pages(),
            false => Ok(()),
        }
    }

    #[cold]
    fn seal_some(&mut self) {
        let most = MOST_OPEN.max(self.image.len() / PAGE / 8);
        let gaps = self.alloc.gaps();
        for _ in 0..SEALED_AT_A_TIME {
            if self.opened.len() as u64 <= most {
                return;
            }
            let page = self.opened.pop_front().expect("there are many");
            let is_in = |&(from, to): &(u64, u64)| from < (page + 1) * PAGE && page * PAGE < to;
            match gaps.iter().any(is_in) {
                // The next objects go there.
                true => self.opened.push_back(page),
                false => self.seal_page(page),
            }
        }
    }

    /// Seals all pages that are open. Stores to them are in the medium.
    pub(crate) fn seal(&mut self) -> Result<()> {
        debug_assert!(self.depth == 0);
        self.last_opened = u64::MAX;
        // Objects to come open the pages that they go to.
        self.alloc.retire();
        let mut opened = Vec::from(std::mem::take(&mut self.opened));
        opened.sort_unstable();
        opened.into_iter().for_each(|page| self.seal_page(page));
        Ok(())
    }

    fn seal_page(&mut self, page: u64) {
        if self.unsettled.contains(&page) {
            return;
        }
        let lines = match page * PAGE < self.first {
            true => u16::MAX,
            false => self.alloc.lines_of_page(page),
        };
        let (at, _) = self.mark_of(page);
        let mark = self.sealed(page, lines);
        self.image.set_u64(at, mark.word());
        self.flush(at, 8);
        if page == self.last_opened {
            self.last_opened = u64::MAX;
        }
    }

    /// Has sealed pages say which of their lines are free by now: garbage was collected.
    pub(crate) fn free_sealed_lines(&mut self) {
        for page in self.first / PAGE..self.image.len() / PAGE {
            let (at, mark) = self.mark_of(page);
            let lines = self.alloc.lines_of_page(page);
            let Mark::Sealed { lines: held, sum } = mark else {
                continue;
            };
            if lines == held || !self.is_as_sealed(page, held, sum) {
                continue;
            }
            let mark = self.sealed(page, lines);
            self.image.set_u64(at, mark.word());
            self.flush(at, 8);
        }
    }

    fn sealed(&self, page: u64, lines: u16) -> Mark {
        if lines == 0 {
            return Mark::Empty;
        }
        let mut bytes = [0; PAGE as usize];
        self.image.read(page * PAGE, &mut bytes);
        let sum = sum_of(&bytes, lines);
        Mark::Sealed { lines, sum }
    }

    /// Takes the lines that marks say are taken, of all pages.
    pub(crate) fn take_marked_lines(&mut self) {
        for page in self.first / PAGE..self.image.len() / PAGE {
            match self.mark_of(page).1 {
                Mark::Empty => {}
                Mark::Sealed { lines, .. } => self.alloc.take_lines(page, lines),
                Mark::Open | Mark::Damaged => self.alloc.take_lines(page, u16::MAX),
            }
        }
    }

    /// Takes the lines of the marks themselves.
    pub(crate) fn take_marks(&mut self) {
        for &at in &self.tables_at {
            self.alloc.take_object(at, GROUP_MARKS);
        }
    }

    /// Pages that the marks say are open, from the last run.
    pub(crate) fn find_open(&mut self) {
        for page in 0..self.image.len() / PAGE {
            if is_marked(page, self.first) && self.mark_of(page).1 == Mark::Open {
                self.opened.push_back(page);
            }
        }
    }
}
