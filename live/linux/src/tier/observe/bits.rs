//! Accessed bits of whole mappings: how much of each was accessed since the last scan (`clear_refs`, `smaps`).

use super::{Observer, Scope, Use, is_due, within};
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
        // Accesses before the first scan are from all its life.
        if self.looks == 1 {
            return Ok(());
        }
        let bytes = self.page_bytes;
        for mapping in self.scope.of(&mappings).filter(|m| m.resident > 0) {
            let share = mapping.used as f64 / mapping.resident as f64;
            if !is_due(share, self.looks) {
                continue;
            }
            let within = within(pages, bytes, &(mapping.start..mapping.end));
            uses.extend(within.iter().map(|&page| Use::of(page)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::Mapped;

    /// Memory between two inaccessible pages, so that it is a mapping of its own whatever other tests map.
    struct Alone(Mapped);

    const BYTES: usize = 64 << 12;

    impl Alone {
        fn new() -> Alone {
            let mapped = Mapped::new(BYTES + 8192).unwrap();
            for edge in [0, 4096 + BYTES] {
                // SAFETY: a page of new memory, which is never touched.
                let closed = unsafe {
                    let edge = mapped.as_ptr::<u8>().add(edge);
                    libc::mprotect(edge.cast(), 4096, libc::PROT_NONE)
                };
                assert_eq!(closed, 0);
            }
            Alone(mapped)
        }

        fn write(&self, byte: u8) {
            // SAFETY: within the mapping, which lives as long as we.
            unsafe { self.0.as_ptr::<u8>().add(4096).write_bytes(byte, BYTES) };
        }
    }

    #[test]
    fn memory_in_use_all_the_time_is_seen() {
        let held = Alone::new();
        let page = held.0.start() as u64 / 4096 + 9;
        let mut bits = Bits::of(std::process::id(), Scope::Tiered, 4096);
        let mut uses = Vec::new();
        // Other tests of this process forget its bits too, at times just between our use and our look.
        for round in 0..255 {
            held.write(round);
            bits.look(&[page], &mut uses).unwrap();
            if uses.iter().any(|used| used.page == page) {
                return;
            }
        }
        panic!("255 scans have not seen it");
    }
}
