//! Counters that a HotSpot virtual machine keeps in its own memory (`jstat` reads them from outside): how many collections
//! of each kind there were. They may be read at any time, also while the machine stands still.
//!
//! ```text
//! 0xcafec0c0 (big-endian), byte order (1: little-endian), version 2, ..., 24: where entries begin, 28: their number
//! entry: its length, where its name is, length of a vector (0: none), type, ..., 16: where its value is
//! ```

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The counters; none if the machine was told to keep none (`-XX:-UsePerfData`).
#[derive(Clone, Copy)]
pub struct Counters {
    /// Collections of the young generation.
    young: &'static AtomicI64,
    /// Collections of everything.
    full: &'static AtomicI64,
    /// What is reserved for metaspace, bytes.
    metaspace: Option<&'static AtomicI64>,
}

impl Counters {
    /// Finds them in this very process.
    pub fn find(maps: &str) -> Option<Counters> {
        let memory = memory(maps)?;
        Some(Counters {
            young: value(memory, "sun.gc.collector.0.invocations")?,
            full: value(memory, "sun.gc.collector.1.invocations")?,
            metaspace: value(memory, "sun.gc.metaspace.maxCapacity"),
        })
    }

    /// Collections so far: of the young generation, of everything.
    pub fn collections(&self) -> [i64; 2] {
        [self.young.load(Relaxed), self.full.load(Relaxed)]
    }

    /// What is reserved for metaspace, bytes.
    pub fn metaspace(&self) -> i64 {
        self.metaspace.map_or(0, |bytes| bytes.load(Relaxed))
    }
}

/// The memory that the machine keeps its counters in, found in `/proc/self/maps` of this very process.
pub fn memory(maps: &str) -> Option<&'static [u8]> {
    let line = maps.lines().find(|line| line.contains("/hsperfdata_"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let bytes = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    // SAFETY: mapped for reading as long as the machine lives; counters change in it, which only atomics look at.
    Some(unsafe { core::slice::from_raw_parts(start as *const u8, bytes as usize) })
}

fn word(memory: &[u8], at: usize) -> Option<usize> {
    let bytes = memory.get(at..at + 4)?.first_chunk()?;
    usize::try_from(i32::from_le_bytes(*bytes)).ok()
}

/// The counter of a name.
pub fn value(memory: &'static [u8], name: &str) -> Option<&'static AtomicI64> {
    if memory.get(..6)? != [0xca, 0xfe, 0xc0, 0xc0, 1, 2] {
        return None;
    }
    let (mut at, entries) = (word(memory, 24)?, word(memory, 28)?);
    for _ in 0..entries {
        let (length, name_at) = (word(memory, at)?, word(memory, at + 4)?);
        let named = memory.get(at + name_at..at + name_at + name.len() + 1)?;
        if named.strip_prefix(name.as_bytes()) == Some(&[0]) && memory.get(at + 12) == Some(&b'J') {
            let place = memory
                .get(at + word(memory, at + 16)?..)?
                .get(..8)?
                .as_ptr();
            let place = place.cast::<AtomicI64>();
            // SAFETY: eight bytes of the mapping that the machine keeps a counter in, aligned as it must be.
            return place.is_aligned().then(|| unsafe { &*place });
        }
        at += length.max(1);
    }
    None
}
