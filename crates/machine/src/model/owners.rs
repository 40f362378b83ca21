//! Whose memory threads wait for: counts of misses and of waits by owner, where an owner is whatever the caller tells
//! apart (an allocation site, say).

use super::tally::tally;
use super::time::Ps;

/// Tells owners apart. It is asked at each access that the first-level cache does not have.
pub trait Owners: Send {
    /// The owner of a virtual address, a small number; whatever is not told apart is 0.
    fn owner(&mut self, address: u64) -> u32;
}

tally! {
    /// What was counted for one owner.
    pub struct OwnerCounts {
        /// Loads that missed all caches.
        pub misses: u64,
        /// Stores that missed all caches.
        pub store_misses: u64,
        /// Lines that were read from memory for it, those that a prefetcher asked for too.
        pub lines: u64,
        /// Time that threads waited for its lines, wherever these came from, ps: nothing of it was hidden by other work. Where
        /// several lines were waited for, it counts for the one that let the thread go on.
        pub stall_ps: Ps,
    }
}

/// Waits by owner, of one thread.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    counts: Vec<OwnerCounts>,
    /// Whose line the access that runs asks for.
    pub current: u32,
    /// Whose line the last load asked for.
    pub last_load: u32,
}

impl Ledger {
    /// The counts of an owner.
    pub fn of(&mut self, owner: u32) -> &mut OwnerCounts {
        let at = owner as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, OwnerCounts::default());
        }
        &mut self.counts[at]
    }

    /// A thread waited for a line.
    pub fn waited(&mut self, owner: u32, time: Ps) {
        self.of(owner).stall_ps += time;
    }

    /// The line of the access that runs came from memory.
    pub fn missed(&mut self, load: bool) {
        let counts = self.of(self.current);
        counts.misses += u64::from(load);
        counts.store_misses += u64::from(!load);
    }

    /// A line was read from memory for the access that runs.
    pub fn brought(&mut self) {
        let current = self.current;
        self.of(current).lines += 1;
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Ledger) {
        for (owner, counts) in other.counts.iter().enumerate() {
            self.of(owner as u32).add(counts);
        }
    }

    /// All counts, by number of the owner.
    pub fn into_counts(self) -> Vec<OwnerCounts> {
        self.counts
    }
}
