//! A heap's spaces on the memory nodes of this machine.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use varve_live::nodes::{CHUNK, NodeError, NodeMemory, ZeroPool};
use varve_runtime::{GcBacking, GcTier};

/// Gives a heap the memory that its plan wants: tier 0 is fast, all others are slow. Chunks of slow memory that a heap gives
/// back are zeroed beside the program, for whichever heap wants them next.
pub struct OnNodes {
    memory: NodeMemory,
    /// Where chunks of slow memory go to and come from; none if the system refuses one.
    pool: Option<Arc<ZeroPool>>,
    /// Chunks that are slow memory now.
    slow: Mutex<HashSet<u64>>,
    /// The first error. All later collections would report the same.
    failure: Mutex<Option<String>>,
}

impl OnNodes {
    /// Memory on these nodes, with a pool that it shares with other heaps, if there is one.
    pub fn new(memory: NodeMemory, pool: Option<Arc<ZeroPool>>) -> OnNodes {
        OnNodes {
            memory,
            pool,
            slow: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    fn slow(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, address: u64, bytes: u64, tier: u8) {
        self.note(self.memory.bind(address, bytes, tier));
    }

    fn note(&self, done: Result<(), NodeError>) {
        if let Err(e) = done {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| e.to_string());
        }
    }
}

impl GcBacking for OnNodes {
    unsafe fn bind(&self, address: u64, bytes: u64, tier: GcTier) {
        // The program is about to end then; its collection goes on in any memory.
        if self.failure().is_some() {
            return;
        }
        let (Some(pool), true) = (
            &self.pool,
            address.is_multiple_of(CHUNK) && bytes.is_multiple_of(CHUNK),
        ) else {
            return self.settle(address, bytes, tier.0);
        };
        let mut slow = self.slow();
        if tier.0 == 0 {
            slow.retain(|chunk| !(address..address + bytes).contains(chunk));
            return self.settle(address, bytes, 0);
        }
        for chunk in (address..address + bytes).step_by(CHUNK as usize) {
            // SAFETY: whole chunks, for which the caller guarantees the conditions of `take`.
            let take = || unsafe { pool.take(chunk) };
            if slow.insert(chunk) && take() {
                continue;
            }
            let bound = self.memory.bind(chunk, CHUNK, tier.0);
            // The pool may hold what the node lacks, or get it in a moment.
            let full = matches!(bound, Err(NodeError::Full { .. }));
            if full {
                pool.settle();
            }
            if bound.is_err() && !(full && take()) {
                slow.remove(&chunk);
                self.note(bound);
            }
        }
    }

    fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    unsafe fn release(&self, address: u64, bytes: u64) -> bool {
        let mut slow = self.slow();
        let mut all = true;
        for chunk in (address..address + bytes).step_by(CHUNK as usize) {
            let pool = self.pool.as_ref().filter(|_| slow.remove(&chunk));
            // SAFETY: as above.
            all &= pool.is_some_and(|pool| unsafe { pool.give(chunk) });
        }
        all
    }
}
