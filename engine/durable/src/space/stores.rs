//! Stores into durable objects: undo logging before, and write-back after.

use super::Space;
use crate::domain::Fence;
use crate::error::Result;
use crate::layout::*;
use crate::log;

impl Space {
    /// Before `bytes` of an object, `at` from its start, are stored to: in a region, what is there is logged.
    ///
    /// # Errors
    /// If the log has no room, or the medium fails.
    #[inline]
    pub fn before_store(&mut self, object: u64, at: u64, bytes: u64) -> Result<()> {
        self.prepare(object + at, bytes)?;
        self.stored_over(object, at, bytes);
        Ok(())
    }

    /// The same for what is in no object.
    #[inline]
    pub(crate) fn prepare(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.works()?;
        self.open_pages(offset, bytes)?;
        if self.depth > 0 {
            self.log_lines(offset, bytes)?;
        }
        // A running copy of the region saves the old contents before the caller writes.
        self.image.place_to_write(offset, bytes);
        Ok(())
    }

    fn log_lines(&mut self, offset: u64, bytes: u64) -> Result<()> {
        let first = offset / CACHE_LINE;
        let last = (offset + bytes.max(1) - 1) / CACHE_LINE;
        if first == last && first == self.last_logged {
            return Ok(());
        }
        let mut logged = false;
        for line in first..=last {
            let at = line * CACHE_LINE;
            let before = self.fresh.range(..at + CACHE_LINE).next_back();
            let is_fresh = before.is_some_and(|(_, &to)| at < to);
            if is_fresh || !self.logged.insert(line) {
                continue;
            }
            if !self.log.fits(CACHE_LINE) {
                self.extend_log()?;
            }
            if let Some((place, bytes)) = self.log.among_objects(CACHE_LINE) {
                self.open_pages(place, bytes)?;
            }
            let region = self.region;
            let (entry, bytes) = self.log.add(&mut self.image, region, at);
            self.flush(entry, bytes);
            if !self.outer.is_empty() {
                self.entries.push((at, entry));
            }
            self.stats.logged += 1;
            logged = true;
        }
        self.last_logged = last;
        match logged {
            true => self.fence(Fence::Logged),
            false => Ok(()),
        }
    }

    /// Gives the log room among the objects: the room of earlier regions, or a size equal to the bytes that this one
    /// has logged by now.
    fn extend_log(&mut self) -> Result<()> {
        if self.log.next_extent().is_none() {
            let logged = self.logged.len() as u64 * log::entry_bytes(CACHE_LINE);
            let bytes = logged.clamp(64 << 10, 64 << 20) / PAGE * PAGE;
            let at = self.allocate(bytes)?;
            self.log.add_extent(at, bytes);
        }
        let (at, bytes) = self.log.next_extent().expect("just looked at");
        self.open_pages(at, bytes)?;
        let region = self.region;
        if let Some((place, bytes)) = self.log.among_objects(0) {
            self.open_pages(place, bytes)?;
        }
        let (link, length) = self.log.go_on(&mut self.image, region);
        self.flush(at, 64);
        self.fence(Fence::Logged)?;
        self.flush(link, length);
        self.fence(Fence::Logged)
    }

    /// After `bytes` at an offset were stored to.
    ///
    /// # Errors
    /// If the medium fails.
    #[inline]
    pub fn after_store(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.stats.stores += 1;
        self.flush(offset, bytes);
        match self.depth {
            0 => {
                self.fence(Fence::Stored)?;
                self.seal_if_many()
            }
            _ => Ok(()),
        }
    }

    /// Stores bytes into an object, `at` from its start.
    ///
    /// # Errors
    /// As [`Space::before_store`].
    pub fn store(&mut self, object: u64, at: u64, bytes: &[u8]) -> Result<()> {
        self.stored_over(object, at, bytes.len() as u64);
        self.write(object + at, bytes)
    }

    /// Stores bytes that are in no object.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.prepare(offset, bytes.len() as u64)?;
        self.image.write(offset, bytes);
        self.after_store(offset, bytes.len() as u64)
    }
}
