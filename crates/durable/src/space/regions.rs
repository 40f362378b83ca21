//! Failure-atomic regions: where they begin, and how they end.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::LOG;
use crate::log::{self, Log};

impl Space {
    /// Begins a failure-atomic region, or one within that which is open.
    pub fn begin(&mut self) {
        self.depth += 1;
        if self.depth == 1 {
            self.region = log::finished(&self.image) + 1;
            self.log = Log::empty();
            self.logged.clear();
            self.last_logged = u64::MAX;
            self.fresh.clear();
            self.alloc.separate();
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
                if self.logged.is_empty() && self.fresh.is_empty() {
                    return Ok(());
                }
                self.fence(Fence::Finished)?;
                self.end_log()
            }
            _ => {
                self.depth -= 1;
                Ok(())
            }
        }
    }

    fn end_log(&mut self) -> Result<()> {
        self.alloc.separate();
        match self.logged.is_empty() {
            true => Ok(()),
            false => self.finish_log(),
        }
    }

    pub(super) fn finish_log(&mut self) -> Result<()> {
        self.image.set_u64(LOG, self.region);
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
        if self.logged.is_empty() && self.fresh.is_empty() {
            return Ok(());
        }
        for (offset, bytes) in log::take_back(&mut self.image) {
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
