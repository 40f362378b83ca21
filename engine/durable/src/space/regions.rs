//! Failure-atomic regions: where they begin, and how they end.
//!
//! A region within a region is a savepoint. While it is open it logs anew what it stores to, after the entries of the outer regions. Rolled
//! back, it restores these lines, and its entries are the first to be overwritten. One that is still valid by then does no harm after a crash: it
//! holds what its line held at the savepoint, and the entries before it, which are restored later, hold what it held when the outermost region
//! began.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::{CACHE_LINE, LOG, VERSION, with_sum};
use crate::log;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// The state of an outer region while an inner one is open.
pub(super) struct Savepoint {
    /// Cache lines that the outer region logged.
    logged: FxHashSet<u64>,
    /// Where the outer region makes objects.
    fresh: BTreeMap<u64, u64>,
    /// Where the log goes on if the inner region is rolled back.
    log: log::Position,
    /// Entries of inner regions before this one's.
    entries: usize,
}

impl Space {
    /// Begins a failure-atomic region, or one within that which is open.
    pub fn begin(&mut self) {
        self.depth += 1;
        self.alloc.separate(self.addresses.0.bytes());
        let gaps = self.alloc.gaps().into_iter();
        let fresh = gaps.filter(|(from, to)| from < to).collect();
        self.last_logged = u64::MAX;
        if self.depth == 1 {
            self.region += 1;
            self.log.begin();
            self.logged.clear();
            self.made = false;
            self.fresh = fresh;
            return;
        }
        self.outer.push(Savepoint {
            logged: std::mem::take(&mut self.logged),
            fresh: std::mem::replace(&mut self.fresh, fresh),
            log: self.log.position(),
            entries: self.entries.len(),
        });
    }

    /// Ends the region that was begun last. The outermost one's stores survive from then on; those of one within it are the outer one's now.
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
                if let Some(outer) = self.outer.pop() {
                    self.add_to_outer(outer.fresh);
                    merge(&mut self.logged, outer.logged);
                }
                if self.outer.is_empty() {
                    self.entries.clear();
                }
                Ok(())
            }
        }
    }

    /// Objects made in a region are fresh for the outer one too.
    fn add_to_outer(&mut self, fresh: BTreeMap<u64, u64>) {
        let inner = std::mem::replace(&mut self.fresh, fresh);
        // A gap of the outer region may have been used up to the inner one's: it stays as it was.
        for (from, to) in inner {
            let end = self.fresh.entry(from).or_insert(to);
            *end = (*end).max(to);
        }
    }

    fn changed_nothing(&mut self) -> bool {
        let nothing = self.log.is_empty() && !self.made;
        if nothing {
            self.region -= 1;
        }
        nothing
    }

    fn end_log(&mut self) -> Result<()> {
        self.alloc.separate(self.addresses.0.bytes());
        match self.log.is_empty() {
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

    /// Rolls back what the region that was begun last stored, and ends it: regions around it go on. Does nothing if none is open.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn roll_back(&mut self) -> Result<()> {
        let Some(outer) = self.outer.pop() else {
            return self.roll_back_all();
        };
        self.depth -= 1;
        let entries = self.entries.split_off(outer.entries);
        for &(line, entry) in entries.iter().rev() {
            let held = log::held(&self.image, entry);
            self.image.write(line, &held);
            self.flush(line, CACHE_LINE);
        }
        if !entries.is_empty() {
            // Its entries are overwritten from here on.
            self.fence(Fence::TakenBack)?;
        }
        self.log.go_back(outer.log);
        self.logged = outer.logged;
        self.last_logged = u64::MAX;
        self.add_to_outer(outer.fresh);
        self.stats.taken_back += 1;
        Ok(())
    }

    /// Rolls back all stores since the outermost region began, and ends all regions. Does nothing if none is open.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn roll_back_all(&mut self) -> Result<()> {
        if self.depth == 0 {
            return Ok(());
        }
        self.depth = 0;
        self.outer.clear();
        self.entries.clear();
        self.stats.taken_back += 1;
        if self.changed_nothing() {
            return Ok(());
        }
        for (offset, bytes) in log::take_back(&mut self.image, VERSION) {
            self.flush(offset, bytes);
        }
        self.fence(Fence::TakenBack)?;
        self.end_log()?;
        // Objects stay durable whose originals lead to them, and so what the program means in each run stays known.
        self.add_named()
    }

    /// Whether a region is open.
    pub fn in_region(&self) -> bool {
        self.depth > 0
    }
}

/// Adds all of one set to another.
fn merge(into: &mut FxHashSet<u64>, mut other: FxHashSet<u64>) {
    if into.len() < other.len() {
        std::mem::swap(into, &mut other);
    }
    into.extend(other);
}
