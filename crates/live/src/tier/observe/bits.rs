//! Accessed bits of whole mappings: how much of each was used since the last look (`clear_refs`, `smaps`).

use super::{Observer, Use, is_due};
use crate::sampled::used;
use crate::tier::memory::movable;
use std::io;

/// The used mappings of one process.
pub struct Bits {
    process: u32,
    page_bytes: u64,
    looks: u64,
}

impl Bits {
    pub fn of(process: u32, page_bytes: u64) -> Bits {
        Bits {
            process,
            page_bytes,
            looks: 0,
        }
    }
}

impl Observer for Bits {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let mappings = used::look(self.process)?;
        used::forget(self.process)?;
        self.looks += 1;
        // What was used before the first look is from all its life.
        if self.looks == 1 {
            return Ok(());
        }
        let bytes = self.page_bytes;
        for mapping in movable(&mappings).filter(|m| m.resident > 0) {
            let share = mapping.used as f64 / mapping.resident as f64;
            if !is_due(share, self.looks) {
                continue;
            }
            let first = pages.partition_point(|page| (page + 1) * bytes <= mapping.start);
            let within = pages[first..].iter();
            let within = within.take_while(|page| **page * bytes < mapping.end);
            uses.extend(within.map(|&page| Use {
                page,
                writes: false,
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_all_the_time_is_seen() {
        let mut held = vec![1u8; 64 << 12];
        let page = held.as_ptr() as u64 / 4096 + 8;
        let mut bits = Bits::of(std::process::id(), 4096);
        let mut uses = Vec::new();
        for _ in 0..8 {
            held.iter_mut()
                .for_each(|byte| *byte = byte.wrapping_add(1));
            bits.look(&[page], &mut uses).unwrap();
        }
        assert!(uses.iter().any(|used| used.page == page));
        std::hint::black_box(held);
    }
}
