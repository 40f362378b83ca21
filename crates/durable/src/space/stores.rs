//! Stores into durable objects: what is logged before, and what is in the medium after.

use super::Space;
use crate::domain::Fence;
use crate::error::Result;
use crate::layout::*;
use crate::log;

impl Space {
    /// Before `bytes` at an offset are stored to: in a region, what is there is logged.
    ///
    /// # Errors
    /// If the log has no room, or the medium fails.
    #[inline]
    pub fn before_store(&mut self, offset: u64, bytes: u64) -> Result<()> {
        match self.depth {
            0 => Ok(()),
            _ => self.log_lines(offset, bytes),
        }
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
            let is_fresh = |&(from, to): &(u64, u64)| from < at + CACHE_LINE && at < to;
            if self.fresh.iter().rev().any(is_fresh) || !self.logged.insert(line) {
                continue;
            }
            if !self.log.fits(CACHE_LINE) {
                self.extend_log()?;
            }
            let region = self.region;
            let (entry, bytes) = self.log.add(&mut self.image, region, at);
            self.flush(entry, bytes);
            self.stats.logged += 1;
            logged = true;
        }
        self.last_logged = last;
        match logged {
            true => self.fence(Fence::Logged),
            false => Ok(()),
        }
    }

    /// Gives the log room among the objects, for the rest of this region.
    fn extend_log(&mut self) -> Result<()> {
        let bytes =
            (self.stats.logged * log::entry_bytes(CACHE_LINE)).clamp(1 << 20, 64 << 20) / 8 * 8;
        let at = self.allocate(bytes)?;
        self.fresh.pop();
        let region = self.region;
        let (link, length) = self.log.go_on(&mut self.image, region, at, bytes);
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
            0 => self.fence(Fence::Stored),
            _ => Ok(()),
        }
    }

    /// Stores bytes at an offset.
    ///
    /// # Errors
    /// As [`Space::before_store`].
    pub fn store(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.before_store(offset, bytes.len() as u64)?;
        self.image.write(offset, bytes);
        self.after_store(offset, bytes.len() as u64)
    }
}
