//! Counters that a HotSpot virtual machine keeps in its own memory (`jstat` reads them from outside): how many collections
//! of each kind there were. They may be read at any time, also while the machine stands still.
//!
//! ```text
//! 0xcafec0c0 (big-endian), byte order (1: little-endian), version 2, ..., 24: where entries begin, 28: their number
//! entry: its length, where its name is, length of a vector (0: none), type, ..., 16: where its value is
//! ```

use core::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};

/// The counters; none if the machine keeps none (`-XX:-UsePerfData`).
#[derive(Clone, Copy)]
pub struct Counters {
    /// Collections of the young generation.
    young: &'static AtomicI64,
    /// Collections of everything.
    full: &'static AtomicI64,
    /// Memory reserved for metaspace, bytes.
    metaspace: Option<&'static AtomicI64>,
    /// Counters of allocation, for generations with places of their own.
    pub allocation: Option<Allocation>,
}

/// Counters of the space that objects are born in, and of the old generation.
#[derive(Clone, Copy)]
pub struct Allocation {
    /// Bytes that the space has for new objects.
    eden: &'static AtomicI64,
    /// Words that threads took for themselves to allocate in, from one collection to the next; it changes when one begins.
    buffers: &'static AtomicI64,
    /// Bytes of objects in the old generation, up to date when a collection has ended.
    old: &'static AtomicI64,
    /// Bytes that the old generation may use at present.
    old_capacity: &'static AtomicI64,
    /// Why the last collection was, in words.
    cause: &'static [AtomicU8],
}

impl Counters {
    /// Finds them in this very process.
    pub fn find(maps: &str) -> Option<Counters> {
        let memory = memory(maps)?;
        Some(Counters {
            young: value(memory, "sun.gc.collector.0.invocations")?,
            full: value(memory, "sun.gc.collector.1.invocations")?,
            metaspace: value(memory, "sun.gc.metaspace.maxCapacity"),
            allocation: Allocation::find(memory),
        })
    }

    /// Collections so far: of the young generation, of everything.
    pub fn collections(&self) -> [i64; 2] {
        [self.young.load(Relaxed), self.full.load(Relaxed)]
    }

    /// Memory reserved for metaspace, bytes.
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
    // SAFETY: mapped for reading as long as the machine lives; counters change in it, which only atomics read.
    Some(unsafe { core::slice::from_raw_parts(start as *const u8, bytes as usize) })
}

impl Allocation {
    fn find(memory: &'static [u8]) -> Option<Allocation> {
        Some(Allocation {
            eden: value(memory, "sun.gc.generation.0.space.0.capacity")?,
            buffers: value(memory, "sun.gc.tlab.alloc")?,
            old: value(memory, "sun.gc.generation.1.space.0.used")?,
            old_capacity: value(memory, "sun.gc.generation.1.capacity")?,
            cause: words(memory, "sun.gc.lastCause", CAUSE.len() + 1)?,
        })
    }

    /// Bytes that the space of new objects has.
    pub fn eden(&self) -> u64 {
        bytes(self.eden)
    }

    /// Bytes of objects in the old generation.
    pub fn old(&self) -> u64 {
        bytes(self.old)
    }

    /// Bytes that the old generation may use at present.
    pub fn old_capacity(&self) -> u64 {
        bytes(self.old_capacity)
    }

    /// Bytes born in a space of `eden` bytes until the collection that has just ended. A full space began it, or else
    /// an explicit request: then the result is the size of the threads' allocation buffers, which large arrays do not
    /// use.
    pub fn born(&self, eden: u64) -> u64 {
        let cause = self.cause.iter().map(|letter| letter.load(Relaxed));
        match cause.eq(CAUSE.iter().copied().chain([0])) {
            true => eden,
            false => (bytes(self.buffers) * 8).min(eden),
        }
    }
}

/// How a collection is called that began because there was no room for an object.
const CAUSE: &[u8] = b"Allocation Failure";

fn bytes(counter: &AtomicI64) -> u64 {
    counter.load(Relaxed).max(0) as u64
}

fn word(memory: &[u8], at: usize) -> Option<usize> {
    let bytes = memory.get(at..at + 4)?.first_chunk()?;
    usize::try_from(i32::from_le_bytes(*bytes)).ok()
}

/// Where the value of a name is, which is of a type.
fn place(memory: &'static [u8], name: &str, kind: u8) -> Option<&'static [u8]> {
    if memory.get(..6)? != [0xca, 0xfe, 0xc0, 0xc0, 1, 2] {
        return None;
    }
    let (mut at, entries) = (word(memory, 24)?, word(memory, 28)?);
    for _ in 0..entries {
        let (length, name_at) = (word(memory, at)?, word(memory, at + 4)?);
        let named = memory.get(at + name_at..at + name_at + name.len() + 1)?;
        if named.strip_prefix(name.as_bytes()) == Some(&[0]) && memory.get(at + 12) == Some(&kind) {
            return memory.get(at + word(memory, at + 16)?..);
        }
        at += length.max(1);
    }
    None
}

/// The counter of a name.
pub fn value(memory: &'static [u8], name: &str) -> Option<&'static AtomicI64> {
    let place = place(memory, name, b'J')?.get(..8)?.as_ptr();
    let place = place.cast::<AtomicI64>();
    // SAFETY: eight bytes of the mapping that the machine keeps a counter in, aligned as it must be.
    place.is_aligned().then(|| unsafe { &*place })
}

/// The first letters of the text of a name.
fn words(memory: &'static [u8], name: &str, letters: usize) -> Option<&'static [AtomicU8]> {
    let place = place(memory, name, b'B')?.get(..letters)?;
    // SAFETY: bytes of the mapping that the machine keeps a text in; atomics have the size and alignment of bytes.
    Some(unsafe { core::slice::from_raw_parts(place.as_ptr().cast(), letters) })
}
