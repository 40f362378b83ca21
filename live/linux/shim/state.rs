//! Placed memory of this process: ranges, counts, and reasons for memory that was not placed.

use crate::config::Config;
use crate::lock::OwnedLock;
use crate::place::bins::PAGE;
use crate::place::choose::NO_BIN;
use crate::place::conflicts::Conflicts;
use crate::place::engine::{Fill, PlacementOutcome};
use crate::place::error::PlaceError;
use crate::place::range::place_range;
use crate::place::reserve::{Pools, Unit, page_bins};
use crate::place::table::BinTable;
use crate::place::tally::Tally;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Instant;

/// The state; `None` until the environment has been read, and for good when it asks for nothing.
pub static STATE: OwnedLock<Option<State>> = OwnedLock::new(None);

/// Lowest and highest address that was ever placed: calls outside pass without taking the lock.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// The userfaultfd of the thread that places memory at first touch, and gives candidates back when nothing happens; -1 without one.
pub static FAULTS: AtomicI32 = AtomicI32::new(-1);

/// A range that is placed at first touch.
pub struct Lazy {
    /// Its end.
    pub end: usize,
    /// Where the last filling ended.
    pub next: usize,
    /// How much was filled.
    pub step: usize,
}

/// A placed range: bins per page as first given and as placed, `NO_BIN` once a page is released.
struct Placed {
    end: usize,
    before: Vec<u32>,
    after: Vec<u32>,
}

/// Counts of the process's life.
#[derive(Clone, Default)]
pub struct Stats {
    /// Mappings, blocks and heap extensions placed.
    pub placed_ranges: u64,
    /// Pages placed over the whole life.
    pub placed_pages: u64,
    /// Of these, pages in huge pages.
    pub huge_pages: u64,
    /// Of these, pages whose frame came from the reserve.
    pub moved_pages: u64,
    /// Time spent placing, nanoseconds.
    pub nanoseconds: u64,
    /// Most memory held for candidates at a time, bytes.
    pub extra_bytes: u64,
    /// Ranges left to the kernel: too large for the memory that is available.
    pub left_no_memory: u64,
    /// Ranges left to the kernel: frame numbers hidden.
    pub left_hidden: u64,
    /// Ranges left to the kernel: any other failure.
    pub left_failed: u64,
    /// Pages that the program released with `madvise`; the kernel chooses their next frames.
    pub dropped_pages: u64,
    /// The last failure, in words.
    pub last_failure: String,
    /// Counts when most pages were placed: as the kernel gave them first.
    pub peak_before: Conflicts,
    /// Counts when most pages were placed: as they were placed.
    pub peak_after: Conflicts,
}

/// Everything the shim knows.
pub struct State {
    /// The settings.
    pub config: Config,
    /// The process that this state is about; a `vfork` child runs on its parent's state and has another id.
    pub pid: u32,
    /// Counts of the process's life.
    pub stats: Stats,
    /// Large blocks of the allocator: address and mapped bytes.
    pub blocks: BTreeMap<usize, usize>,
    /// The heap is placed up to this address.
    pub heap_end: usize,
    /// Growth that the allocator asks for at a time, bytes; 0 before the heap is followed.
    pub heap_step: usize,
    /// Ranges that are placed at first touch.
    pub lazy: BTreeMap<usize, Lazy>,
    /// Candidates kept between placements, while a thread is there to give them back.
    pub pools: Pools,
    table: BinTable,
    ranges: BTreeMap<usize, Placed>,
    before: Tally,
    after: Tally,
}

impl State {
    /// Nothing placed yet.
    ///
    /// # Errors
    /// [`PlaceError::Table`] when the shared table cannot be opened.
    pub fn new(config: Config) -> Result<State, PlaceError> {
        let mut table = BinTable::open(&config.table, config.bins, config.run)?;
        table.after_exec();
        let (before, after) = (Tally::new(config.bins), Tally::new(config.bins));
        Ok(State {
            config,
            pid: std::process::id(),
            stats: Stats::default(),
            blocks: BTreeMap::new(),
            heap_end: 0,
            heap_step: 0,
            lazy: BTreeMap::new(),
            pools: Pools::new(),
            table,
            ranges: BTreeMap::new(),
            before,
            after,
        })
    }

    /// Places a range and remembers it. On failure the range keeps the kernel's pages, and that is counted.
    ///
    /// # Safety
    /// As for `place_range`.
    pub unsafe fn place(&mut self, start: usize, bytes: usize, unit: Unit, fill: Fill) {
        let begun = Instant::now();
        let mut limits = self.config.limits;
        // Piece by piece no more is held than a placement of all pages at once would hold.
        let mut most = 0;
        if FAULTS.load(Ordering::Relaxed) >= 0 {
            let placed = self.after.pages() as usize * PAGE + bytes;
            most = (placed as f64 * limits.extra_factor) as usize;
            let room = most.saturating_sub(self.pools.bytes());
            limits.extra_factor = limits.extra_factor.max(room as f64 / bytes as f64);
        }
        // SAFETY: passed on.
        let result = unsafe {
            place_range(
                start,
                bytes,
                unit,
                fill,
                &limits,
                &mut self.table,
                &mut self.pools,
            )
        };
        self.trim_pools(most);
        self.stats.nanoseconds += begun.elapsed().as_nanos() as u64;
        match result {
            Ok(outcome) => self.remember(start, outcome),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &PlaceError) {
        match error {
            PlaceError::NoMemory(_) => self.stats.left_no_memory += 1,
            PlaceError::Hidden => self.stats.left_hidden += 1,
            _ => self.stats.left_failed += 1,
        }
        self.stats.last_failure = error.to_string();
    }

    fn remember(&mut self, start: usize, outcome: PlacementOutcome) {
        let end = start + outcome.after.len() * PAGE;
        for &bin in outcome.before.iter().filter(|&&b| b != NO_BIN) {
            self.before.add(bin);
        }
        let mut placed = 0;
        for &bin in outcome.after.iter().filter(|&&b| b != NO_BIN) {
            self.after.add(bin);
            placed += 1;
        }
        let s = &mut self.stats;
        s.placed_ranges += 1;
        s.placed_pages += placed;
        s.huge_pages += outcome.huge;
        s.moved_pages += outcome.moved;
        s.extra_bytes = s.extra_bytes.max(outcome.extra_bytes);
        if self.after.pages() > s.peak_after.pages {
            s.peak_before = self.before.conflicts();
            s.peak_after = self.after.conflicts();
        }
        note_range(start, end);
        self.ranges.insert(
            start,
            Placed {
                end,
                before: outcome.before,
                after: outcome.after,
            },
        );
    }

    /// Takes the pages from `start` to `end` out of the counts, because their frames go back to the kernel.
    /// Returns how many there were.
    pub fn forget(&mut self, start: usize, end: usize) -> u64 {
        let mut gone = 0;
        for (at, piece) in self.cut(start, end) {
            debug_assert!(at >= start && piece.end <= end);
            gone += piece.after.iter().filter(|&&b| b != NO_BIN).count() as u64;
            self.table
                .remove(piece.after.iter().copied().filter(|&b| b != NO_BIN));
            piece
                .after
                .iter()
                .filter(|&&b| b != NO_BIN)
                .for_each(|&b| self.after.remove(b));
            piece
                .before
                .iter()
                .filter(|&&b| b != NO_BIN)
                .for_each(|&b| self.before.remove(b));
        }
        gone
    }

    /// The pages from `start` to `end` are now at `new`.
    pub fn moved(&mut self, start: usize, end: usize, new: usize) {
        for (at, piece) in self.cut(start, end) {
            let (to, bytes) = (at - start + new, piece.end - at);
            note_range(to, to + bytes);
            self.ranges.insert(
                to,
                Placed {
                    end: to + bytes,
                    ..piece
                },
            );
        }
    }

    /// Does the page at `address` lie in a placed range?
    pub fn holds(&self, address: usize) -> bool {
        self.ranges
            .range(..=address)
            .next_back()
            .is_some_and(|(_, range)| address < range.end)
    }

    /// Takes out the ranges between `start` and `end`, cutting those that reach beyond.
    fn cut(&mut self, start: usize, end: usize) -> Vec<(usize, Placed)> {
        let mut pieces = Vec::new();
        while let Some((&at, range)) = self.ranges.range(..end).next_back() {
            if range.end <= start {
                break;
            }
            let Some(mut range) = self.ranges.remove(&at) else {
                break;
            };
            if range.end > end {
                let keep = (end - at) / PAGE;
                let tail = Placed {
                    end: range.end,
                    before: range.before.split_off(keep),
                    after: range.after.split_off(keep),
                };
                self.ranges.insert(end, tail);
                range.end = end;
            }
            if at < start {
                let keep = (start - at) / PAGE;
                let piece = Placed {
                    end: range.end,
                    before: range.before.split_off(keep),
                    after: range.after.split_off(keep),
                };
                range.end = start;
                self.ranges.insert(at, range);
                pieces.push((start, piece));
            } else {
                pieces.push((at, range));
            }
        }
        pieces
    }

    /// Gives candidates back until no more than `bytes` are held.
    pub fn trim_pools(&mut self, bytes: usize) {
        self.pools.trim(bytes);
        self.table.set_placing(self.pools.bytes() > 0);
    }

    /// Compares what was placed with what the page map shows now:
    /// `(pages still placed, pages that have another frame or none)`.
    pub fn drift(&self) -> (u64, u64) {
        let Ok(pagemap) = crate::place::pagemap::Pagemap::own() else {
            return (0, 0);
        };
        let (mut placed, mut other) = (0, 0);
        for (&start, range) in &self.ranges {
            let Ok(now) = page_bins(&pagemap, start, range.after.len(), self.config.bins) else {
                continue;
            };
            for (then, now) in range.after.iter().zip(now) {
                placed += u64::from(*then != NO_BIN);
                other += u64::from(*then != NO_BIN && *then != now);
            }
        }
        (placed, other)
    }

    /// In a forked child: its pages are shared with the parent, who has counted them.
    pub fn after_fork(&mut self) {
        self.pid = std::process::id();
        self.stats = Stats::default();
        self.ranges.clear();
        self.pools = Pools::new();
        self.before = Tally::new(self.config.bins);
        self.after = Tally::new(self.config.bins);
        self.table.after_fork();
    }

    /// The shared table.
    pub fn table(&mut self) -> &mut BinTable {
        &mut self.table
    }
}

/// May `start..end` hold something that was placed?
pub fn may_hold(start: usize, end: usize) -> bool {
    start < HIGHEST.load(Ordering::Relaxed) && end > LOWEST.load(Ordering::Relaxed)
}

/// From now on the range may hold something that was placed.
pub fn note_range(start: usize, end: usize) {
    LOWEST.fetch_min(start, Ordering::Relaxed);
    HIGHEST.fetch_max(end, Ordering::Relaxed);
}

/// As [`with_state`], but gives up when the lock is not free within `patience`.
pub fn with_state_within<T>(
    patience: std::time::Duration,
    action: impl FnOnce(&mut State) -> T,
) -> Option<T> {
    let mut guard = STATE.lock_within(patience)?;
    guard.as_mut().map(action)
}

/// Runs `action` on the state, unless the shim is idle, the calling thread is already inside it, or the
/// process runs on the state of its parent (`vfork`).
pub fn with_state<T>(action: impl FnOnce(&mut State) -> T) -> Option<T> {
    let mut guard = STATE.lock()?;
    let state = guard.as_mut().filter(|s| s.pid == std::process::id())?;
    Some(action(state))
}
