//! A journal for regions in ordinary files: all stores are in the medium after one sync, however many lines they changed.
//!
//! ```text
//!  memory, mapped privately       file
//!  +-----------------------+      +-----------------------+---------------------------------------+
//!  | the region, with what |      | the region as of the  | transaction | transaction | torn      |
//!  | is not committed yet  |      | last checkpoint       | n           | n + 1       |           |
//!  +-----------------------+      +-----------------------+---------------------------------------+
//!        |  lines that changed            ^                  ^                                |
//!        +--------------------------------|------- commit ---+                                |
//!                                         +---------------------- checkpoint, recovery -------+
//! ```
//!
//! Nothing that is not committed reaches the file. A commit appends the cache lines that were stored to since the last one, and waits for the
//! medium once. When the journal is full, the contents of its transactions are written to their places, from the journal and not from memory; then
//! they are forgotten. A crash at any point is recovered by doing the same again.
//!
//! The journal is after the region's bytes, in the same file, while the region is in use: closing takes it off. It is made with the first
//! commit, so that a file that is only inspected, or refused, is not written to.
//!
//! # What it relies on
//!
//! - All stores are announced by [`Domain::write_back`]: tests with [`Simulated`](crate::domain::Simulated) hold regions to that.
//! - The memory contents at a fence, with or without unannounced lines, are a state that a crash may leave: the same tests. So a commit may
//!   be at any fence, and fences between two commits need nothing.
//! - A sector of 512 bytes is written as a whole or not at all.

mod changes;
mod disk;
mod place;
mod replay;
mod simulated;
mod transaction;

pub use disk::{Disk, Sync};
pub(crate) use place::take_off as take_off_copy;
pub use replay::recover;
pub(crate) use replay::recover_image;
pub use simulated::{DiskCrash, SimulatedDisk};

use crate::domain::{Domain, Fence};
use crate::error::is_full;
use crate::layout::PAGE;
use changes::Changes;
use place::{Place, Said};
use std::fs::File;
use std::io;

/// The bytes that a medium writes as a whole or not at all.
pub const SECTOR: u64 = 512;

/// When journals are emptied.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the journal. One transaction may be longer: then so is the journal until it is emptied.
    pub journal: u64,
    /// Pages that differ from the file in memory: they cannot be released before a checkpoint.
    pub pages: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            journal: 16 << 20,
            pages: (256 << 20) / PAGE,
        }
    }
}

/// Bytes that are written with zeroes ahead of transactions. For a file system, overwriting costs less than filling blocks that it only reserved.
const PREPARED: u64 = 256 << 10;

/// A journal has at most one part in this many of its region's size, but at least [`LEAST_USUAL`] where there is room.
const REGION_PARTS: u64 = 16;
const LEAST_USUAL: u64 = 2 << 20;

/// Bytes that a journal has at least.
pub(crate) const LEAST: u64 = 64 << 10;

/// A region's medium: its file with a journal.
pub struct Journal<D: Disk> {
    disk: D,
    /// The region's first byte in memory.
    base: *const u8,
    /// Whether memory is a private mapping of the file, so that its pages can be released.
    mapped: bool,
    limits: Limits,
    /// Bytes of the region.
    region: u64,
    /// Where the journal is in the file; none before the first commit.
    place: Option<Place>,
    /// The number of the next transaction.
    number: u64,
    /// Bytes of transactions in the journal.
    end: u64,
    /// Bytes of the journal that were ever written, with zeroes at least.
    prepared: u64,
    /// The offset in the file up to which journals were ever written, wherever they began.
    written: u64,
    /// Lines that were announced and are not committed.
    changes: Changes,
    /// Pages that transactions in the journal changed.
    touched: Changes,
    grouped: bool,
    failed: bool,
    /// Kept between commits.
    runs: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

// SAFETY: the memory belongs to the image that has this domain, and is read between its stores, on its thread.
unsafe impl<D: Disk> Send for Journal<D> {}

impl<D: Disk> Journal<D> {
    /// For a region that is in `disk`, without a journal, and at `base` in memory. Its bytes are those that the disk has.
    ///
    /// # Errors
    /// If the disk cannot be read.
    ///
    /// # Safety
    /// While this lives, the bytes last passed to [`Domain::grown`] can be read at `base`, and no thread writes them while a method runs.
    pub unsafe fn new(disk: D, base: *const u8, limits: Limits) -> io::Result<Journal<D>> {
        let mut sector = [0; SECTOR as usize];
        let region = disk.len()?;
        if region >= SECTOR {
            disk.read_at(&mut sector, 0)?;
        }
        let number = match place::read(&sector) {
            Said::None(next) => next,
            _ => return Err(io::Error::other("its journal was not recovered")),
        };
        let mut journal = Journal {
            disk,
            base,
            mapped: false,
            limits,
            region: region.next_multiple_of(PAGE),
            place: None,
            number,
            end: 0,
            prepared: 0,
            written: 0,
            changes: Changes::default(),
            touched: Changes::default(),
            grouped: false,
            failed: false,
            runs: Vec::new(),
            bytes: Vec::new(),
        };
        journal.grown(region);
        Ok(journal)
    }

    /// Every commit fails after the first failure: the medium's contents are unknown then, and a repeated sync may report success.
    fn guarded(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the journal has failed before"));
        }
        let done = work(self);
        self.failed = done.is_err();
        done
    }

    /// The journal's place, which is made if there is none.
    fn begun(&mut self) -> io::Result<Place> {
        if let Some(place) = self.place {
            return Ok(place);
        }
        // The region ends here, however long the file is when a crash comes.
        self.put(self.region, 0)?;
        while let Err(e) = self.reserve(self.region + self.limits.journal) {
            // On a medium that is nearly full a shorter one does, with more checkpoints.
            if self.limits.journal <= LEAST || !is_full(&e) {
                return Err(e);
            }
            self.limits.journal /= 4;
        }
        self.disk.sync(Sync::Length)?;
        self.put(self.region, self.limits.journal)
    }

    /// Has the file be so long, or as long as it is.
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let held = self.disk.len()?;
        let done = self.disk.reserve(bytes);
        if done.is_err() {
            let _ = self.disk.cut(held);
        }
        done
    }

    /// Has an empty journal be at an offset.
    fn put(&mut self, at: u64, bytes: u64) -> io::Result<Place> {
        let first = self.number;
        let place = Place { first, at, bytes };
        replay::write_place(&mut self.disk, place)?;
        self.place = Some(place);
        self.end = 0;
        Ok(place)
    }

    fn append(&mut self) -> io::Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let mut place = self.begun()?;
        let mut runs = std::mem::take(&mut self.runs);
        self.changes.runs(&mut runs);
        let bytes = transaction::bytes_of(&runs);
        if self.end + bytes > place.bytes {
            self.checkpoint()?;
            place = self.begun()?;
        }
        if bytes > place.bytes {
            self.reserve(place.at + bytes)?;
            self.disk.sync(Sync::Length)?;
            place = self.put(place.at, bytes)?;
        }
        let at = place.at + self.end;
        let base = self.base;
        let copy = |offset: u64, bytes: u64, into: &mut Vec<u8>| {
            let from = base.wrapping_add(offset as usize);
            // SAFETY: announced bytes are the region's, whose lines are in memory as a whole; no thread writes them now.
            into.extend_from_slice(unsafe { std::slice::from_raw_parts(from, bytes as usize) });
        };
        transaction::write(&mut self.bytes, self.number, at, &runs, copy);
        self.runs = runs;
        self.prepare(place, bytes)?;
        self.disk.write_at(&self.bytes, at)?;
        self.disk.sync(Sync::Committed)?;
        self.number += 1;
        self.end += bytes;
        for &page in self.changes.pages() {
            self.touched.add(u64::from(page) * PAGE, 1);
        }
        self.changes.clear();
        if self.bytes.capacity() as u64 > self.limits.journal {
            self.bytes = Vec::new();
        }
        let many = self.touched.pages().len() as u64 > self.limits.pages;
        match many || place.bytes > self.limits.journal {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Writes zeroes after the `bytes` bytes that are written next, where nothing was ever written.
    fn prepare(&mut self, place: Place, bytes: u64) -> io::Result<()> {
        let end = self.end + bytes;
        if end <= self.prepared {
            return Ok(());
        }
        self.prepared = (end + PREPARED).min(place.bytes);
        self.written = self.written.max(place.at + self.prepared);
        let ahead = vec![0; (self.prepared - end) as usize];
        self.disk.write_at(&ahead, place.at + end)
    }

    /// Writes the journal's contents to their places.
    fn write_in_place(&mut self) -> io::Result<()> {
        let Some(place) = self.place else {
            return Ok(());
        };
        let journal = replay::read_bytes(&self.disk, place.at, self.end)?;
        let found = transaction::read(&journal, place.at, place.first);
        if found.damaged || found.transactions != self.number - place.first {
            return Err(io::Error::other(
                "the journal reads otherwise than it was written",
            ));
        }
        replay::write_in_place(&mut self.disk, &journal, &found)
    }

    /// Empties the journal.
    fn checkpoint(&mut self) -> io::Result<()> {
        let Some(place) = self.place else {
            return Ok(());
        };
        self.write_in_place()?;
        self.put(place.at, self.limits.journal)?;
        if place.bytes > self.limits.journal {
            self.disk.cut(place.at + self.limits.journal)?;
            self.prepared = self.prepared.min(self.limits.journal);
            self.written = self.written.min(place.at + self.limits.journal);
        }
        self.give_back()
    }

    /// Gives the memory of pages back that the file has as they are.
    fn give_back(&mut self) -> io::Result<()> {
        let mut runs = std::mem::take(&mut self.runs);
        self.touched.runs(&mut runs);
        if self.mapped {
            let mut held = [0; PAGE as usize];
            for &(line, _) in &runs {
                let page = line / PAGE * PAGE;
                self.disk.read_at(&mut held, page)?;
                let at = self.base.wrapping_add(page as usize);
                // SAFETY: a page of the region, which no thread writes now.
                let same = unsafe { std::slice::from_raw_parts(at, PAGE as usize) } == held;
                if same {
                    // SAFETY: a page of a private mapping of the file: the next read finds the same bytes.
                    unsafe {
                        libc::madvise(at.cast_mut().cast(), PAGE as usize, libc::MADV_DONTNEED)
                    };
                }
            }
        }
        self.runs = runs;
        self.touched.clear();
        Ok(())
    }

    /// Moves the journal, which has been emptied, to where a longer region ends.
    fn move_to(&mut self, region: u64) -> io::Result<()> {
        let Some(place) = self.place else {
            return Ok(());
        };
        self.disk.sync(Sync::Length)?;
        self.write_in_place()?;
        self.put(region, self.limits.journal)?;
        // Journal bytes where the region now extends. A crash here leaves it in bytes that nothing refers to.
        let stale = self.written.min(region).saturating_sub(place.at);
        if stale > 0 {
            self.disk.write_at(&vec![0; stale as usize], place.at)?;
            self.disk.sync(Sync::Cleared)?;
        }
        self.prepared = 0;
        self.give_back()
    }
}

/// Bytes that a file's medium has free, as far as it says.
pub(crate) fn free_bytes(file: &File) -> u64 {
    use std::os::fd::AsRawFd;
    // SAFETY: all zeroes are such a value; the call fills it.
    let mut fs: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is the file's, and `fs` has room for the answer.
    match unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut fs) } {
        0 => fs.f_bavail * fs.f_frsize,
        _ => 0,
    }
}

/// Bytes of the usual journal beside a region: it makes the file longer by a small part, and is emptied seldom.
fn beside(region: u64) -> u64 {
    let part = region / REGION_PARTS / LEAST * LEAST;
    part.clamp(LEAST_USUAL, Limits::default().journal)
}

impl Journal<File> {
    /// For a region's file that is mapped privately at `base`.
    ///
    /// # Errors
    /// As [`Journal::new`].
    ///
    /// # Safety
    /// As [`Journal::new`].
    pub(crate) unsafe fn of_file(file: File, base: *const u8) -> io::Result<Journal<File>> {
        // Of a medium that is nearly full it takes a small part, and does with more checkpoints.
        let usual = Limits::default();
        let part = free_bytes(&file) / 8 / LEAST * LEAST;
        let limits = Limits {
            journal: part.clamp(LEAST, beside(file.metadata()?.len())),
            ..usual
        };
        // SAFETY: as this function.
        let mut journal = unsafe { Journal::new(file, base, limits) }?;
        journal.mapped = true;
        Ok(journal)
    }
}

impl<D: Disk> Domain for Journal<D> {
    fn name(&self) -> &'static str {
        "file"
    }

    #[inline]
    fn write_back(&mut self, address: *const u8, bytes: u64) {
        let offset = (address.addr() - self.base.addr()) as u64;
        debug_assert!(offset >= SECTOR, "the first sector is the journal's");
        self.changes.add(offset, bytes);
    }

    fn fence(&mut self, why: Fence) -> io::Result<()> {
        match self.grouped || !why.ends_something() {
            // Stores of one transaction need no order.
            true if !self.failed => Ok(()),
            _ => self.commit(),
        }
    }

    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let before = self.limits.journal;
        if self.mapped {
            self.limits.journal = before.max(beside(bytes));
        }
        let has_journal = self.place.is_some();
        let least = (bytes / REGION_PARTS / LEAST * LEAST).max(LEAST);
        let with = |journal: u64| bytes + if has_journal { journal } else { 0 };
        while let Err(e) = self.reserve(with(self.limits.journal)) {
            // On a medium that is nearly full a shorter journal does, which a long value still fits into. One that is full has not failed: all
            // is as it was.
            if !has_journal || self.limits.journal <= least || !is_full(&e) {
                self.limits.journal = before;
                return Err(e);
            }
            self.limits.journal = (self.limits.journal / 4).max(least);
        }
        self.guarded(|journal| journal.move_to(bytes))?;
        self.region = bytes;
        Ok(())
    }

    fn make_room_to_commit(&mut self, bytes: u64) -> io::Result<()> {
        // The header of each run of lines takes less than an eighth of that.
        let pending = self.changes.pages().len() as u64 * PAGE;
        let needed = (pending + bytes) / 8 * 9 + PAGE;
        let (at, there) = match self.place {
            Some(place) => (place.at, place.bytes),
            None => (self.region, self.limits.journal),
        };
        match needed <= there {
            true => Ok(()),
            // The journal is made so long when it is needed; the medium has the room by then.
            false => self.reserve(at + needed),
        }
    }

    fn grown(&mut self, bytes: u64) {
        self.changes.grow(bytes);
        self.touched.grow(bytes);
    }

    fn set_grouped(&mut self, grouped: bool) {
        self.grouped = grouped;
    }

    fn commit(&mut self) -> io::Result<()> {
        self.guarded(Journal::append)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.guarded(|journal| {
            journal.append()?;
            journal.checkpoint()
        })
    }

    fn uncommitted(&self) -> bool {
        !self.changes.is_empty()
    }

    fn close(&mut self) -> io::Result<()> {
        self.guarded(|journal| {
            journal.append()?;
            if journal.place.is_none() {
                return Ok(());
            }
            journal.write_in_place()?;
            replay::take_off(&mut journal.disk, journal.region, journal.number)?;
            journal.place = None;
            journal.end = 0;
            Ok(())
        })
    }
}
