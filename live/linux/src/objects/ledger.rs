//! The file that the processes of a run share, which the shim includes too: who takes how much of the budget, and how much memory
//! each group of sites has, and had at most. Zeros are an empty one.
//!
//! ```text
//! LedgerHead                    all groups together
//! ProcessSlot x PROCESSES       a process
//! Line x groups                 a group, of all processes
//! Row  x PROCESSES x groups     what a process has of a group; taken off its line when the process is gone
//! ```

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Processes at a time. More than these have the whole budget each, and their memory is not in the sums.
pub const PROCESSES: usize = 1024;
/// Bytes of each range of addresses of a process, from [`ProcessSlot::base`] on: others, fast, slow.
pub const RANGE: u64 = 1 << 40;

/// The part of a top by which memory grows before it is a new one.
const FINENESS: i64 = 128;

/// All groups together. The tiers are fast and slow, here and below.
#[repr(C)]
pub struct LedgerHead {
    /// Bytes now.
    pub now: [AtomicI64; 2],
    /// The most bytes of each tier.
    pub most: [AtomicI64; 2],
    /// Bytes of both tiers when [`Line::at_top`] was taken.
    pub top: AtomicI64,
    /// The process that takes it; 0 for none.
    taking: AtomicU64,
    /// Slots that were ever in use: the first ones.
    slots: AtomicU64,
    /// Processes that found no slot.
    pub crowded: AtomicU64,
}

/// A process.
#[repr(C)]
pub struct ProcessSlot {
    /// Its number; 0 for none.
    pub process: AtomicU64,
    /// Bytes of fast memory, as the budget counts them.
    pub fast_bytes: AtomicI64,
    /// First address of its ranges.
    pub base: AtomicU64,
    _spare: u64,
}

/// A group.
#[repr(C)]
pub struct Line {
    /// Bytes now.
    pub now: [AtomicI64; 2],
    /// The most bytes of each tier.
    pub most: [AtomicI64; 2],
    /// Bytes when all groups together had most.
    pub at_top: [AtomicI64; 2],
    /// Objects and mappings so far.
    pub objects: AtomicU64,
    /// Their bytes.
    pub given: [AtomicU64; 2],
    /// Objects that were to be in fast memory, and found no room for all of their bytes.
    pub refused: AtomicU64,
}

/// Bytes that a process has of a group. Less than nothing in a child that frees what its parent made.
type Row = [AtomicI64; 2];

/// The file, mapped.
#[derive(Clone, Copy, Debug)]
pub struct RunLedger {
    start: usize,
    groups: usize,
}

const SLOTS: usize = size_of::<LedgerHead>();
const LINES: usize = SLOTS + PROCESSES * size_of::<ProcessSlot>();

impl RunLedger {
    /// Bytes of the file for a number of groups.
    pub const fn bytes(groups: usize) -> usize {
        LINES + groups * size_of::<Line>() + PROCESSES * groups * size_of::<Row>()
    }

    /// The file at an address.
    ///
    /// # Safety
    /// It is mapped there to be written, with [`RunLedger::bytes`] of these groups, as long as this is used.
    pub unsafe fn at(start: usize, groups: usize) -> RunLedger {
        RunLedger { start, groups }
    }

    /// Something in it.
    fn part<T>(&self, at: usize) -> &T {
        // SAFETY: by the promise of `at`, the file is there; callers add up sizes in the order of the file. All is atomic.
        unsafe { &*std::ptr::with_exposed_provenance(self.start + at) }
    }

    pub fn head(&self) -> &LedgerHead {
        self.part(0)
    }

    pub fn slot(&self, slot: usize) -> &ProcessSlot {
        assert!(slot < PROCESSES);
        self.part(SLOTS + slot * size_of::<ProcessSlot>())
    }

    /// The slots that were ever in use.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &ProcessSlot)> {
        let used = self.head().slots.load(Relaxed) as usize;
        (0..used.min(PROCESSES)).map(|slot| (slot, self.slot(slot)))
    }

    pub fn line(&self, group: usize) -> &Line {
        assert!(group < self.groups);
        self.part(LINES + group * size_of::<Line>())
    }

    fn row(&self, slot: usize, group: usize) -> &Row {
        assert!(slot < PROCESSES && group < self.groups);
        let rows = LINES + self.groups * size_of::<Line>();
        self.part(rows + (slot * self.groups + group) * size_of::<Row>())
    }

    /// A slot for a process: the one that it has already, as another program, or a free one.
    pub fn join(&self, process: u64) -> Option<usize> {
        let own = self
            .slots()
            .find(|(_, slot)| slot.process.load(Relaxed) == process);
        if let Some((own, _)) = own {
            self.clear(own);
            return Some(own);
        }
        let free = (0..PROCESSES).find(|slot| {
            let slot = &self.slot(*slot).process;
            slot.compare_exchange(0, process, AcqRel, Relaxed).is_ok()
        });
        match free {
            Some(slot) => _ = self.head().slots.fetch_max(slot as u64 + 1, Relaxed),
            None => _ = self.head().crowded.fetch_add(1, Relaxed),
        }
        free
    }

    /// A process is gone.
    pub fn leave(&self, slot: usize) {
        let process = self.slot(slot).process.load(Relaxed);
        let taking = &self.head().taking;
        let _ = taking.compare_exchange(process, 0, AcqRel, Relaxed);
        self.clear(slot);
        self.slot(slot).process.store(0, Release);
    }

    /// What a process had, it has no longer.
    fn clear(&self, slot: usize) {
        self.slot(slot).fast_bytes.store(0, Relaxed);
        for group in 0..self.groups {
            for (tier, bytes) in self.row(slot, group).iter().enumerate() {
                // Without a write, the page stays one that takes no memory.
                if bytes.load(Relaxed) != 0 {
                    let had = bytes.swap(0, Relaxed).max(0);
                    self.line(group).now[tier].fetch_sub(had, Relaxed);
                    self.head().now[tier].fetch_sub(had, Relaxed);
                }
            }
        }
    }

    /// A process's memory of a group changed by `bytes`; meanwhile it was `high` bytes more than before.
    pub fn changed(&self, slot: usize, group: usize, tier: usize, bytes: i64, high: i64) {
        let had = self.row(slot, group)[tier].fetch_add(bytes, Relaxed);
        let change = (had + bytes).max(0) - had.max(0);
        let high = (had + high.max(bytes)).max(0) - had.max(0);
        for (now, most) in [
            (&self.line(group).now[tier], &self.line(group).most[tier]),
            (&self.head().now[tier], &self.head().most[tier]),
        ] {
            let before = now.fetch_add(change, Relaxed);
            most.fetch_max(before + high, Relaxed);
        }
    }

    /// Writes down what each group has, if all together have more than ever. Returns how many bytes are missing to the next top.
    pub fn top(&self, process: u64) -> i64 {
        let head = self.head();
        let now: i64 = head.now.iter().map(|bytes| bytes.load(Relaxed)).sum();
        let top = head.top.load(Relaxed);
        if now <= top + top / FINENESS {
            return top + top / FINENESS - now;
        }
        let taking = &head.taking;
        if taking.compare_exchange(0, process, AcqRel, Relaxed).is_ok() {
            let mut sum = 0;
            for group in 0..self.groups {
                let line = self.line(group);
                for (now, top) in line.now.iter().zip(&line.at_top) {
                    let bytes = now.load(Relaxed);
                    sum += bytes;
                    if top.load(Relaxed) != bytes {
                        top.store(bytes, Relaxed);
                    }
                }
            }
            head.top.store(sum, Relaxed);
            taking.store(0, Release);
        }
        now / FINENESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger of two groups, in memory that stays for the test.
    fn ledger() -> (Vec<u64>, RunLedger) {
        let words = vec![0u64; RunLedger::bytes(2).div_ceil(8)];
        let start = words.as_ptr().expose_provenance();
        // SAFETY: zeroed memory of that size; the caller keeps it as long as the ledger.
        (words, unsafe { RunLedger::at(start, 2) })
    }

    fn values(of: &[AtomicI64; 2]) -> [i64; 2] {
        [of[0].load(Relaxed), of[1].load(Relaxed)]
    }

    #[test]
    fn peaks_are_of_all_processes_at_once_and_the_top_adds_up() {
        let (_words, ledger) = ledger();
        let (a, b) = (ledger.join(7).unwrap(), ledger.join(8).unwrap());
        ledger.changed(a, 0, 0, 1000, 1500);
        ledger.changed(b, 0, 0, 3000, 0);
        ledger.changed(b, 1, 1, 5000, 5000);
        assert_eq!(ledger.top(7), 9000 / FINENESS);
        ledger.leave(b);
        ledger.changed(a, 1, 1, 500, 500);
        assert!(ledger.top(7) > 7000);
        assert_eq!(values(&ledger.line(0).most), [4000, 0]);
        assert_eq!(values(&ledger.line(0).now), [1000, 0]);
        assert_eq!(values(&ledger.line(0).at_top), [4000, 0]);
        assert_eq!(values(&ledger.line(1).at_top), [0, 5000]);
        assert_eq!(values(&ledger.head().most), [4000, 5000]);
        assert_eq!(values(&ledger.head().now), [1000, 500]);
        assert_eq!(ledger.head().top.load(Relaxed), 9000);
    }

    #[test]
    fn a_child_that_frees_what_its_parent_made_takes_nothing_off_the_parents() {
        let (_words, ledger) = ledger();
        let (parent, child) = (ledger.join(7).unwrap(), ledger.join(8).unwrap());
        ledger.changed(parent, 0, 0, 1000, 1000);
        ledger.changed(child, 0, 0, -800, 0);
        assert_eq!(values(&ledger.line(0).now), [1000, 0]);
        ledger.changed(child, 0, 0, 1000, 1000);
        assert_eq!(values(&ledger.line(0).now), [1200, 0]);
        assert_eq!(values(&ledger.line(0).most), [1200, 0]);
    }

    #[test]
    fn a_program_that_became_another_has_its_slot_and_nothing_in_it() {
        let (_words, ledger) = ledger();
        let slot = ledger.join(7).unwrap();
        ledger.changed(slot, 1, 1, 1000, 1000);
        assert_eq!(ledger.join(7), Some(slot));
        assert_eq!(values(&ledger.head().now), [0, 0]);
        assert_eq!(values(&ledger.head().most), [0, 1000]);
        assert_eq!(
            (0..PROCESSES)
                .filter_map(|p| ledger.join(p as u64 + 9))
                .count(),
            PROCESSES - 1
        );
        assert_eq!(ledger.head().crowded.load(Relaxed), 1);
    }
}
