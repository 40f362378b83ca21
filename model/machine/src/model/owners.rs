//! Misses and waits by owner of the memory, where the caller defines owners (allocation sites, say). And waits by code,
//! as far as the program reports which code runs.

use super::tally::tally;
use super::time::Ps;

/// Maps addresses to owners. The model asks at each access that misses the first-level cache.
pub trait Owners: Send {
    /// The owner of a virtual address, a small number; 0 for addresses without an owner of their own.
    fn owner(&mut self, address: u64) -> u32;
}

tally! {
    /// Counts of one owner.
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

/// The owner of a requested line, and the code that requests it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The owner of the address.
    pub owner: u32,
    /// The code, as the program numbers it.
    pub code: u32,
}

/// Waits by owner and by code, of one thread.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    counts: Vec<OwnerCounts>,
    /// Waits by number of the code, ps.
    code: Vec<Ps>,
    /// Where in the ops at hand the thread comes to other code, from [`Program::code`](varve_access::Program::code).
    steps: Vec<(u32, u32)>,
    /// The next of them.
    next: usize,
    /// The requester in the access that runs.
    pub current: Who,
    /// The requester of the last load.
    pub last_load: Who,
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

    /// New ops are at hand, after all others have run: `tell` appends the code that they are of.
    pub fn refill(&mut self, tell: impl FnOnce(&mut Vec<(u32, u32)>)) {
        self.come_to(u32::MAX);
        self.steps.clear();
        self.next = 0;
        tell(&mut self.steps);
    }

    /// The op with this number runs.
    #[inline]
    pub fn come_to(&mut self, op: u32) {
        while let Some(&(at, code)) = self.steps.get(self.next)
            && at <= op
        {
            self.current.code = code;
            self.next += 1;
        }
    }

    /// A thread waited for a line.
    pub fn waited(&mut self, who: Who, time: Ps) {
        self.of(who.owner).stall_ps += time;
        let at = who.code as usize;
        if at >= self.code.len() {
            self.code.resize(at + 1, 0);
        }
        self.code[at] += time;
    }

    /// The line of the access that runs came from memory.
    pub fn missed(&mut self, load: bool) {
        let counts = self.of(self.current.owner);
        counts.misses += u64::from(load);
        counts.store_misses += u64::from(!load);
    }

    /// A line was read from memory for the access that runs.
    pub fn brought(&mut self) {
        let current = self.current.owner;
        self.of(current).lines += 1;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Ledger) {
        for (owner, counts) in other.counts.iter().enumerate() {
            self.of(owner as u32).add(counts);
        }
        if self.code.len() < other.code.len() {
            self.code.resize(other.code.len(), 0);
        }
        for (sum, time) in self.code.iter_mut().zip(&other.code) {
            *sum += time;
        }
    }

    /// All counts by number of the owner, and all waits by number of the code, ps.
    pub fn into_counts(self) -> (Vec<OwnerCounts>, Vec<Ps>) {
        (self.counts, self.code)
    }
}
