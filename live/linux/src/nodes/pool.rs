//! Memory of slow nodes that is zero already (Akram, TACO 2021, section 6.2).
//!
//! A heap that moves its objects to other memory frees their old memory, and allocates as much elsewhere. If that is slow memory,
//! a system that zeroes it when it is touched makes the program wait for the slowest of its stores. So freed memory
//! waits here, in the places of an arena; a thread zeroes it beside the program, and the next heap of this process that wants
//! slow memory has it at once. Pages never are copied: they move with `mremap`.
//!
//! ```text
//! heap   [chunk] -- give --> dirty --(thread)--> zero -- take --> [chunk]   heap
//! ```

use super::sys::move_pages_of;
use crate::mapped::Mapped;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Bytes of a chunk, the unit of the pool: a large page.
pub const CHUNK: u64 = 2 << 20;
/// Chunks that the pool holds at most, 256 MiB in all. Chunks beyond that go to the system.
const MOST: usize = 128;

/// Counts of a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Given back by heaps.
    pub given: u64,
    /// Taken by heaps, zero.
    pub taken: u64,
    /// Zero now, and free.
    pub zero: u64,
    /// Given back and not yet zero.
    pub dirty: u64,
}

/// See the module. Heaps share it as an `Arc`; the last one ends its thread and returns its memory.
pub struct ZeroPool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Places for chunks.
    _arena: Mapped,
    state: Mutex<State>,
    /// Something is dirty, or the end has come.
    work: Condvar,
    /// Nothing is dirty any more.
    settled: Condvar,
}

#[derive(Default)]
struct State {
    /// Places without a chunk, with one that is not zero, and with one that is.
    empty: Vec<u64>,
    dirty: VecDeque<u64>,
    zero: VecDeque<u64>,
    /// The chunk that is being zeroed.
    zeroing: bool,
    given: u64,
    taken: u64,
    end: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeroes freed chunks until the end.
    fn zero(&self) {
        let mut state = self.lock();
        while !state.end {
            let Some(place) = state.dirty.pop_front() else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.zeroing = true;
            drop(state);
            // SAFETY: a chunk at a place that is in no list is this thread's alone. Places are inside of the arena, which is
            // mapped for reading and writing and lives as long as `self`.
            unsafe {
                std::ptr::with_exposed_provenance_mut::<u8>(place as usize)
                    .write_bytes(0, CHUNK as usize);
            }
            state = self.lock();
            state.zeroing = false;
            state.zero.push_back(place);
            if state.dirty.is_empty() {
                self.settled.notify_all();
            }
        }
    }
}

impl ZeroPool {
    /// An empty pool. None if the system refuses its address range or its thread: slow memory then is had as other memory is.
    pub fn new() -> Option<ZeroPool> {
        let arena = Mapped::new((MOST + 1) * CHUNK as usize).ok()?;
        let first = (arena.start() as u64).next_multiple_of(CHUNK);
        let state = State {
            empty: (0..MOST as u64).map(|i| first + i * CHUNK).collect(),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            _arena: arena,
            state: Mutex::new(state),
            work: Condvar::new(),
            settled: Condvar::new(),
        });
        let thread = {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name("varve-zero".into());
            named.spawn(move || shared.zero()).ok()?
        };
        Some(ZeroPool {
            shared,
            thread: Some(thread),
        })
    }

    /// Takes the chunk at `address` away; what is there then is zero, and has no memory until it is touched. False if the pool
    /// is full or the system refuses: then nothing has changed.
    ///
    /// # Safety
    /// The chunk is 2 MiB of private anonymous memory, the caller's own, which is no longer needed.
    pub unsafe fn give(&self, address: u64) -> bool {
        let mut state = self.shared.lock();
        let Some(place) = state.empty.pop() else {
            return false;
        };
        // SAFETY: the source is the caller's, as promised; the place is the arena's and holds no chunk.
        if unsafe { move_pages_of(address, place, CHUNK) }.is_err() {
            state.empty.push(place);
            return false;
        }
        state.given += CHUNK;
        state.dirty.push_back(place);
        self.shared.work.notify_one();
        true
    }

    /// Puts a chunk of zeros to `address`, in the place of what is there. False if none is zero now or the system refuses.
    ///
    /// # Safety
    /// There are 2 MiB of private anonymous memory, the caller's own, whose contents are not needed.
    pub unsafe fn take(&self, address: u64) -> bool {
        let mut state = self.shared.lock();
        let Some(place) = state.zero.pop_front() else {
            return false;
        };
        // SAFETY: the place is the arena's; what it is moved to is the caller's, as promised.
        if unsafe { move_pages_of(place, address, CHUNK) }.is_err() {
            state.zero.push_back(place);
            return false;
        }
        state.taken += CHUNK;
        state.empty.push(place);
        true
    }

    /// Its counts so far.
    pub fn counts(&self) -> PoolCounts {
        let state = self.shared.lock();
        PoolCounts {
            given: state.given,
            taken: state.taken,
            zero: CHUNK * state.zero.len() as u64,
            dirty: CHUNK * (state.dirty.len() as u64 + u64::from(state.zeroing)),
        }
    }

    /// Waits until all freed chunks are zero.
    pub fn settle(&self) {
        let shared = &self.shared;
        let busy = |s: &mut State| s.zeroing || !s.dirty.is_empty();
        let settled = shared.settled.wait_while(shared.lock(), busy);
        drop(settled.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for ZeroPool {
    fn drop(&mut self) {
        self.shared.lock().end = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // It panics nowhere.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks of a test's own.
    struct Chunks(Mapped, u64);

    impl Chunks {
        fn new(n: usize) -> Chunks {
            let memory = Mapped::new((n + 1) * CHUNK as usize).unwrap();
            let first = (memory.start() as u64).next_multiple_of(CHUNK);
            Chunks(memory, first)
        }

        fn at(&self, i: u64) -> u64 {
            self.1 + i * CHUNK
        }

        fn bytes(&mut self, i: u64) -> &mut [u8] {
            let at = self.at(i) as usize - self.0.start();
            &mut self.0.all()[at..][..CHUNK as usize]
        }

        fn give(&mut self, i: u64, pool: &ZeroPool) -> bool {
            // SAFETY: chunk `i` is in the mapping, and there is no reference into it.
            unsafe { pool.give(self.at(i)) }
        }

        fn take(&mut self, i: u64, pool: &ZeroPool) -> bool {
            // SAFETY: as above.
            unsafe { pool.take(self.at(i)) }
        }
    }

    #[test]
    fn what_was_given_back_comes_again_as_zeros() {
        let pool = ZeroPool::new().unwrap();
        let mut chunks = Chunks::new(3);
        assert!(!chunks.take(0, &pool), "nothing was given yet");
        for i in 0..2 {
            chunks.bytes(i).fill(0xa5);
            assert!(chunks.give(i, &pool));
            assert!(chunks.bytes(i).iter().all(|&b| b == 0), "it is gone");
        }
        pool.settle();
        assert_eq!(pool.counts().zero, 2 * CHUNK);
        // To where something else is, and to where a chunk came from.
        chunks.bytes(2).fill(7);
        for i in [2, 0] {
            assert!(chunks.take(i, &pool));
            assert!(chunks.bytes(i).iter().all(|&b| b == 0));
            chunks.bytes(i).fill(9);
        }
        let counts = PoolCounts {
            given: 2 * CHUNK,
            taken: 2 * CHUNK,
            zero: 0,
            dirty: 0,
        };
        assert_eq!(pool.counts(), counts);
        assert!(chunks.bytes(2).iter().all(|&b| b == 9));
    }

    #[test]
    fn a_full_pool_takes_no_more() {
        let pool = ZeroPool::new().unwrap();
        let mut chunks = Chunks::new(1);
        for _ in 0..MOST {
            assert!(chunks.give(0, &pool));
        }
        chunks.bytes(0)[5] = 5;
        assert!(!chunks.give(0, &pool));
        assert_eq!(chunks.bytes(0)[5], 5, "what it refuses stays");
    }

    #[test]
    fn heaps_on_several_threads_share_it() {
        let pool = ZeroPool::new().unwrap();
        std::thread::scope(|scope| {
            for seed in 1..=4u8 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut chunks = Chunks::new(4);
                    for round in 0..200u64 {
                        let i = round % 4;
                        if round % 20 == 19 {
                            // Some chunk is zero then.
                            pool.settle();
                        }
                        if chunks.take(i, pool) {
                            assert!(chunks.bytes(i).iter().all(|&b| b == 0));
                        }
                        chunks.bytes(i)[..9].fill(seed);
                        chunks.bytes(i)[CHUNK as usize - 1] = seed;
                        if round % 3 != 0 {
                            // Unless the thread that zeroes is far behind.
                            chunks.give(i, pool);
                        }
                    }
                });
            }
        });
        pool.settle();
        let counts = pool.counts();
        assert!(counts.taken > 0);
        assert_eq!(counts.given - counts.taken, counts.zero);
    }
}
