//! Failure-atomic regions: where they begin, and how they end.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::{LOG, VERSION, with_sum};
use crate::log;

impl Space {
    /// Begins a failure-atomic region, or one within that which is open.
    pub fn begin(&mut self) {
        self.depth += 1;
        if self.depth == 1 {
            self.region += 1;
            self.log.begin();
            self.logged.clear();
            self.last_logged = u64::MAX;
            self.made = false;
            self.alloc.separate(self.addresses.0.bytes());
            let gaps = self.alloc.gaps().into_iter();
            self.fresh = gaps.filter(|(from, to)| from < to).collect();
        }
    }

    /// Ends the region that was begun last. The outermost one's stores survive from then on.
    ///
    /// # Errors
    /// If none is open, or the medium fails.
    pub fn end(&mut self) -> Result<()> {
        match self.depth {
            0 => Err(Error::Usage(
                "a failure-atomic region is ended and none was begun".into(),
            )),
            1 => {
                self.depth = 0;
                self.stats.regions += 1;
                if self.changed_nothing() {
                    return Ok(());
                }
                self.fence(Fence::Finished)?;
                self.add_named()?;
                self.end_log()?;
                self.seal_if_many()
            }
            _ => {
                self.depth -= 1;
                Ok(())
            }
        }
    }

    fn changed_nothing(&mut self) -> bool {
        let nothing = self.logged.is_empty() && !self.made;
        if nothing {
            self.region -= 1;
        }
        nothing
    }

    fn end_log(&mut self) -> Result<()> {
        self.alloc.separate(self.addresses.0.bytes());
        match self.logged.is_empty() {
            true => self.region -= 1,
            false => self.finish_log()?,
        }
        for (at, bytes) in self.log.give_back() {
            self.alloc.free(at, bytes);
        }
        Ok(())
    }

    pub(super) fn finish_log(&mut self) -> Result<()> {
        self.image.set_u64(LOG, with_sum(self.region));
        self.flush(LOG, 8);
        self.fence(Fence::Committed)
    }

    /// Takes back all stores since the outermost region began, and ends all regions. Does nothing if none is open.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn take_back(&mut self) -> Result<()> {
        if self.depth == 0 {
            return Ok(());
        }
        self.depth = 0;
        self.stats.taken_back += 1;
        self.new_named.clear();
        if self.changed_nothing() {
            return Ok(());
        }
        for (offset, bytes) in log::take_back(&mut self.image, VERSION) {
            self.flush(offset, bytes);
        }
        self.fence(Fence::TakenBack)?;
        self.end_log()
    }

    /// Whether a region is open.
    pub fn in_region(&self) -> bool {
        self.depth > 0
    }
}
