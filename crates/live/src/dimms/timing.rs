//! Lines of memory whose physical addresses are known, and how long two of them take that are read in turn.

use crate::arch;
use crate::mapped::Mapped;
use crate::place::bins::PAGE;
use crate::place::pagemap::{Entry, Pagemap, frames_readable};
use crate::place::reserve::{Unit, populate};
use std::collections::HashMap;

const LINE: usize = 64;
/// Lines that are timed.
const LINES: usize = 8192;
/// The time of a pair is the middle one of so many.
const ROUNDS: usize = 15;

/// Some lines of memory of ours.
pub struct Lines {
    memory: Mapped,
    /// Where each physical address is.
    at: HashMap<u64, usize>,
    addresses: Vec<u64>,
}

impl Lines {
    /// Takes so many bytes of memory, in huge pages where the kernel has some, and chooses lines in it.
    ///
    /// # Errors
    /// A line: frame numbers are hidden, the processor cannot be asked, there is no more memory.
    pub fn take(bytes: u64) -> Result<Lines, String> {
        let probe = 0u64;
        if arch::read_two(&probe, &probe).is_none() {
            return Err("reads past the caches are timed on x86-64 alone: programs of this processor have no clock that is fine enough".into());
        }
        frames_readable().map_err(|e| e.to_string())?;
        let pages = bytes as usize / PAGE;
        let all = pages * PAGE;
        let memory =
            Mapped::unreserved(all).map_err(|e| format!("{bytes} bytes of memory: {e}"))?;
        let start = memory.start();
        let mut lines = Lines {
            memory,
            at: HashMap::new(),
            addresses: Vec::new(),
        };
        // SAFETY: mapped just now, private and anonymous, and nobody else's.
        unsafe { populate(start, all, Unit::Huge) }.map_err(|e| e.to_string())?;
        let mut frames: Vec<Option<u64>> = Vec::with_capacity(pages);
        let read = |_: usize, entry: Entry| frames.push(entry.frame());
        let map = Pagemap::own().map_err(|e| e.to_string())?;
        map.read(start, pages, read).map_err(|e| e.to_string())?;
        // Multiples of a number that shares no factor with the count go over all lines, spread evenly.
        let count = all / LINE;
        let step = (count as f64 * 0.618) as usize | 1;
        for line in (0..LINES.min(count)).map(|i| i.wrapping_mul(step) % count) {
            let offset = line * LINE;
            if let Some(frame) = frames[offset / PAGE] {
                let physical = frame * PAGE as u64 + (offset % PAGE) as u64;
                if lines.at.insert(physical, start + offset).is_none() {
                    lines.addresses.push(physical);
                }
            }
        }
        Ok(lines)
    }

    /// Their physical addresses.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// Ticks of the processor's clock that reading both takes, by their physical addresses. The kernel may move pages; few of them
    /// in so short a time.
    pub fn time(&self, a: u64, b: u64) -> f64 {
        let line = |address: u64| {
            let at = self
                .at
                .get(&address)
                .copied()
                .unwrap_or(self.memory.start());
            // SAFETY: a line within the mapping, which lives as long as `self` and is written by nobody.
            unsafe { &*(at as *const u64) }
        };
        let (a, b) = (line(a), line(b));
        let mut ticks: [u64; ROUNDS] =
            std::array::from_fn(|_| arch::read_two(a, b).unwrap_or_default());
        ticks.sort_unstable();
        ticks[ROUNDS / 2] as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_physical_addresses_and_reading_them_takes_time() {
        let lines = match Lines::take(8 << 20) {
            Ok(lines) => lines,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let all = lines.addresses();
        assert!(all.len() > LINES / 2, "{}", all.len());
        assert!(all.iter().all(|address| address % LINE as u64 == 0));
        assert!(lines.time(all[0], all[1]) > 0.0);
    }
}
