//! Accessed bits of whole mappings: how much of each was used since the last look (`clear_refs`, `smaps`).

use super::{Observer, Scope, Use, is_due};
use crate::sampled::used;
use std::io;

/// The used mappings of one process.
pub struct Bits {
    process: u32,
    scope: Scope,
    page_bytes: u64,
    looks: u64,
}

impl Bits {
    pub fn of(process: u32, scope: Scope, page_bytes: u64) -> Bits {
        Bits {
            process,
            scope,
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
        for mapping in self.scope.of(&mappings).filter(|m| m.resident > 0) {
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

    /// Memory between two pages that nobody may touch, so that it is a mapping of its own whatever other tests map.
    struct Alone(*mut u8);

    const BYTES: usize = 64 << 12;

    impl Alone {
        fn new() -> Alone {
            let (all, none) = (BYTES + 8192, libc::PROT_NONE);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: new memory, of which the middle may be used.
            unsafe {
                let start = libc::mmap(std::ptr::null_mut(), all, none, flags, -1, 0);
                assert_ne!(start, libc::MAP_FAILED);
                let middle = start.cast::<u8>().add(4096);
                let both = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(middle.cast(), BYTES, both), 0);
                Alone(middle)
            }
        }

        fn write(&self, byte: u8) {
            // SAFETY: within the mapping, which lives as long as we.
            unsafe { self.0.write_bytes(byte, BYTES) };
        }
    }

    impl Drop for Alone {
        fn drop(&mut self) {
            // SAFETY: mapped by us, and nobody uses it any more.
            unsafe { libc::munmap(self.0.sub(4096).cast(), BYTES + 8192) };
        }
    }

    #[test]
    fn memory_in_use_all_the_time_is_seen() {
        let held = Alone::new();
        let page = held.0 as u64 / 4096 + 8;
        let mut bits = Bits::of(std::process::id(), Scope::Own, 4096);
        let mut uses = Vec::new();
        // Other tests of this process forget its bits too, at times just between our use and our look.
        for round in 0..255 {
            held.write(round);
            bits.look(&[page], &mut uses).unwrap();
            if uses.iter().any(|used| used.page == page) {
                return;
            }
        }
        panic!("255 looks have not seen it");
    }
}
