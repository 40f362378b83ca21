//! Which cache lines of a region were stored to: a bit for each line, in a word for each page, and a list of the pages that have any.

use crate::layout::{CACHE_LINE, PAGE};

const _: () = assert!(
    PAGE / CACHE_LINE == 64,
    "a page's lines are the bits of a word"
);

/// Lines that were announced and are not in the journal yet.
#[derive(Default)]
pub(super) struct Changes {
    /// Lines by page.
    masks: Vec<u64>,
    /// Pages whose words are not zero, each once.
    pages: Vec<u32>,
}

impl Changes {
    /// The region has `bytes` bytes from now on.
    pub fn grow(&mut self, bytes: u64) {
        let pages = bytes.div_ceil(PAGE) as usize;
        if pages > self.masks.len() {
            self.masks.resize(pages, 0);
        }
    }

    /// Bytes at an offset were stored to.
    #[inline]
    pub fn add(&mut self, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (first, last) = (offset / CACHE_LINE, (offset + bytes - 1) / CACHE_LINE);
        if first / 64 == last / 64 {
            return self.add_lines(first / 64, first % 64, last % 64);
        }
        self.add_lines(first / 64, first % 64, 63);
        for page in first / 64 + 1..last / 64 {
            self.add_lines(page, 0, 63);
        }
        self.add_lines(last / 64, 0, last % 64);
    }

    #[inline]
    fn add_lines(&mut self, page: u64, from: u64, to: u64) {
        let word = &mut self.masks[page as usize];
        if *word == 0 {
            self.pages.push(page as u32);
        }
        *word |= u64::MAX >> (63 - (to - from)) << from;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Changed pages, each once.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Changed bytes as runs of whole lines, in their order and as long as can be: offsets and bytes.
    pub fn runs(&mut self, runs: &mut Vec<(u64, u64)>) {
        runs.clear();
        self.pages.sort_unstable();
        for &page in &self.pages {
            let mut mask = self.masks[page as usize];
            let mut line = 0;
            while mask != 0 {
                line += u64::from(mask.trailing_zeros());
                mask = self.masks[page as usize] >> line;
                let lines = u64::from(mask.trailing_ones());
                let (at, bytes) = (
                    u64::from(page) * PAGE + line * CACHE_LINE,
                    lines * CACHE_LINE,
                );
                match runs.last_mut() {
                    Some((from, length)) if *from + *length == at => *length += bytes,
                    _ => runs.push((at, bytes)),
                }
                line += lines;
                mask = match line {
                    64.. => 0,
                    _ => self.masks[page as usize] >> line,
                };
            }
        }
    }

    /// There are none any more.
    pub fn clear(&mut self) {
        for page in self.pages.drain(..) {
            self.masks[page as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn runs_are_the_lines_that_were_stored_to(
            stores in proptest::collection::vec((0u64..40_000, 0u64..9000), 0..12)
        ) {
            let mut changes = Changes::default();
            changes.grow(64 << 10);
            let mut lines = BTreeSet::new();
            for &(at, bytes) in &stores {
                changes.add(at, bytes);
                lines.extend((at..at + bytes).map(|byte| byte / CACHE_LINE));
            }
            let mut runs = Vec::new();
            changes.runs(&mut runs);
            prop_assert!(runs.windows(2).all(|w| w[0].0 + w[0].1 < w[1].0));
            let found: Vec<u64> = runs
                .iter()
                .flat_map(|&(at, bytes)| (at / CACHE_LINE)..(at + bytes) / CACHE_LINE)
                .collect();
            prop_assert_eq!(found, lines.into_iter().collect::<Vec<_>>());
            changes.clear();
            changes.runs(&mut runs);
            prop_assert!(runs.is_empty() && changes.is_empty());
        }
    }
}
