//! The nursery: one stretch of addresses in which objects are born, emptied by every collection.

use std::ops::Range;

use crate::layout::*;
use crate::memory::Memory;
use crate::mutator::Mutator;

/// Bytes that are zeroed ahead of the cursor at a time: they are still in the first-level cache when objects are
/// born there.
const ZERO_AHEAD: u64 = 32 << 10;

/// Where objects are born. Positions are bytes from the heap's base.
pub(crate) struct Nursery {
    start: u64,
    /// The first byte after those that may be used until the next collection.
    end: u64,
    /// The mutator's limit: up to here bytes are zero or in use.
    zeroed: u64,
    /// Bytes from here on were never touched.
    fresh: u64,
    /// The backing was not asked for memory from here on.
    bound: u64,
}

/// Where the first space begins: after the null guard, on a large page of its own.
pub(crate) const START: u64 = CHUNK_SIZE;

impl Nursery {
    /// A nursery of no bytes that begins at `start`.
    pub fn new(start: u64) -> Nursery {
        Nursery {
            start,
            end: start,
            zeroed: start,
            fresh: start,
            bound: start,
        }
    }

    /// Bytes of address range for a nursery of up to `max` bytes and the null guard: whole chunks.
    pub fn range(max: u64) -> u64 {
        (START + max).next_multiple_of(CHUNK_SIZE)
    }

    /// The first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes that may be used until the next collection.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Bytes that are in use.
    pub fn used(&self, mutator: &Mutator) -> u64 {
        mutator.cursor - mutator.heap_base() - self.start
    }

    /// The first byte and the first one after the nursery.
    pub fn bounds(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// Starts again from the beginning, with `size` bytes.
    pub fn reset(&mut self, mutator: &mut Mutator, size: u64) {
        self.end = self.start + size;
        self.zeroed = self.start;
        mutator.cursor = mutator.heap_base() + self.start;
        mutator.limit = mutator.cursor;
    }

    /// The chunks that came into use since this was asked last: first byte and bytes.
    pub fn grown(&mut self) -> Option<(u64, u64)> {
        let end = self.end.next_multiple_of(CHUNK_SIZE);
        let from = self.bound;
        self.bound = from.max(end);
        (end > from).then(|| (from, end - from))
    }

    /// Leaves at most `size` bytes for use, except for memory already promised to the mutator.
    pub fn shrink(&mut self, size: u64) {
        self.end = self.end.min((self.start + size).max(self.zeroed));
    }

    /// Moves the mutator's limit so that an object of `bytes` fits, if there is room. With `exactly`, no
    /// further than that. Returns the range of offsets that had to be zeroed for it.
    pub fn extend(
        &mut self,
        memory: &Memory,
        mutator: &mut Mutator,
        bytes: u64,
        exactly: bool,
    ) -> Option<Range<u64>> {
        let cursor = mutator.cursor - mutator.heap_base();
        let need = cursor + bytes;
        if need > self.end {
            return None;
        }
        let mut zeroed = self.zeroed..self.zeroed;
        if need > self.zeroed {
            let to = if exactly {
                need
            } else {
                need.max(self.zeroed + ZERO_AHEAD).min(self.end)
            };
            let dirty = to.min(self.fresh);
            if dirty > self.zeroed {
                memory.zero(self.zeroed, dirty - self.zeroed);
                zeroed.end = dirty;
            }
            self.fresh = self.fresh.max(to);
            self.zeroed = to;
        }
        mutator.limit = mutator.heap_base() + self.zeroed;
        Some(zeroed)
    }

    /// Overwrites everything that is in use.
    pub fn poison(&self, memory: &Memory, mutator: &Mutator) {
        memory.poison(self.start, self.used(mutator));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::Buffer;

    #[test]
    fn memory_is_zero_before_it_is_handed_out_again() {
        let memory = Memory::reserve(2 * CHUNK_SIZE).unwrap();
        let buffer = Buffer::reserve(2 * CHUNK_SIZE).unwrap();
        let mut mutator = Mutator::new(&memory, &[], &buffer);
        let mut nursery = Nursery::new(START);
        for round in 0..3 {
            nursery.reset(&mut mutator, 100 << 10);
            let mut bytes = 0;
            let mut size = 8;
            loop {
                let at = match mutator.bump(size) {
                    Some(at) => at,
                    None if nursery
                        .extend(&memory, &mut mutator, size, round == 1)
                        .is_some() =>
                    {
                        mutator.bump(size).unwrap()
                    }
                    None => break,
                };
                let mut content = vec![1; size as usize];
                memory.read(at, &mut content);
                assert!(
                    content.iter().all(|&byte| byte == 0),
                    "{at:#x} in round {round}"
                );
                memory.write(at, &vec![0xff; size as usize]);
                bytes += size;
                size = size % 3000 + 8;
                assert_eq!(nursery.used(&mutator), bytes);
            }
            assert!(bytes > 97 << 10 && bytes <= 100 << 10);
            if round == 1 {
                nursery.poison(&memory, &mutator);
            }
        }
    }
}
