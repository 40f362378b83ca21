//! The store's own memory, right below the heap's base.
//!
//! Compiled code keeps the heap's base in a pinned register. An object is at `base + reference * 4`, and everything else that
//! code touches (the context, globals, functions, descriptors of tables and memories, the type rows) is at a fixed
//! negative distance from the same register: no second base, and one addressing mode for all.
//!
//! ```text
//! region  0        64 KiB    +4 KiB   +64 KiB      +16 MiB                  64 MiB   REGION = heap base
//!         | unmapped | context | state | type rows | functions, globals, ... | counters |
//! ```
//!
//! Places in the region are byte offsets from its start. Place 0 is the null function reference, and is unmapped, so
//! that a call through null faults.

use crate::error::{Error, Result};
use varve_heap::Mutator;

/// A place in the region.
pub(crate) type Place = u32;

/// Bytes of the region.
pub(crate) const REGION: usize = 128 << 20;
/// Place of the first counter of compiled code. They have a range of their own, which is kept from run to run as it is.
const CELLS: Place = (REGION / 2) as Place;
/// Bytes at its start that are never mapped.
const NULL_FUNCTION_GUARD: usize = 64 << 10;
/// Place of the [`Context`].
pub(crate) const CONTEXT: Place = NULL_FUNCTION_GUARD as Place;
/// Where an activation that goes on in other code leaves its locals and operands, 8 bytes each.
pub(crate) const STATE: Place = CONTEXT + 4096;
/// Values that fit there.
pub(crate) const STATE_WORDS: usize = 8192;
/// Place of the first type row.
pub(crate) const TYPE_ROWS: Place = STATE + 8 * STATE_WORDS as Place;
/// Most types of an engine whose stores run code.
pub(crate) const MAX_TYPES: usize = 1 << 18;
/// Bytes of a type row: the kind of type, then the ids of its supertypes from the root on.
pub(crate) const TYPE_ROW: usize = 64;
/// Supertypes that fit into a row; casts to deeper types ask the engine.
pub(crate) const ROW_DEPTH: usize = TYPE_ROW / 4 - 1;
const FIRST_FREE: Place = TYPE_ROWS + (MAX_TYPES * TYPE_ROW) as Place;

/// The word at the beginning of a type row.
pub(crate) mod row_kind {
    pub const FUNC: u32 = 0;
    pub const STRUCT: u32 = 1;
    pub const ARRAY: u32 = 2;
    /// Objects whose contents modules cannot access: the host's and exceptions.
    pub const OPAQUE: u32 = 3;
}

/// The state shared by compiled code, its helpers and the entry code.
#[repr(C)]
pub(crate) struct Context {
    /// The store's `Vm`; first argument of each helper.
    pub vm: *mut super::Vm,
    /// Frames below this address overflow the stack.
    pub stack_limit: usize,
    /// Stack pointer of the innermost entry into compiled code, where its [`EntryRecord`] lies; 0 outside.
    pub entry: usize,
    /// Frame pointer of the compiled frame that called out last.
    pub exit_fp: usize,
    /// Stack pointer at that call, where the return address lies.
    pub exit_sp: usize,
    /// Where a signal interrupted compiled code.
    pub fault_pc: usize,
    pub fault_fp: usize,
    pub fault_address: usize,
    /// The heap's base, for the pinned register.
    pub heap_base: usize,
    /// Not 0 once an object has become durable, or durable objects were found.
    pub durable: u64,
    /// Where the next object is born.
    pub mutator: Mutator,
    /// Written by each iteration of a loop that checks for an interrupt: so the compiler, which knows of no other threads, has the
    /// limit read in the next one too.
    pub looked: u64,
    /// So that the next field has a cache line of its own.
    pub padding: [u64; 6],
    /// The function that runs, by its number in the store plus 1, if it is sampled; 0 before the first one. Each read by the sampler takes the cache
    /// line from the program: nothing else that code needs is in it.
    pub running: u32,
}

const _: () = assert!(std::mem::offset_of!(Context, running).is_multiple_of(64));

/// The state that an entry into compiled code saves on the stack, restored on exit.
#[repr(C)]
pub(crate) struct EntryRecord {
    pub exit_sp: usize,
    pub exit_fp: usize,
    pub entry: usize,
}

/// A function as compiled code sees it. Function references are places of these.
#[repr(C)]
pub(crate) struct FuncRecord {
    /// Where calls jump to.
    pub code: *const u8,
    /// Its type in the engine.
    pub ty: u32,
    /// Its number in the store.
    pub id: u32,
}

/// Baseline code's counters of a function.
#[repr(C)]
pub(crate) struct FuncCounters {
    /// Calls.
    pub entries: u32,
    /// Sinks with calls and loops; below 0 the function is hot. In the upper half of a word, so that a call changes both at once.
    pub heat: i32,
}

/// Baseline code's counters at a call through a reference: the calls of each target.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TargetCounters {
    /// The first targets, as places of their records, 0 while there is none; and their calls.
    pub targets: [Place; 4],
    pub hits: [u32; 4],
    /// Calls of all others.
    pub others: u32,
}

impl TargetCounters {
    /// All calls.
    pub fn total(&self) -> u64 {
        self.hits.iter().map(|&h| u64::from(h)).sum::<u64>() + u64::from(self.others)
    }
}

/// A linear memory as compiled code sees it.
#[repr(C)]
pub(crate) struct MemoryRecord {
    pub base: *mut u8,
    pub bytes: u64,
}

/// A table as compiled code sees it.
#[repr(C)]
pub(crate) struct TableRecord {
    pub base: *mut u32,
    pub len: u64,
}

pub(crate) struct Region {
    start: *mut u8,
    next: Place,
    mapped: Place,
    next_cell: Place,
    mapped_cells: Place,
}

impl Region {
    /// # Safety
    /// `start` is the start of `REGION` bytes that are reserved, not accessible, and outlive the region.
    pub unsafe fn new(start: *mut u8) -> Result<Region> {
        let mut region = Region {
            start,
            next: FIRST_FREE,
            mapped: FIRST_FREE,
            next_cell: CELLS,
            mapped_cells: CELLS,
        };
        region.map(CONTEXT, FIRST_FREE)?;
        Ok(region)
    }

    fn map(&mut self, from: Place, to: Place) -> Result<()> {
        // SAFETY: the range lies in the reservation that `new` was given.
        let done = unsafe {
            libc::mprotect(
                self.start.add(from as usize).cast(),
                (to - from) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(Error::System(format!(
                "no memory for the store: {}",
                std::io::Error::last_os_error()
            ))),
        }
    }

    /// A fresh place of `bytes` zeroed bytes, aligned to 16.
    pub fn allocate(&mut self, bytes: usize) -> Result<Place> {
        let end = (self.next as usize + bytes).next_multiple_of(16);
        if end > CELLS as usize {
            return Err(Error::usage(
                "the store is full: too many functions, globals, tables or memories",
            ));
        }
        if end as Place > self.mapped {
            let mapped = end.next_multiple_of(1 << 20) as Place;
            self.map(self.mapped, mapped)?;
            self.mapped = mapped;
        }
        let place = self.next;
        self.next = end as Place;
        Ok(place)
    }

    /// A fresh place of zeroed counters, which are words or, if the bytes are a multiple of eight, pairs of them.
    pub fn allocate_cell(&mut self, bytes: usize) -> Result<Place> {
        let align = if bytes.is_multiple_of(8) { 8 } else { 4 };
        let place = self.next_cell.next_multiple_of(align);
        self.map_cells(place as usize + bytes)?;
        Ok(place)
    }

    fn map_cells(&mut self, end: usize) -> Result<()> {
        if end > REGION {
            return Err(Error::usage("the store is full: too much code that counts"));
        }
        if end as Place > self.mapped_cells {
            let mapped = end.next_multiple_of(1 << 18) as Place;
            self.map(self.mapped_cells, mapped)?;
            self.mapped_cells = mapped;
        }
        self.next_cell = end as Place;
        Ok(())
    }

    /// All counters.
    pub fn cells(&self) -> &[u8] {
        let len = (self.next_cell - CELLS) as usize;
        // SAFETY: the range was allocated, and compiled code, which counts there, waits or is on this thread.
        unsafe { std::slice::from_raw_parts(self.address(CELLS), len) }
    }

    /// Gives a region that has no counters yet those of an earlier run, at the same places.
    pub fn restore_cells(&mut self, cells: &[u8]) -> Result<()> {
        assert_eq!(self.next_cell, CELLS, "counters come first");
        self.map_cells(CELLS as usize + cells.len())?;
        // SAFETY: the range was just allocated.
        unsafe {
            self.address::<u8>(CELLS)
                .copy_from(cells.as_ptr(), cells.len())
        };
        Ok(())
    }

    /// Where the next function, global, table or memory will be.
    pub fn next(&self) -> Place {
        self.next
    }

    pub fn address<T>(&self, place: Place) -> *mut T {
        self.start.wrapping_add(place as usize).cast()
    }

    pub fn context(&self) -> *mut Context {
        self.address(CONTEXT)
    }

    /// Writes the row of a type. Panics if there can be none of that number.
    pub fn write_type_row(&self, index: usize, kind: u32, display: &[u32]) {
        assert!(index < MAX_TYPES, "type {index} has no row");
        let row: *mut u32 = self.address(TYPE_ROWS + (index * TYPE_ROW) as Place);
        for i in 0..=ROW_DEPTH {
            let word = if i == 0 {
                kind
            } else {
                display.get(i - 1).copied().unwrap_or(u32::MAX)
            };
            // SAFETY: `index` is below MAX_TYPES, so the row is mapped and ours.
            unsafe { row.add(i).write(word) };
        }
    }
}

/// Displacement of a place from the pinned register.
pub(crate) const fn displacement(place: Place) -> i32 {
    place as i32 - REGION as i32
}
