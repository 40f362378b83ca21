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

use crate::image::Image;
use crate::layout::*;

const STATE_SHIFT: u32 = 48;
const OPEN: u64 = 0x4f50 << STATE_SHIFT;
const SEALED: u64 = 0x5345;

/// The meaning of a mark.
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
    /// The meaning of a word.
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

    pub(crate) fn word(self) -> u64 {
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
/// A checksum of all bytes but for one bit differs by the effect of that bit alone, and no two bits of a page make the same.
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

/// Where marks are, by group; all groups have them.
pub(crate) fn tables_of(image: &Image) -> Vec<u64> {
    let tables = tables(image).unwrap_or_default();
    tables.into_iter().map(|t| t.unwrap_or(0)).collect()
}

/// The message for a page whose checksum is wrong.
pub(crate) fn wrong_sum(page: u64) -> String {
    format!("the checksum of the page at {:#x} is wrong", page * PAGE)
}
