//! Which watched pages of a process were written, from outside: the shim has the kernel note it
//! (`userfaultfd`, write protection without messages), and `PAGEMAP_SCAN` tells and begins anew. Linux 6.7 and later.

use crate::place::pagemap::Pagemap;
use crate::place::scan::{Region, scan};
use std::collections::HashSet;

/// A process's map of pages.
pub struct Writes {
    pages: Pagemap,
}

// linux/fs.h: protect what is found, and only scan where the kernel was asked to record writes.
const WP_MATCHING: u64 = 1;
const CHECK_WPASYNC: u64 = 2;
const IS_WRITTEN: u64 = 2;

impl Writes {
    pub fn of(process: u32) -> Option<Writes> {
        let pages = Pagemap::of(process).ok()?;
        Some(Writes { pages })
    }

    /// Which of these pages were written since the last call; `None` if that is noted of none of them.
    pub fn written(&mut self, pages: &[u64]) -> Option<HashSet<u64>> {
        let (mut written, mut noted) = (HashSet::new(), false);
        for &page in pages {
            let (range, flags) = (page..page + 4096, WP_MATCHING | CHECK_WPASYNC);
            let mut found = [Region::default()];
            let answers = scan(&self.pages, range, flags, IS_WRITTEN, &mut found);
            noted |= answers.is_ok();
            if answers.is_ok_and(|(found, _)| found > 0) {
                written.insert(page);
            }
        }
        noted.then_some(written)
    }
}
