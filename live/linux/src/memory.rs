//! Placed memory for a Rust program.

use crate::options::LiveOptions;
use crate::place::bins::{HUGE, PAGE};
use crate::place::choose::NO_BIN;
use crate::place::conflicts::Conflicts;
use crate::place::engine::{Fill, PlacementLimits};
use crate::place::error::PlaceError;
use crate::place::pagemap::{Pagemap, frames_readable};
use crate::place::range::place_range;
use crate::place::reserve::{Pools, Unit, page_bins};
use crate::place::sys;
use crate::place::table::BinTable;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Hands out memory whose pages share the bins of the DRAM cache as little as possible, with all other
/// memory placed on this machine taken into account.
pub struct Placer {
    table: Arc<Mutex<BinTable>>,
    unit: Unit,
    limits: PlacementLimits,
}

impl Placer {
    /// Opens the shared load table. One placer per process and cache; `heap` and `threshold_bytes` of the
    /// options concern whole programs and play no part here.
    ///
    /// # Errors
    /// [`PlaceError::Hidden`] without the right to read frame numbers, [`PlaceError::Geometry`] for an
    /// impossible cache, [`PlaceError::Table`] when the table cannot be opened.
    pub fn new(options: &LiveOptions) -> Result<Placer, PlaceError> {
        let bins = options.bins()?;
        frames_readable()?;
        let table = BinTable::open(&options.table_dir, bins, 0)?;
        Ok(Placer {
            table: Arc::new(Mutex::new(table)),
            unit: options.pages.unit(),
            limits: options.effective_limits(),
        })
    }

    /// `bytes` of zeroed memory, in memory and placed, rounded up to whole 4 KiB pages.
    ///
    /// # Errors
    /// [`PlaceError::NoMemory`] beyond the memory limit, [`PlaceError::System`] when the kernel refuses.
    pub fn memory(&self, bytes: usize) -> Result<PlacedMemory, PlaceError> {
        let size = if self.unit == Unit::Huge && bytes >= HUGE {
            HUGE
        } else {
            PAGE
        };
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        let prot = sys::PROT_READ | sys::PROT_WRITE;
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
        let slack = size - PAGE;
        // SAFETY: no MAP_FIXED.
        let mapping = unsafe { sys::mmap(0, bytes + slack, prot, flags, -1, 0) }
            .map_err(|e| PlaceError::System("cannot map memory", e))?;
        let start = mapping.next_multiple_of(size);
        let mut memory = PlacedMemory {
            table: Arc::clone(&self.table),
            mapping: (mapping, bytes + slack),
            start,
            bytes,
            before: Vec::new(),
            counted: Vec::new(),
        };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: mapped just now, and no other thread knows it.
        let outcome = unsafe {
            place_range(
                start,
                bytes,
                self.unit,
                Fill::Fresh,
                &self.limits,
                &mut table,
                &mut Pools::new(),
            )
        }?;
        table.set_placing(false);
        drop(table);
        memory.before = outcome.before;
        memory.counted = outcome.after;
        Ok(memory)
    }
}

impl Drop for Placer {
    fn drop(&mut self) {
        // Memory that is still alive keeps the table, and its counts.
        if Arc::strong_count(&self.table) == 1 {
            self.table
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .leave();
        }
    }
}

/// Memory from a [`Placer`]; unmapped when dropped.
pub struct PlacedMemory {
    table: Arc<Mutex<BinTable>>,
    mapping: (usize, usize),
    start: usize,
    bytes: usize,
    before: Vec<u32>,
    counted: Vec<u32>,
}

impl PlacedMemory {
    /// How its pages would share bins with the frames that the kernel gave first.
    pub fn conflicts_before(&self) -> Conflicts {
        let bins = self
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bins();
        Conflicts::of_bins(self.before.iter().copied().filter(|&b| b != NO_BIN), bins)
    }

    /// How its pages share bins now, read from the kernel's page map at this moment.
    ///
    /// # Errors
    /// [`PlaceError::System`] when the page map cannot be read.
    pub fn conflicts_now(&self) -> Result<Conflicts, PlaceError> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = page_bins(
            &Pagemap::own()?,
            self.start,
            self.bytes / PAGE,
            table.bins(),
        )?;
        Ok(Conflicts::of_bins(
            now.into_iter().filter(|&b| b != NO_BIN),
            table.bins(),
        ))
    }
}

impl Deref for PlacedMemory {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped readable for as long as `self` lives, and zeroed by the kernel.
        unsafe { std::slice::from_raw_parts(self.start as *const u8, self.bytes) }
    }
}

impl DerefMut for PlacedMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, writable, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.bytes) }
    }
}

impl Drop for PlacedMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping; the borrow checker has ended every use.
        let _ = unsafe { sys::munmap(self.mapping.0, self.mapping.1) };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(self.counted.iter().copied().filter(|&b| b != NO_BIN));
        if Arc::strong_count(&self.table) == 1 {
            table.leave();
        }
    }
}
