//! Marks of pages: one word for each 4 KiB of the file, which says whether the page is in use, its checksum, and which of its lines are taken.
//!
//! ```text
//! empty     0                                        never used since the file was made or the page was found free
//! open      state  -      -                          may be stored to: no checksum, all of its lines count as taken
//! sealed    state  lines  checksum                   as it was when it was sealed, and may not be stored to until it is open
//!           63-48  47-32  31-0
//! ```
//!
//! A page is opened, and that is fenced, before the first store to it; stores after that cost nothing more. It is sealed when the region is
//! closed, or when many are open. The checksum (CRC-32C) is of the page's bytes and the bits of its lines. So all that was not being stored to
//! when a program died has a checksum, for one word of 8 bytes per page and a fence per page and sealing.
//!
//! The marks of 16 MiB are together, in a table among the objects; the directory says where. A table is made when the file grows.

use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::layout::*;
use crate::space::Space;

const STATE_SHIFT: u32 = 48;
const OPEN: u64 = 0x4f50 << STATE_SHIFT;
const SEALED: u64 = 0x5345;

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is in the page.
    Empty,
    /// The page may be stored to.
    Open,
    /// The page has this checksum, and these of its lines are taken.
    Sealed {
        /// A bit for each line.
        lines: u16,
        /// CRC-32C of the page and `lines`.
        sum: u32,
    },
    /// It can be none.
    Damaged,
}

impl Mark {
    /// What a word says.
    pub fn of(word: u64) -> Mark {
        match word {
            0 => Mark::Empty,
            OPEN => Mark::Open,
            _ if word >> STATE_SHIFT == SEALED => Mark::Sealed {
                lines: (word >> 32) as u16,
                sum: word as u32,
            },
            _ => Mark::Damaged,
        }
    }

    fn word(self) -> u64 {
        match self {
            Mark::Empty | Mark::Damaged => 0,
            Mark::Open => OPEN,
            Mark::Sealed { lines, sum } => {
                SEALED << STATE_SHIFT | u64::from(lines) << 32 | u64::from(sum)
            }
        }
    }
}

/// The checksum of a page's bytes and of which of its lines are taken.
pub fn sum_of(page: &[u8], lines: u16) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(page), &lines.to_le_bytes())
}

/// The one bit that makes a page's checksum wrong, if it is one: its number in the page, or none if it is in the mark.
///
/// A checksum of all bytes but for one bit differs by what that bit alone makes of it, and no two bits of a page make the same.
pub fn wrong_bit(page: &[u8], lines: u16, sum: u32) -> Option<Option<usize>> {
    let wrong = sum_of(page, lines) ^ sum;
    if wrong == 0 || wrong.is_power_of_two() {
        return Some(None);
    }
    let nothing = sum_of(&[0; PAGE as usize], 0);
    let mut one = [0; PAGE as usize];
    for bit in 0..8 * PAGE as usize {
        one[bit / 8] = 1 << (bit % 8);
        if sum_of(&one, 0) ^ nothing == wrong {
            return Some(Some(bit));
        }
        one[bit / 8] = 0;
    }
    let in_lines = (0..16).any(|bit| {
        let zeroes = [0; PAGE as usize];
        sum_of(&zeroes, 1 << bit) ^ nothing == wrong
    });
    in_lines.then_some(None)
}

/// Whether a page has a mark that counts: roots, and all from the first object on that are no marks.
pub(crate) fn is_marked(page: u64, first: u64) -> bool {
    let at = page * PAGE;
    (ROOTS..LOG).contains(&at) || at >= first
}

/// Where the marks of a group are, by the directory; none if they were never made.
pub(crate) fn table(image: &Image, group: u64) -> std::result::Result<Option<u64>, String> {
    if group >= MAX_GROUPS {
        return Ok(None);
    }
    let word = image.u64(DIRECTORY + 8 * group);
    let damaged = || format!("the directory of marks is damaged at entry {group}");
    match without_sum(word) {
        Some(0) => Ok(None),
        Some(at)
            if at.is_multiple_of(PAGE)
                && at >= TABLES
                && at
                    .checked_add(GROUP_MARKS)
                    .is_some_and(|end| end <= image.len()) =>
        {
            Ok(Some(at))
        }
        _ => Err(damaged()),
    }
}

/// Where a page's mark is, if its group has marks.
pub(crate) fn place(image: &Image, page: u64) -> Option<u64> {
    let table = table(image, page / GROUP_PAGES).ok()??;
    Some(table + page % GROUP_PAGES * 8)
}

/// A page's mark. Pages whose group has no marks yet are open.
pub fn mark(image: &Image, page: u64) -> Mark {
    place(image, page).map_or(Mark::Open, |at| Mark::of(image.u64(at)))
}

/// Marks of all groups, by the directory.
///
/// # Errors
/// Which entry is damaged.
pub(crate) fn tables(image: &Image) -> std::result::Result<Vec<Option<u64>>, String> {
    let groups = image.len().div_ceil(PAGE).div_ceil(GROUP_PAGES);
    (0..groups).map(|g| table(image, g)).collect()
}

/// Pages whose bytes are others than when they were sealed.
pub fn damaged(image: &Image, first: u64) -> Vec<u64> {
    let Ok(tables) = tables(image) else {
        return Vec::new();
    };
    let mut bytes = [0; PAGE as usize];
    let mut found = Vec::new();
    for page in 0..image.len() / PAGE {
        let Some(table) = tables[(page / GROUP_PAGES) as usize] else {
            continue;
        };
        if !is_marked(page, first) {
            continue;
        }
        match Mark::of(image.u64(table + page % GROUP_PAGES * 8)) {
            Mark::Empty | Mark::Open => {}
            Mark::Damaged => found.push(page),
            Mark::Sealed { lines, sum } => {
                image.read(page * PAGE, &mut bytes);
                if sum_of(&bytes, lines) != sum {
                    found.push(page);
                }
            }
        }
    }
    found
}

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
    fn mark_of(&self, page: u64) -> (u64, Mark) {
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
        self.image.set_u64(at, OPEN);
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

    /// Where many pages are open, seals some of those that have been so longest: a bounded share of the cost of a store.
    #[inline]
    pub(crate) fn seal_if_many(&mut self) -> Result<()> {
        if self.opened.len() as u64 > MOST_OPEN && self.depth == 0 {
            self.seal_some();
        }
        Ok(())
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

/// Most pages that are open before some are sealed, in small regions: 64 MiB. In large ones it is an eighth of them.
const MOST_OPEN: u64 = (64 << 20) / PAGE;
/// Most pages that are sealed at a time, which takes some microseconds.
const SEALED_AT_A_TIME: usize = 16;

/// Where marks are, by group; all groups have them.
pub(crate) fn tables_of(image: &Image) -> Vec<u64> {
    let tables = tables(image).unwrap_or_default();
    tables.into_iter().map(|t| t.unwrap_or(0)).collect()
}

/// What is said of a page that is not as it was sealed.
pub(crate) fn wrong_sum(page: u64) -> String {
    format!("the checksum of the page at {:#x} is wrong", page * PAGE)
}
