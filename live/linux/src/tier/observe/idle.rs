//! Idle page tracking (Documentation/admin-guide/mm/idle_page_tracking.rst): frames are marked as idle, and those that are not
//! idle any more at the next scan were accessed.

use super::{Observer, Use};
use crate::place::pagemap::Pagemap;
use crate::tier::memory::of_place;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A bit for each frame, in words of 64.
const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";
const BASE: u64 = 4096;

/// The idle pages of one process.
pub struct Idle {
    process: u32,
    page_bytes: u64,
    bitmap: File,
    /// Pages whose frames were marked, ascending: page, frame.
    marked: Vec<(u64, u64)>,
    looks: u64,
}

impl Idle {
    /// # Errors
    /// The kernel has none, or this user may not.
    pub fn open(process: u32, page_bytes: u64) -> io::Result<Idle> {
        Idle::with(Path::new(BITMAP), process, page_bytes)
    }

    fn with(bitmap: &Path, process: u32, page_bytes: u64) -> io::Result<Idle> {
        let bitmap = OpenOptions::new().read(true).write(true).open(bitmap)?;
        Ok(Idle {
            process,
            page_bytes,
            bitmap,
            marked: Vec::new(),
            looks: 0,
        })
    }

    /// Frames of pages: of each one of the kernel's pages within it, in turn.
    fn frames(&self, pages: &[u64]) -> io::Result<Vec<(u64, u64)>> {
        let map = Pagemap::of(self.process).map_err(of_place)?;
        let within = (self.page_bytes / BASE).max(1);
        // An odd number of steps comes by all of them.
        let turn = self.looks.wrapping_mul(7919) % within;
        let mut frames = Vec::with_capacity(pages.len());
        for &page in pages {
            let mut found = None;
            let mut each = |_: usize, entry: crate::place::pagemap::Entry| found = entry.frame();
            let start = (page * within + turn) * BASE;
            if map.read(start as usize, 1, &mut each).is_ok() {
                frames.extend(found.map(|frame| (page, frame)));
            }
        }
        Ok(frames)
    }

    fn is_idle(&self, frame: u64) -> bool {
        let mut word = [0u8; 8];
        let at = frame / 64 * 8;
        let read = self.bitmap.read_exact_at(&mut word, at);
        read.is_ok() && u64::from_ne_bytes(word) & 1 << (frame % 64) != 0
    }

    fn mark(&self, frames: &[(u64, u64)]) -> io::Result<()> {
        let mut words: Vec<u64> = frames.iter().map(|(_, frame)| frame / 64).collect();
        words.sort_unstable();
        words.dedup();
        let mut bits = std::collections::HashMap::new();
        for (_, frame) in frames {
            *bits.entry(frame / 64).or_insert(0u64) |= 1 << (frame % 64);
        }
        for word in words {
            // Bits that are not set change nothing.
            let bits: u64 = bits[&word];
            self.bitmap.write_all_at(&bits.to_ne_bytes(), word * 8)?;
        }
        Ok(())
    }
}

impl Observer for Idle {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let used = self
            .marked
            .iter()
            .filter(|(_, frame)| !self.is_idle(*frame));
        uses.extend(used.map(|&(page, _)| Use::of(page)));
        self.looks += 1;
        let frames = self.frames(pages)?;
        self.mark(&frames)?;
        self.marked = frames;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ordinary file in place of the kernel's: it says that all is idle that was marked, until a bit is cleared.
    #[test]
    fn frames_that_are_not_idle_any_more_were_used() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = vec![1u8; 8 * BASE as usize];
        let first = held.as_ptr() as u64 / BASE + 1;
        let pages: Vec<u64> = (first..first + 4).collect();
        let mut idle = Idle::with(file.path(), std::process::id(), BASE).unwrap();
        let mut uses = Vec::new();
        idle.look(&pages, &mut uses).unwrap();
        assert!(uses.is_empty(), "nothing was marked before");
        if idle.marked.len() < 4 {
            return varve_skip::skip!("frame numbers are hidden from this user");
        }
        let frame = idle.marked[2].1;
        assert!(idle.is_idle(frame));
        let at = frame / 64 * 8;
        let mut word = [0u8; 8];
        idle.bitmap.read_exact_at(&mut word, at).unwrap();
        let without = u64::from_ne_bytes(word) & !(1 << (frame % 64));
        idle.bitmap
            .write_all_at(&without.to_ne_bytes(), at)
            .unwrap();
        idle.look(&pages, &mut uses).unwrap();
        let used: Vec<u64> = uses.iter().map(|u| u.page).collect();
        assert_eq!(used, [first + 2]);
        std::hint::black_box(held);
    }
}
