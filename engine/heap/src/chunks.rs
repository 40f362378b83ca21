//! Which chunk of address range belongs to which space.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Backing;
use crate::layout::*;
use crate::memory::Memory;

/// Address range that spaces take and free in runs of chunks.
pub(crate) struct Chunks {
    state: Mutex<State>,
    /// First chunk that is kept for collections: they must find room for survivors whatever programs did.
    emergency: u32,
}

struct State {
    chunks: Vec<Chunk>,
    /// No chunk below this is free.
    hint: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Taken,
    /// Free, and without memory of the system.
    Fresh,
    /// Free, but touched before.
    Dirty,
}

/// Chunks in a row that a space took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub first: u32,
    /// None of them was touched before.
    pub fresh: bool,
}

impl Chunks {
    /// The chunks from `first` to the end of `extent` bytes, of which the last `emergency` serve collections alone.
    pub fn new(first: u32, extent: u64, emergency: u32) -> Chunks {
        let count = (extent / CHUNK_SIZE) as u32;
        assert!(first + emergency < count);
        let mut chunks = vec![Chunk::Fresh; count as usize];
        chunks[..first as usize].fill(Chunk::Taken);
        Chunks {
            state: Mutex::new(State {
                chunks,
                hint: first,
            }),
            emergency: count - emergency,
        }
    }

    /// Takes `count` chunks in a row, the lowest there are.
    pub fn take(&self, count: u32, for_collection: bool) -> Option<Taken> {
        let mut state = self.lock();
        let end = if for_collection {
            state.chunks.len() as u32
        } else {
            self.emergency
        };
        let mut run = 0;
        for chunk in state.hint..end {
            run = if state.chunks[chunk as usize] == Chunk::Taken {
                0
            } else {
                run + 1
            };
            if run == count {
                let first = chunk + 1 - count;
                let chunks = &mut state.chunks[first as usize..=chunk as usize];
                let fresh = chunks.iter().all(|&chunk| chunk == Chunk::Fresh);
                chunks.fill(Chunk::Taken);
                if first == state.hint {
                    state.hint = chunk + 1;
                }
                return Some(Taken { first, fresh });
            }
        }
        None
    }

    /// Gives back `count` chunks from `first` on.
    pub fn give_back(&self, first: u32, count: u32) {
        let mut state = self.lock();
        let chunks = &mut state.chunks[first as usize..][..count as usize];
        assert!(
            chunks.iter().all(|&chunk| chunk == Chunk::Taken),
            "a chunk is given back twice"
        );
        chunks.fill(Chunk::Dirty);
        state.hint = state.hint.min(first);
    }

    /// Returns the memory of free chunks to the system, but for `keep` of them that will be used soonest. Gives how
    /// many were returned.
    pub fn release(&self, memory: &Memory, backing: Option<&dyn Backing>, keep: u32) -> u32 {
        let mut state = self.lock();
        let dirty = state
            .chunks
            .iter_mut()
            .enumerate()
            .filter(|(_, chunk)| **chunk == Chunk::Dirty)
            .skip(keep as usize);
        let mut count = 0;
        for (index, chunk) in dirty {
            let start = index as u64 * CHUNK_SIZE;
            let address = memory.base_address() + start;
            // SAFETY: a free chunk of the heap's own, which stays free while `state` is locked.
            let released = |backing: &dyn Backing| unsafe { backing.release(address, CHUNK_SIZE) };
            if !backing.is_some_and(released) {
                memory.discard(start, CHUNK_SIZE);
            }
            *chunk = Chunk::Fresh;
            count += 1;
        }
        count
    }

    /// Whether no emergency chunk is in use, so that a program may go on.
    pub fn reserve_is_whole(&self) -> bool {
        let state = self.lock();
        state.chunks[self.emergency as usize..]
            .iter()
            .all(|&chunk| chunk != Chunk::Taken)
    }

    /// Chunks that a collection can take.
    pub fn free_for_collections(&self) -> u64 {
        let state = self.lock();
        let free = |chunk: &&Chunk| **chunk != Chunk::Taken;
        state.chunks.iter().filter(free).count() as u64
    }

    /// The chunks among the next `count` free ones that have no memory of the system yet; they count as touched from
    /// now on.
    pub fn touch_next(&self, count: u32) -> Vec<u32> {
        let mut state = self.lock();
        let hint = state.hint as usize;
        let from_hint = state.chunks.iter_mut().enumerate().skip(hint);
        let next = from_hint
            .filter(|(_, chunk)| **chunk != Chunk::Taken)
            .take(count as usize);
        next.filter(|(_, chunk)| **chunk == Chunk::Fresh)
            .map(|(index, chunk)| {
                *chunk = Chunk::Dirty;
                index as u32
            })
            .collect()
    }

    /// Free chunks that are not kept for collections.
    pub fn free_for_programs(&self) -> u64 {
        self.lock().chunks[..self.emergency as usize]
            .iter()
            .filter(|&&chunk| chunk != Chunk::Taken)
            .count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_lowest_that_fit() {
        let chunks = Chunks::new(1, 10 * CHUNK_SIZE, 2);
        let taken = |first, fresh| Some(Taken { first, fresh });
        assert_eq!(chunks.take(2, false), taken(1, true));
        assert_eq!(chunks.take(1, false), taken(3, true));
        assert_eq!(chunks.take(3, false), taken(4, true));
        chunks.give_back(1, 2);
        assert_eq!(
            chunks.take(3, false),
            None,
            "the last two are kept for collections"
        );
        assert_eq!(chunks.take(3, true), taken(7, true));
        assert!(!chunks.reserve_is_whole());
        assert_eq!(chunks.take(1, false), taken(1, false));
        assert_eq!(chunks.take(1, false), taken(2, false));
        assert_eq!(chunks.take(1, true), None);
        assert_eq!(chunks.free_for_programs(), 0);
        chunks.give_back(7, 3);
        assert!(chunks.reserve_is_whole());
    }

    #[test]
    fn the_next_chunks_are_touched_once() {
        let chunks = Chunks::new(1, 10 * CHUNK_SIZE, 2);
        assert_eq!(chunks.take(3, false).map(|t| t.first), Some(1));
        chunks.give_back(2, 1);
        assert_eq!(chunks.touch_next(3), [4, 5], "the second was used before");
        assert!(chunks.touch_next(3).is_empty());
        assert_eq!(chunks.touch_next(4), [6]);
    }

    #[test]
    fn released_chunks_are_zero_again() {
        let memory = Memory::reserve(4 * CHUNK_SIZE).unwrap();
        let chunks = Chunks::new(1, 4 * CHUNK_SIZE, 1);
        assert_eq!(chunks.take(2, false).map(|t| t.first), Some(1));
        memory.write(CHUNK_SIZE, &[1]);
        memory.write(2 * CHUNK_SIZE, &[1]);
        chunks.give_back(1, 2);
        assert_eq!(chunks.release(&memory, None, 1), 1);
        let mut byte = [0];
        memory.read(CHUNK_SIZE, &mut byte);
        assert_eq!(byte, [1]);
        memory.read(2 * CHUNK_SIZE, &mut byte);
        assert_eq!(byte, [0]);
    }
}
