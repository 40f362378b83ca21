//! The observer space: survivors of the nursery wait here, and the write barrier records which of them are written to,
//! until they are sorted into the memories (Kingsguard-writers; Akram, TACO 2021, section 5.3).
//!
//! ```text
//!   | half A              | nursery             | half B              |
//!   |---------------------+---------------------+---------------------|
//!      survivors go here --- one range with the
//!      nursery when both are collected; the nursery's
//!      survivors go to half B then, and so on in turn
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::layout::*;

/// Bytes that a collector thread takes at a time.
const SHARE: u64 = 32 << 10;

/// Two halves around the nursery. Positions are bytes from the heap's base.
#[derive(Default)]
pub(crate) struct ObserverSpace {
    starts: [u64; 2],
    /// Bytes of each half; 0 if there is no observer space.
    size: u64,
    /// The half that survivors go to.
    active: usize,
    /// Its first free byte.
    cursor: AtomicU64,
}

impl ObserverSpace {
    /// Halves of `size` bytes before and after a nursery of up to `nursery` bytes; the first one begins at `start`.
    pub fn new(start: u64, size: u64, nursery: u64) -> ObserverSpace {
        let nursery_start = start + size.next_multiple_of(CHUNK_SIZE);
        ObserverSpace {
            starts: [
                start,
                (nursery_start + nursery).next_multiple_of(CHUNK_SIZE),
            ],
            size,
            active: 0,
            cursor: AtomicU64::new(start),
        }
    }

    #[inline]
    pub fn exists(&self) -> bool {
        self.size > 0
    }

    /// Where the nursery begins if the first half begins at `start`.
    pub fn nursery_start(start: u64, size: u64) -> u64 {
        start + size.next_multiple_of(CHUNK_SIZE)
    }

    /// Bytes of address range for both halves.
    pub fn range(size: u64) -> u64 {
        2 * size.next_multiple_of(CHUNK_SIZE)
    }

    /// The first byte after nursery and halves, or 0 if there are none.
    #[inline]
    pub fn end(&self) -> u64 {
        match self.exists() {
            true => (self.starts[1] + self.size).next_multiple_of(CHUNK_SIZE),
            false => 0,
        }
    }

    /// Both halves: first byte and bytes.
    pub fn halves(&self) -> [(u64, u64); 2] {
        self.starts.map(|start| (start, self.size))
    }

    /// Bytes in use.
    #[inline]
    pub fn used(&self) -> u64 {
        self.cursor.load(Relaxed) - self.starts[self.active]
    }

    /// Bytes for more survivors.
    pub fn room(&self) -> u64 {
        self.size - self.used().min(self.size)
    }

    /// Bytes of a half.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether an object can be there.
    #[inline]
    pub fn contains(&self, offset: u64) -> bool {
        let start = self.starts[self.active];
        (start..start + self.used()).contains(&offset)
    }

    /// The bytes from the active half's begin to the nursery's end, or the other way round: the range to collect when
    /// both are collected. `nursery` is the nursery's first byte and the first one after it.
    pub fn with_nursery(&self, nursery: (u64, u64)) -> (u64, u64) {
        match self.active {
            _ if !self.exists() => nursery,
            0 => (self.starts[0], nursery.1),
            _ => (nursery.0, self.starts[1] + self.size),
        }
    }

    /// From now on survivors go to the other half, which is empty. Returns the range in use of this one.
    pub fn flip(&mut self) -> (u64, u64) {
        let used = (self.starts[self.active], self.used());
        self.active ^= usize::from(self.exists());
        *self.cursor.get_mut() = self.starts[self.active];
        used
    }

    /// A stretch that holds an object of `bytes`, and more if there is: its first byte and the first one after it.
    pub fn take(&self, bytes: u64) -> Option<(u64, u64)> {
        let end = self.starts[self.active] + self.size;
        let taken = |cursor: u64| {
            let to = (cursor + SHARE.max(bytes)).min(end);
            (cursor + bytes <= to).then_some(to)
        };
        let from = self.cursor.fetch_update(Relaxed, Relaxed, taken).ok()?;
        Some((from, taken(from)?))
    }

    /// Gives back the end of a stretch that was taken, if nothing was taken since.
    pub fn give_back(&self, cursor: u64, limit: u64) {
        let _ = self
            .cursor
            .compare_exchange(limit, cursor, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_lie_around_the_nursery_and_take_turns() {
        let (start, size) = (CHUNK_SIZE, 100 << 10);
        let nursery = ObserverSpace::nursery_start(start, size);
        let mut space = ObserverSpace::new(start, size, 1 << 20);
        assert_eq!(nursery, 2 * CHUNK_SIZE);
        assert_eq!(space.halves(), [(start, size), (3 * CHUNK_SIZE, size)]);
        assert_eq!(space.end(), 4 * CHUNK_SIZE);
        let both = (nursery, nursery + 500);
        assert_eq!(space.with_nursery(both), (start, nursery + 500));

        let (from, to) = space.take(24).unwrap();
        assert_eq!((from, to), (start, start + SHARE));
        space.give_back(from + 24, to);
        assert_eq!((space.used(), space.room()), (24, size - 24));
        assert!(space.contains(start + 16) && !space.contains(start + 24));
        let mut bytes = 24;
        while let Some((from, to)) = space.take(8) {
            assert_eq!(from, start + bytes);
            bytes += to - from;
        }
        assert_eq!((bytes, space.room()), (size, 0));

        assert_eq!(space.flip(), (start, size));
        assert_eq!(space.used(), 0);
        assert_eq!(space.take(8).unwrap().0, 3 * CHUNK_SIZE);
        assert_eq!(space.with_nursery(both), (nursery, 3 * CHUNK_SIZE + size));
    }

    #[test]
    fn no_space_has_no_room() {
        let mut none = ObserverSpace::default();
        assert!(!none.exists() && none.take(8).is_none() && none.end() == 0);
        assert_eq!(none.flip(), (0, 0));
        assert_eq!(none.with_nursery((7, 9)), (7, 9));
    }
}
