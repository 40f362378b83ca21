//! The large-object space: runs of pages, one object each, which move to another tier or not at all.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::blocks::Role;
use crate::layout::*;
use crate::mature::Tables;
use varve_pima::Tier;

const PAGES_PER_CHUNK: u32 = (CHUNK_SIZE / PAGE_SIZE) as u32;

/// A large-object space in the memory of one tier.
pub(crate) struct Large {
    pub tier: Tier,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free runs: first page -> pages.
    free: BTreeMap<u32, u32>,
    /// Objects: first page -> pages.
    objects: BTreeMap<u32, u32>,
    used_pages: u64,
    held_chunks: u64,
}

/// Pages for an object.
pub(crate) struct Run {
    /// Bytes from the heap's base.
    pub at: u64,
    /// They are zero, because they were never used before.
    pub fresh: bool,
}

/// Bytes that an object takes in a large-object space.
pub(crate) fn large_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_SIZE)
}

impl Large {
    pub fn new(tier: Tier) -> Large {
        Large {
            tier,
            state: Mutex::default(),
        }
    }

    /// Bytes of pages that hold objects.
    pub fn used(&self) -> u64 {
        self.lock().used_pages * PAGE_SIZE
    }

    /// Bytes of address range that the space holds.
    pub fn held(&self) -> u64 {
        self.lock().held_chunks * CHUNK_SIZE
    }

    /// Its chunks, as first ones and how many.
    pub fn chunks(&self) -> Vec<(u32, u32)> {
        let state = self.lock();
        // Every page of a chunk is in an object or free.
        let pages: BTreeMap<u32, u32> = state
            .objects
            .iter()
            .chain(&state.free)
            .map(|(&p, &n)| (p, n))
            .collect();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (page, count) in pages {
            match runs.last_mut() {
                Some((start, held)) if *start + *held == page => *held += count,
                _ => runs.push((page, count)),
            }
        }
        let chunks = |(page, count)| (page / PAGES_PER_CHUNK, count / PAGES_PER_CHUNK);
        runs.into_iter().map(chunks).collect()
    }

    /// Whether an object of this space begins at `offset`.
    pub fn contains(&self, offset: u64) -> bool {
        let page = offset / PAGE_SIZE;
        offset.is_multiple_of(PAGE_SIZE) && self.lock().objects.contains_key(&(page as u32))
    }

    /// Where the object of this space begins that has the page of `offset`.
    pub fn around(&self, offset: u64) -> Option<u64> {
        let page = (offset / PAGE_SIZE) as u32;
        let state = self.lock();
        let (&first, &pages) = state.objects.range(..=page).next_back()?;
        (page < first + pages).then(|| u64::from(first) * PAGE_SIZE)
    }

    /// Pages for an object of `bytes`; they are not zeroed. `None` if the address range is used up.
    pub fn alloc(&self, tables: &Tables, bytes: u64, for_collection: bool) -> Option<Run> {
        let pages = u32::try_from(large_bytes(bytes) / PAGE_SIZE).ok()?;
        let mut state = self.lock();
        let fitting = state
            .free
            .iter()
            .find(|&(_, &run)| run >= pages)
            .map(|(&start, &run)| (start, run, false));
        let (start, run, fresh) = match fitting {
            Some(found) => found,
            None => {
                let count = pages.div_ceil(PAGES_PER_CHUNK);
                let taken = tables.take(count, for_collection, Role::Other, self.tier)?;
                state.held_chunks += u64::from(count);
                let (start, run) = (taken.first * PAGES_PER_CHUNK, count * PAGES_PER_CHUNK);
                (start, run, taken.fresh)
            }
        };
        state.free.remove(&start);
        if run > pages {
            state.free.insert(start + pages, run - pages);
        }
        state.objects.insert(start, pages);
        state.used_pages += u64::from(pages);
        Some(Run {
            at: u64::from(start) * PAGE_SIZE,
            fresh,
        })
    }

    /// Frees all objects that are not marked, and frees chunks that became empty.
    pub fn sweep(&self, tables: &Tables, mark: u8, poison: bool) {
        let mut state = self.lock();
        let dead: Vec<(u32, u32)> = state
            .objects
            .iter()
            .filter(|&(&page, _)| {
                let object = tables.memory.reference(u64::from(page) * PAGE_SIZE);
                !tables.memory.checked_header(object).is_marked(mark)
            })
            .map(|(&page, &pages)| (page, pages))
            .collect();
        for (page, pages) in dead {
            state.objects.remove(&page);
            state.used_pages -= u64::from(pages);
            if poison {
                tables
                    .memory
                    .poison(u64::from(page) * PAGE_SIZE, u64::from(pages) * PAGE_SIZE);
            }
            let (page, pages) = state.merge(page, pages);
            state.give_back_whole_chunks(tables, page, pages);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a free run to those around it, and gives the whole of it.
    fn merge(&mut self, mut page: u32, mut pages: u32) -> (u32, u32) {
        if let Some((&before, &run)) = self.free.range(..page).next_back()
            && before + run == page
        {
            self.free.remove(&before);
            (page, pages) = (before, run + pages);
        }
        if let Some(run) = self.free.remove(&(page + pages)) {
            pages += run;
        }
        self.free.insert(page, pages);
        (page, pages)
    }

    fn give_back_whole_chunks(&mut self, tables: &Tables, page: u32, pages: u32) {
        let first = page.div_ceil(PAGES_PER_CHUNK);
        let end = (page + pages) / PAGES_PER_CHUNK;
        if first >= end {
            return;
        }
        self.free.remove(&page);
        let (start, stop) = (first * PAGES_PER_CHUNK, end * PAGES_PER_CHUNK);
        if page < start {
            self.free.insert(page, start - page);
        }
        if stop < page + pages {
            self.free.insert(stop, page + pages - stop);
        }
        tables.chunks.give_back(first, end - first);
        self.held_chunks -= u64::from(end - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Blocks;
    use crate::chunks::Chunks;
    use crate::header::Header;
    use crate::lines::Lines;
    use crate::memory::Memory;

    #[test]
    fn dead_objects_leave_room_and_empty_chunks_go_back() {
        let extent = 8 * CHUNK_SIZE;
        let tables = Tables {
            memory: Memory::reserve(extent).unwrap(),
            chunks: Chunks::new(1, extent, 2),
            lines: Lines::new(extent),
            blocks: Blocks::new(extent),
            backing: None,
        };
        let space = Large::new(Tier(0));
        let sizes = [
            9 << 10,
            CHUNK_SIZE / 3,
            CHUNK_SIZE / 10 * 9,
            2 * CHUNK_SIZE,
            10 << 10,
        ];
        let objects = sizes.map(|bytes| space.alloc(&tables, bytes, false).unwrap().at);
        assert_eq!(
            space.used(),
            sizes.iter().map(|&bytes| large_bytes(bytes)).sum::<u64>()
        );
        assert_eq!(space.held(), 4 * CHUNK_SIZE);
        assert!(
            space.alloc(&tables, 3 * CHUNK_SIZE, false).is_none(),
            "the last two chunks are for collections"
        );
        for (&at, bytes) in objects.iter().zip(sizes) {
            assert!(space.contains(at));
            assert_eq!(space.around(at + bytes - 1), Some(at));
        }
        assert_eq!(space.around(objects[4] + (12 << 10)), None);

        // The first and the last live.
        for at in [objects[0], objects[4]] {
            let header = Header(0).marked(MARK_B);
            tables.memory.write(at, &header.0.to_ne_bytes());
        }
        space.sweep(&tables, MARK_B, false);
        assert_eq!(
            (space.used(), space.held()),
            ((12 << 10) + (12 << 10), CHUNK_SIZE)
        );
        assert!(!space.contains(objects[1]));
        let again = space.alloc(&tables, 3 * CHUNK_SIZE, false).unwrap();
        assert_eq!((again.at, again.fresh), (2 * CHUNK_SIZE, false));
        space.sweep(&tables, MARK_A, false);
        assert_eq!((space.used(), space.held()), (0, 0));
    }
}
