//! Blocks in two parts: the first is bound to fast memory, the rest to slow. How many bytes are fast, which blocks there are,
//! and the binding itself.

use crate::format::{FAST, SLOW};
use crate::map::Map;
use crate::pieces::Piece;
use crate::sys::{self, MPOL_MF_MOVE, PAGE};
use crate::thread::{self, Thread};
use crate::{budget, memory};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The smallest fast part, and the smallest block that is divided: mimalloc gives larger ones pages of their own
/// (`MI_MEDIUM_OBJ_SIZE_MAX`).
pub const LEAST: usize = 64 << 10;

/// A part begins or ends on the border of a large page, if it is at least this large.
const LARGE: usize = 16 << 20;
const LARGE_PAGE: usize = 2 << 20;

/// Bytes of a block that are to be fast: all, none, or what there is room for.
pub fn fast_part(at: usize, bytes: usize, room: i64) -> usize {
    if room >= bytes as i64 {
        return bytes;
    }
    if room < LEAST as i64 {
        return 0;
    }
    let unit = match room as usize >= LARGE {
        true => LARGE_PAGE,
        false => PAGE,
    };
    ((at + room as usize) / unit * unit).saturating_sub(at)
}

/// A block, and how much of it is fast.
#[derive(Clone, Copy, Default)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    /// None: it is not to be placed.
    pub group: Option<usize>,
    pub fast: usize,
}

impl Block {
    pub fn is_divided(&self) -> bool {
        0 < self.fast && self.fast < self.bytes
    }

    /// Its parts that are placed.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        let (start, cut, end) = (self.start, self.start + self.fast, self.start + self.bytes);
        let group = self.group;
        [(start, cut, FAST), (cut, end, SLOW)]
            .into_iter()
            .filter_map(move |(start, end, tier)| {
                let group = group.filter(|_| start < end)?;
                Some(Piece {
                    start,
                    end,
                    group,
                    tier,
                })
            })
    }

    /// Counts its bytes as given.
    pub fn count(&self, thread: &Thread) {
        self.pieces()
            .for_each(|piece| thread.mapped(piece.group, piece.tier, piece.bytes()));
    }

    /// Undoes the count of its bytes as freed.
    pub fn recount(&self, thread: &Thread) {
        self.pieces()
            .for_each(|piece| thread.kept(piece.group, piece.tier, piece.bytes()));
    }

    /// Counts its bytes as freed.
    pub fn uncount(&self) {
        self.pieces()
            .for_each(|piece| thread::taken(piece.group, piece.tier, piece.bytes()));
    }
}

/// Up to `N` blocks, which threads add and take out without waiting for one another.
pub struct Blocks<const N: usize> {
    /// First addresses; 0 for a free entry, 1 for one that is being filled.
    starts: [AtomicUsize; N],
    bytes: [AtomicUsize; N],
    /// Plus 1; 0 for none.
    groups: [AtomicUsize; N],
    fast: [AtomicUsize; N],
}

impl<const N: usize> Blocks<N> {
    pub const fn new() -> Blocks<N> {
        Blocks {
            starts: [const { AtomicUsize::new(0) }; N],
            bytes: [const { AtomicUsize::new(0) }; N],
            groups: [const { AtomicUsize::new(0) }; N],
            fast: [const { AtomicUsize::new(0) }; N],
        }
    }

    /// An entry for a block to come; none if all are in use.
    pub fn claim(&self) -> Option<usize> {
        self.starts.iter().position(|start| {
            start.load(Relaxed) == 0
                && start
                    .compare_exchange(0, 1, Ordering::Acquire, Relaxed)
                    .is_ok()
        })
    }

    /// Fills an entry, or changes it.
    pub fn set(&self, entry: usize, block: &Block) {
        self.bytes[entry].store(block.bytes, Relaxed);
        self.groups[entry].store(block.group.map_or(0, |g| g + 1), Relaxed);
        self.fast[entry].store(block.fast, Relaxed);
        self.starts[entry].store(block.start, Ordering::Release);
    }

    pub fn get(&self, entry: usize) -> Block {
        Block {
            start: self.starts[entry].load(Ordering::Acquire),
            bytes: self.bytes[entry].load(Relaxed),
            group: self.groups[entry].load(Relaxed).checked_sub(1),
            fast: self.fast[entry].load(Relaxed),
        }
    }

    pub fn free(&self, entry: usize) {
        self.starts[entry].store(0, Ordering::Release);
    }

    /// The entry of the block that begins here.
    pub fn find(&self, start: usize) -> Option<usize> {
        self.starts
            .iter()
            .position(|s| s.load(Ordering::Acquire) == start)
    }

    pub fn each(&self, mut told: impl FnMut(Block)) {
        let filled = |entry: &usize| self.starts[*entry].load(Ordering::Acquire) > 1;
        (0..N)
            .filter(filled)
            .for_each(|entry| told(self.get(entry)));
    }
}

/// Objects of the allocator that are divided, at most: each takes two of the 65530 mappings that a process may have.
const MOST: usize = 4096;
/// They lie in the range of slow memory.
static OBJECTS: Blocks<MOST> = Blocks::new();

/// Divides a new object of slow memory. What it holds is lost, if that is not refused. None: it stays as it is.
///
/// # Safety
/// The object has these bytes, and what it holds is not needed.
pub unsafe fn divide(
    map: &Map,
    object: usize,
    bytes: usize,
    group: usize,
    room: i64,
) -> Option<Block> {
    let fast = fast_part(object, bytes, room).min(bytes / PAGE * PAGE);
    if fast == 0 || !object.is_multiple_of(PAGE) {
        return None;
    }
    let entry = OBJECTS.claim()?;
    // The allocator's pages there are in slow memory. SAFETY: a part of the caller's object.
    unsafe { sys::drop_pages(object, fast) };
    if !sys::bind(object, fast, map.nodes_of(FAST), MPOL_MF_MOVE) {
        OBJECTS.free(entry);
        return None;
    }
    let block = Block {
        start: object,
        bytes,
        group: Some(group),
        fast,
    };
    OBJECTS.set(entry, &block);
    memory::set_divided(object, entry);
    Some(block)
}

/// How an object is divided, if it is. Of the tiers' ranges.
pub fn of(object: usize) -> Option<Block> {
    memory::divided(object).map(|entry| OBJECTS.get(entry))
}

/// Gives an object that is about to be freed back to slow memory, with all that it holds lost.
///
/// # Safety
/// Its contents are not needed.
#[cold]
pub unsafe fn join(map: &Map, object: usize) {
    let Some(entry) = memory::take_divided(object) else {
        return;
    };
    let fast = OBJECTS.get(entry).fast;
    // SAFETY: a part of the caller's object.
    unsafe { sys::drop_pages(object, fast) };
    sys::bind(object, fast, map.nodes_of(SLOW), MPOL_MF_MOVE);
    OBJECTS.free(entry);
}

/// Calls `told` for each object that is divided.
pub fn each(told: impl FnMut(Block)) {
    OBJECTS.each(told);
}

/// Binds a new mapping of ours for a block of a group, and counts it. What it holds stays.
pub fn settle(map: &Map, thread: &Thread, group: usize, at: usize, bytes: usize) -> Block {
    thread.flush();
    let fast = fast_part(at, bytes, budget::room(group));
    let mut block = Block {
        start: at,
        bytes,
        group: Some(group),
        fast,
    };
    if !block
        .pieces()
        .all(|p| sys::bind(p.start, p.bytes(), map.nodes_of(p.tier), 0))
    {
        block.group = None;
        return block;
    }
    thread.born(group);
    if fast < bytes && budget::is_fast(group) {
        thread.refused(group);
    }
    block.count(thread);
    block
}
