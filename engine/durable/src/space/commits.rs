//! The time at which stores are in the medium: at the end of each operation, or for many operations at once.

use super::Space;
use crate::error::Result;

impl Space {
    /// Groups operations: from now on their stores are in the medium only after [`Space::commit`], all of it or nothing. A crash, of the
    /// program too, leaves the state of the last commit. Only regions of ordinary files that are synced at each commit
    /// ([`Medium::File`](crate::Medium::File) without an interval) can be grouped; others go on as they are. All pending stores are committed when
    /// grouping ends.
    ///
    /// # Errors
    /// As [`Space::commit`].
    pub fn set_grouped(&mut self, grouped: bool) -> Result<()> {
        self.domain.set_grouped(grouped);
        match grouped {
            true => Ok(()),
            false => self.commit_now(),
        }
    }

    /// Commits all stores to the medium. An open failure-atomic region is committed with its log: recovery after a crash rolls it back, unless its
    /// end is committed too.
    ///
    /// # Errors
    /// If the medium fails: nothing is stored any more then.
    pub fn commit_now(&mut self) -> Result<()> {
        self.works()?;
        match self.domain.commit() {
            Ok(()) if !self.watch.is_gone() => Ok(()),
            done => Err(self.fail(done)),
        }
    }

    /// Whether a crash may lose stores because they are not committed yet.
    pub fn uncommitted(&self) -> bool {
        self.domain.uncommitted()
    }

    /// Has the medium keep nothing beside the region any more.
    pub(super) fn close_medium(&mut self) -> Result<()> {
        let done = self.domain.close();
        done.map_err(|e| self.fail(Err(e)))
    }
}
