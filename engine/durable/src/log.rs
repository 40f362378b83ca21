//! The undo log: the contents of cache lines before a region stored into them.
//!
//! ```text
//! LOG       number of the last region that is over, with its checksum (u64)
//! LOG + 64  entry, entry, ...
//!
//! entry     checksum of the rest (u32)   bytes (u32)   offset in the file (u64)   region (u64)   the bytes, a multiple of 8
//!           padding up to a cache line
//! ```
//!
//! The checksum is CRC-32C. Each entry has cache lines of its own: a line that is written back once per region is not waited for again.
//!
//! An entry counts if its checksum is right and its region is the one after the last that is over: a torn entry, or one of an older region,
//! ends the log. So an entry and its being valid need one write-back and one fence. Where the log's place in the file is full, it goes on in
//! a longer one among the objects, which an entry of kind *elsewhere* (bytes 0, the offset of its continuation) says. Regions that follow use
//! the same ones again.

use crate::image::Image;
use crate::layout::*;

const ENTRY: u64 = 24;

/// Where the next entry goes, and room among the objects for when its place is full.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    cursor: u64,
    limit: u64,
    /// Continuations, in the order in which they are used: offsets and bytes.
    extents: Vec<(u64, u64)>,
    /// Continuations that this region uses.
    used: usize,
    /// Whether this region has written any entry, even one that was rolled back since.
    written: bool,
}

/// Where a log went on when a region was begun within another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    cursor: u64,
    limit: u64,
    used: usize,
}

/// Bytes of continuations that are kept for the regions to come.
const KEPT: u64 = 1 << 20;

/// The size in bytes of an entry for `bytes` bytes.
pub(crate) fn entry_bytes(bytes: u64) -> u64 {
    (ENTRY + bytes).next_multiple_of(CACHE_LINE)
}

impl Log {
    /// For a new region: nothing is in it.
    pub fn begin(&mut self) {
        self.cursor = LOG + 64;
        self.limit = CLASS_DATA;
        self.used = 0;
        self.written = false;
    }

    /// Whether the region has written no entry.
    pub fn is_empty(&self) -> bool {
        !self.written
    }

    /// Where the next entry goes.
    pub fn position(&self) -> Position {
        Position {
            cursor: self.cursor,
            limit: self.limit,
            used: self.used,
        }
    }

    /// Rewinds the log: the next entry goes to `to`. The bytes saved by later entries are restored and in the medium.
    pub fn go_back(&mut self, to: Position) {
        self.cursor = to.cursor;
        self.limit = to.limit;
        self.used = to.used;
    }

    /// The continuation that is there for when this one is full.
    pub fn next_extent(&self) -> Option<(u64, u64)> {
        self.extents.get(self.used).copied()
    }

    /// Adds a continuation.
    pub fn add_extent(&mut self, offset: u64, bytes: u64) {
        self.extents.push((offset, bytes));
    }

    /// Between regions: continuations that need not be kept.
    pub fn give_back(&mut self) -> Vec<(u64, u64)> {
        let mut kept = 0;
        let keep = |&&(_, bytes): &&(u64, u64)| {
            kept += bytes;
            kept <= KEPT
        };
        let keep = self.extents.iter().take_while(keep).count();
        self.extents.split_off(keep)
    }

    /// All continuations, which are the log's no more.
    pub fn give_up(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.extents)
    }

    /// Where the next entry for `bytes` bytes would be, if that is among the objects.
    pub fn among_objects(&self, bytes: u64) -> Option<(u64, u64)> {
        (self.used > 0).then_some((self.cursor, entry_bytes(bytes) + ENTRY))
    }

    /// Whether an entry for `bytes` bytes fits, and a link after it.
    pub fn fits(&self, bytes: u64) -> bool {
        self.cursor + entry_bytes(bytes) + ENTRY <= self.limit
    }

    /// Writes an entry for the cache line at `offset` as it is now: where it is, to be written back.
    pub fn add(&mut self, image: &mut Image, region: u64, offset: u64) -> (u64, u64) {
        debug_assert!(self.fits(CACHE_LINE));
        let mut entry = [0; (ENTRY + CACHE_LINE) as usize];
        image.read(offset, &mut entry[ENTRY as usize..]);
        self.put(image, region, offset, &mut entry)
    }

    /// Goes on in the next continuation: where the link is, to be written back.
    pub fn go_on(&mut self, image: &mut Image, region: u64) -> (u64, u64) {
        let (offset, bytes) = self.extents[self.used];
        self.used += 1;
        // The old bytes there must not look like an entry.
        image.write(offset, &[0; ENTRY as usize]);
        let link = self.put(image, region, offset, &mut [0; ENTRY as usize]);
        self.cursor = offset;
        self.limit = offset + bytes;
        link
    }

    /// Writes an entry. `entry` has room for the header, then the old bytes.
    fn put(&mut self, image: &mut Image, region: u64, offset: u64, entry: &mut [u8]) -> (u64, u64) {
        let held = entry.len() as u64 - ENTRY;
        entry[4..8].copy_from_slice(&(held as u32).to_le_bytes());
        entry[8..16].copy_from_slice(&offset.to_le_bytes());
        entry[16..24].copy_from_slice(&region.to_le_bytes());
        let sum = crc32c::crc32c(&entry[4..]);
        entry[..4].copy_from_slice(&sum.to_le_bytes());
        let at = self.cursor;
        self.written = true;
        image.write(at, entry);
        self.cursor += entry_bytes(held);
        (at, entry.len() as u64)
    }
}

/// The old contents of a cache line, from its entry.
pub(crate) fn held(image: &Image, entry: u64) -> [u8; CACHE_LINE as usize] {
    let mut held = [0; CACHE_LINE as usize];
    image.read(entry + ENTRY, &mut held);
    held
}

/// The number of the last region that is over; none if it is damaged.
pub(crate) fn finished(image: &Image, version: u32) -> Option<u64> {
    let word = image.u64(LOG);
    match version {
        2 => Some(word),
        _ => without_sum(word),
    }
}

/// The entries of an open region, in their order: offset in the file, and the old bytes.
pub(crate) fn entries(image: &Image, version: u32) -> Vec<(u64, Vec<u8>)> {
    let Some(region) = finished(image, version).map(|n| n.wrapping_add(1)) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    let mut at = LOG + 64;
    // A damaged file may link in a circle.
    let mut links = 0;
    while at + ENTRY <= image.len() {
        let bytes = u64::from(image.u32(at + 4));
        if bytes > image.len() - at - ENTRY || !bytes.is_multiple_of(8) {
            break;
        }
        let entry = image.bytes(at, ENTRY + bytes);
        let word = |i: usize| u64::from_le_bytes(entry[i..i + 8].try_into().expect("eight bytes"));
        let (offset, of) = (word(8), word(16));
        if crc32c::crc32c(&entry[4..]).to_le_bytes() != entry[..4] || of != region {
            break;
        }
        if bytes == 0 {
            links += 1;
            if links > 64 {
                break;
            }
            at = offset;
            continue;
        }
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > image.len())
        {
            break;
        }
        entries.push((offset, entry[ENTRY as usize..].to_vec()));
        at += entry_bytes(bytes);
    }
    entries
}

/// Rolls back the stores of an open region, if there is one. Returns the places that were restored.
pub(crate) fn take_back(image: &mut Image, version: u32) -> Vec<(u64, u64)> {
    let entries = entries(image, version);
    let mut restored = Vec::with_capacity(entries.len());
    for (offset, held) in entries.into_iter().rev() {
        image.write(offset, &held);
        restored.push((offset, held.len() as u64));
    }
    restored
}
