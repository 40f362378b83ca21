//! The mark-region space: blocks of lines, allocated by bumping through holes, swept by line marks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::blocks::{Blocks, Role, is_evacuated};
use crate::chunks::{Chunks, Taken};
use crate::config::Backing;
use crate::layout::*;
use crate::lines::{Lines, Swept};
use crate::memory::Memory;
use varve_pima::Tier;

/// The tables over the whole address range that spaces share.
pub(crate) struct Tables {
    pub memory: Memory,
    pub chunks: Chunks,
    pub lines: Lines,
    pub blocks: Blocks,
    pub backing: Option<Box<dyn Backing>>,
}

impl Tables {
    /// Takes chunks for a space in a tier's memory, as [`Chunks::take`] does, and gives their blocks that role.
    pub fn take(&self, count: u32, for_collection: bool, role: Role, tier: Tier) -> Option<Taken> {
        let taken = self.chunks.take(count, for_collection)?;
        let first = taken.first;
        for block in (first..first + count).flat_map(blocks_of) {
            self.blocks.set(block, role, tier.0);
        }
        let (start, bytes) = (u64::from(first) * CHUNK_SIZE, u64::from(count) * CHUNK_SIZE);
        self.bind(start, bytes, tier);
        Some(taken)
    }

    /// Has a range of the heap backed by a tier's memory: whole chunks that the caller just took, or young space that is empty.
    pub fn bind(&self, offset: u64, bytes: u64, tier: Tier) {
        if let Some(backing) = &self.backing {
            // SAFETY: the heap's own memory, in which there is no object.
            unsafe { backing.bind(self.memory.base_address() + offset, bytes, tier) };
        }
    }
}

/// A mark-region space in the memory of one tier.
pub(crate) struct Mature {
    pub tier: Tier,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Chunks that belong to this space, ascending.
    chunks: Vec<u32>,
    /// Blocks without any object, descending: the lowest is taken first.
    free: Vec<u32>,
    /// Blocks with holes that no thread took since the last full collection, descending.
    recyclable: Vec<Recyclable>,
    /// Bytes that are not available: live, taken, or kept because of a live neighbour.
    used: u64,
}

#[derive(Clone, Copy)]
struct Recyclable {
    block: u32,
    swept: Swept,
}

impl Mature {
    pub fn new(tier: Tier) -> Mature {
        Mature {
            tier,
            state: Mutex::default(),
        }
    }

    /// Bytes that are not available for allocation.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// Bytes of address range that the space holds.
    pub fn held(&self) -> u64 {
        self.lock().chunks.len() as u64 * CHUNK_SIZE
    }

    /// Its chunks, as first ones and how many.
    pub fn chunks(&self) -> Vec<(u32, u32)> {
        self.lock().chunks.iter().map(|&chunk| (chunk, 1)).collect()
    }

    /// A block with holes, to be searched for them from line 0.
    fn take_recyclable(&self) -> Option<u32> {
        let mut state = self.lock();
        let Recyclable { block, swept } = state.recyclable.pop()?;
        state.used += u64::from(swept.available) * LINE_SIZE;
        Some(block)
    }

    /// A block without objects, all its lines taken.
    fn take_free(&self, tables: &Tables) -> Option<u32> {
        let mut state = self.lock();
        if state.free.is_empty() {
            let chunk = tables.take(1, true, Role::Mature, self.tier)?.first;
            let at = state.chunks.partition_point(|&other| other < chunk);
            state.chunks.insert(at, chunk);
            let first = chunk * BLOCKS_PER_CHUNK;
            state.free.extend((first..first + BLOCKS_PER_CHUNK).rev());
        }
        let block = state.free.pop()?;
        state.used += BLOCK_SIZE;
        drop(state);
        tables.lines.take_block(block);
        Some(block)
    }

    /// Chooses the emptiest blocks, live lines of at most `budget` bytes in total, and has their objects evacuated.
    /// The marks of blocks from which a thread allocated since the last full collection are out of date: they are not chosen, except when
    /// `everything` is to move.
    pub fn choose_evacuated(&self, tables: &Tables, budget: u64, everything: bool) {
        let mut state = self.lock();
        if everything {
            state.recyclable.clear();
            let free: std::collections::HashSet<u32> = state.free.iter().copied().collect();
            for block in state
                .chunks
                .iter()
                .flat_map(|&chunk| blocks_of(chunk))
                .filter(|block| !free.contains(block))
            {
                tables.blocks.set(block, Role::Evacuated, self.tier.0);
            }
            return;
        }
        let mut sparse: Vec<Recyclable> = state
            .recyclable
            .iter()
            .copied()
            .filter(|r| usize::from(r.swept.live) <= LINES_PER_BLOCK / 2)
            .collect();
        sparse.sort_by_key(|r| (r.swept.live, r.block));
        let mut bytes = 0;
        for chosen in &sparse {
            let more = u64::from(chosen.swept.live) * LINE_SIZE;
            if bytes + more > budget {
                break;
            }
            bytes += more;
            tables
                .blocks
                .set(chosen.block, Role::Evacuated, self.tier.0);
        }
        state
            .recyclable
            .retain(|r| !is_evacuated(tables.blocks.bytes(), u64::from(r.block) * BLOCK_SIZE));
    }

    /// Bytes in holes that no thread took since the last full collection.
    pub fn recyclable_bytes(&self) -> u64 {
        self.lock()
            .recyclable
            .iter()
            .map(|r| u64::from(r.swept.available) * LINE_SIZE)
            .sum()
    }

    /// Frees all lines that are not marked `live`, and frees chunks that became empty.
    pub fn sweep(&self, tables: &Tables, live: u8, poison: bool) {
        let mut state = self.lock();
        let State {
            chunks,
            free,
            recyclable,
            used,
        } = &mut *state;
        free.clear();
        recyclable.clear();
        *used = 0;
        chunks.retain(|&chunk| {
            let free_before = free.len();
            for block in blocks_of(chunk) {
                tables.blocks.set(block, Role::Mature, self.tier.0);
                let swept = tables.lines.sweep(block, live);
                let unavailable = LINES_PER_BLOCK as u64 - u64::from(swept.available);
                *used += unavailable * LINE_SIZE;
                if swept.live == 0 {
                    free.push(block);
                } else if swept.available > 0 {
                    recyclable.push(Recyclable { block, swept });
                }
                if poison {
                    let start = u64::from(block) * BLOCK_SIZE;
                    tables.lines.holes(block, |hole| {
                        tables.memory.poison(
                            start + hole.start as u64 * LINE_SIZE,
                            hole.len() as u64 * LINE_SIZE,
                        )
                    });
                }
            }
            let empty = free.len() - free_before == BLOCKS_PER_CHUNK as usize;
            if empty {
                free.truncate(free_before);
                for block in blocks_of(chunk) {
                    tables.blocks.set(block, Role::Other, 0);
                }
                tables.chunks.give_back(chunk, 1);
            }
            !empty
        });
        free.reverse();
        recyclable.reverse();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn blocks_of(chunk: u32) -> std::ops::Range<u32> {
    chunk * BLOCKS_PER_CHUNK..(chunk + 1) * BLOCKS_PER_CHUNK
}

/// One thread's place in a mark-region space: a hole for small objects, and a block for those that are longer than
/// most holes.
#[derive(Default)]
pub(crate) struct Bump {
    small: Gap,
    /// Block of the small hole, and the line from which the search for its next one begins.
    block: Option<(u32, usize)>,
    medium: Gap,
}

/// Bytes from the heap's base: the next free one and the first one after the hole.
#[derive(Clone, Copy, Default)]
struct Gap {
    cursor: u64,
    limit: u64,
}

impl Gap {
    #[inline(always)]
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let next = self.cursor + bytes;
        if next > self.limit {
            return None;
        }
        let at = self.cursor;
        self.cursor = next;
        Some(at)
    }

    fn of_lines(block: u32, lines: std::ops::Range<usize>) -> Gap {
        let start = u64::from(block) * BLOCK_SIZE;
        Gap {
            cursor: start + lines.start as u64 * LINE_SIZE,
            limit: start + lines.end as u64 * LINE_SIZE,
        }
    }
}

impl Bump {
    /// Room for an object of `bytes`, less than [`LARGE_THRESHOLD`], in bytes from the heap's base; `None` if the address
    /// range is used up. The room is not zeroed.
    #[inline(always)]
    pub fn alloc(&mut self, space: &Mature, tables: &Tables, bytes: u64) -> Option<u64> {
        match self.small.take(bytes) {
            Some(at) => Some(at),
            None => self.alloc_slow(space, tables, bytes),
        }
    }

    /// Forgets the hole and the block: the next full collection frees their unused parts.
    pub fn retire(&mut self) {
        *self = Bump::default();
    }

    #[cold]
    fn alloc_slow(&mut self, space: &Mature, tables: &Tables, bytes: u64) -> Option<u64> {
        debug_assert!(bytes < LARGE_THRESHOLD);
        if bytes > LINE_SIZE {
            // A search for a hole that is long enough would give up the small ones on the way.
            if let Some(at) = self.medium.take(bytes) {
                return Some(at);
            }
            self.medium = Gap::of_lines(space.take_free(tables)?, 0..LINES_PER_BLOCK);
            return self.medium.take(bytes);
        }
        loop {
            if let Some((block, from)) = self.block {
                if let Some(hole) = tables.lines.take_hole(block, from) {
                    self.block = Some((block, hole.end));
                    self.small = Gap::of_lines(block, hole);
                    return self.small.take(bytes);
                }
                self.block = None;
            }
            if let Some(block) = space.take_recyclable() {
                self.block = Some((block, 0));
                continue;
            }
            self.small = Gap::of_lines(space.take_free(tables)?, 0..LINES_PER_BLOCK);
            return self.small.take(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::{live_value, mark};

    fn tables(chunks: u64) -> Tables {
        let extent = chunks * CHUNK_SIZE;
        Tables {
            memory: Memory::reserve(extent).unwrap(),
            chunks: Chunks::new(1, extent, 1),
            lines: Lines::new(extent),
            blocks: Blocks::new(extent),
            backing: None,
        }
    }

    #[test]
    fn survivors_keep_their_lines_and_the_rest_is_allocated_again() {
        let (tables, space, mut bump) = (tables(6), Mature::new(Tier(0)), Bump::default());
        let live = live_value(MARK_A);
        // Two chunks full of 64-byte objects; every 16th (one in four lines) survives, in the first chunk alone.
        let all: Vec<u64> = (0..2 * CHUNK_SIZE / 64)
            .map(|_| bump.alloc(&space, &tables, 64).unwrap())
            .collect();
        assert_eq!(
            (space.used(), space.held()),
            (2 * CHUNK_SIZE, 2 * CHUNK_SIZE)
        );
        let survivors: Vec<u64> = all[..all.len() / 2].iter().copied().step_by(16).collect();
        for &at in &survivors {
            mark(tables.lines.bytes(), at, 64, live);
        }
        bump.retire();
        space.sweep(&tables, live, !cfg!(miri));
        assert_eq!(
            (space.used(), space.held()),
            (CHUNK_SIZE / 2, CHUNK_SIZE),
            "a line and its neighbour of every four"
        );
        // New allocations fill the holes first, and touch no survivor's line.
        let again: Vec<u64> = (0..CHUNK_SIZE / 2 / 64)
            .map(|_| bump.alloc(&space, &tables, 64).unwrap())
            .collect();
        assert_eq!(space.held(), CHUNK_SIZE);
        let lines: std::collections::HashSet<u64> =
            survivors.iter().map(|at| at / LINE_SIZE).collect();
        assert!(again.iter().all(|at| !lines.contains(&(at / LINE_SIZE))));
        assert_eq!(space.used(), CHUNK_SIZE);
    }

    #[test]
    fn the_emptiest_blocks_are_evacuated_within_the_budget() {
        let (tables, space, mut bump) = (tables(4), Mature::new(Tier(0)), Bump::default());
        let live = live_value(MARK_A);
        let blocks: Vec<u32> = (0..4)
            .map(|_| {
                let at = bump.alloc(&space, &tables, 8).unwrap();
                assert!((1..BLOCK_SIZE / 8).all(|_| bump.alloc(&space, &tables, 8).is_some()));
                (at / BLOCK_SIZE) as u32
            })
            .collect();
        // 10, 20, 30 and 100 live lines.
        for (&block, lines) in blocks.iter().zip([20, 10, 100, 30]) {
            mark(
                tables.lines.bytes(),
                u64::from(block) * BLOCK_SIZE,
                lines * LINE_SIZE,
                live,
            );
        }
        bump.retire();
        space.sweep(&tables, live, false);
        space.choose_evacuated(&tables, 40 * LINE_SIZE, false);
        let chosen: Vec<bool> = blocks
            .iter()
            .map(|&b| is_evacuated(tables.blocks.bytes(), u64::from(b) * BLOCK_SIZE))
            .collect();
        assert_eq!(chosen, [true, true, false, false]);
        // Their holes are not allocated from.
        let at = bump.alloc(&space, &tables, 8).unwrap();
        assert_eq!((at / BLOCK_SIZE) as u32, blocks[2]);
    }

    /// Live blocks become recyclable and then free; nothing is handed out twice on the way.
    #[test]
    fn a_block_is_free_or_has_holes_but_not_both() {
        let (tables, space, mut bump) = (tables(4), Mature::new(Tier(0)), Bump::default());
        let first = bump.alloc(&space, &tables, 8).unwrap();
        let used = [first, first + BLOCK_SIZE];
        for (round, live) in [&used[..], &used[..1]].into_iter().enumerate() {
            let value = live_value([MARK_A, MARK_B][round]);
            for &offset in live {
                mark(tables.lines.bytes(), offset, 8, value);
            }
            bump.retire();
            space.sweep(&tables, value, false);
        }
        let mut given = std::collections::HashSet::new();
        for _ in 0..BLOCKS_PER_CHUNK - 1 {
            for _ in 0..BLOCK_SIZE / LINE_SIZE {
                let at = bump.alloc(&space, &tables, LINE_SIZE).unwrap();
                assert!(given.insert(at), "{at:?} was handed out twice");
            }
        }
    }

    #[test]
    fn medium_objects_leave_small_holes_alone() {
        let (tables, space, mut bump) = (tables(4), Mature::new(Tier(0)), Bump::default());
        let live = live_value(MARK_A);
        let first = bump.alloc(&space, &tables, 8).unwrap();
        mark(tables.lines.bytes(), first + 10 * LINE_SIZE, 8, live);
        bump.retire();
        space.sweep(&tables, live, false);
        let small = bump.alloc(&space, &tables, 16).unwrap();
        assert_eq!(small, first, "into the hole of ten lines");
        let medium = bump.alloc(&space, &tables, 4096).unwrap();
        assert_ne!(medium / BLOCK_SIZE, first / BLOCK_SIZE);
        assert_eq!(bump.alloc(&space, &tables, 16).unwrap(), first + 16);
    }

    #[test]
    fn a_full_address_range_is_no_room() {
        let (tables, space, mut bump) = (tables(3), Mature::new(Tier(0)), Bump::default());
        let fitted = (0..)
            .take_while(|_| bump.alloc(&space, &tables, 4096).is_some())
            .count() as u64;
        assert_eq!(fitted, 2 * CHUNK_SIZE / 4096);
    }
}
