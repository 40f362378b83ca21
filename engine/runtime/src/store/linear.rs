//! Linear memories and tables.

use super::Vm;
use super::region::{MemoryRecord, Place, TableRecord};
use crate::error::{Error, Result};
use crate::module::{MemoryType, TableType};

/// Bytes of a page of linear memory.
pub(crate) const PAGE: usize = 65536;
/// Bytes that a memory reserves: all that a 32-bit index and a 32-bit offset reach, and the widest access.
const RESERVED: usize = (8 << 30) + PAGE;
const MAX_PAGES: u64 = 65536;
/// Pages of a memory with 64-bit addresses: the distance of memories from each other in observed addresses.
const MAX_PAGES_WIDE: u64 = super::observe::MEMORY / PAGE as u64;
/// Bytes of an element of a table.
const ELEMENT: u64 = 4;
/// Elements that a table may have: more would be a table of over 400 MB.
const MAX_ELEMENTS: u64 = 100_000_000;

impl Vm {
    /// A linear memory.
    pub(crate) fn new_memory(&mut self, ty: MemoryType) -> Result<u32> {
        self.has_room("linear memory", ty.min_pages.saturating_mul(PAGE as u64))?;
        let place = self.region.allocate(std::mem::size_of::<MemoryRecord>())?;
        // SAFETY: the record's place was just allocated; memories are dropped before the region.
        let memory = unsafe { LinearMemory::new(ty, place, self.region.address(place)) }?;
        self.memories.push(memory);
        Ok(self.memories.len() as u32 - 1)
    }

    /// A table filled with a value.
    pub(crate) fn new_table(&mut self, ty: TableType, value: u32) -> Result<u32> {
        self.has_room("a table", ty.min.saturating_mul(ELEMENT))?;
        let place = self.region.allocate(std::mem::size_of::<TableRecord>())?;
        // SAFETY: the record's place was just allocated; tables are dropped before the region.
        let table = unsafe { TableData::new(ty, place, self.region.address(place), value) }?;
        self.tables.push(table);
        Ok(self.tables.len() as u32 - 1)
    }

    /// The old size in pages; none if the memory cannot grow so far, or the store may not have more.
    pub(crate) fn grow_memory(&mut self, memory: u32, by: u64) -> Option<u64> {
        match by.saturating_mul(PAGE as u64) <= self.room() {
            true => self.memories[memory as usize].grow(by),
            false => None,
        }
    }

    /// The same for a table, in elements.
    pub(crate) fn grow_table(&mut self, table: u32, by: u64, value: u32) -> Option<u64> {
        match by.saturating_mul(ELEMENT) <= self.room() {
            true => self.tables[table as usize].grow(by, value),
            false => None,
        }
    }

    /// Bytes that linear memories and tables may still take.
    fn room(&self) -> u64 {
        let memories = self.memories.iter().map(|m| m.record().bytes);
        let tables = self
            .tables
            .iter()
            .map(|t| t.elements.len() as u64 * ELEMENT);
        let most = self.engine.config().linear_max;
        most.saturating_sub(memories.chain(tables).sum())
    }

    fn has_room(&self, what: &str, bytes: u64) -> Result<()> {
        let room = self.room();
        if bytes <= room {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "the module asks for {bytes} bytes of {what}, and {room} are left: a larger --heap-max allows it"
        )))
    }
}

impl MemoryType {
    /// Pages that such a memory has at most.
    fn most_pages(&self) -> u64 {
        let most = if self.wide { MAX_PAGES_WIDE } else { MAX_PAGES };
        self.max_pages.unwrap_or(most).min(most)
    }

    /// Bytes of addresses that such a memory reserves.
    fn reserved(&self) -> usize {
        match self.wide {
            // Its code compares indices with the memory's size.
            true => (self.most_pages() as usize * PAGE).max(PAGE),
            false => RESERVED,
        }
    }
}

pub(crate) struct LinearMemory {
    pub ty: MemoryType,
    pub place: Place,
    record: *mut MemoryRecord,
}

impl LinearMemory {
    /// # Safety
    /// `record` is the record at `place` and outlives the memory.
    pub unsafe fn new(
        ty: MemoryType,
        place: Place,
        record: *mut MemoryRecord,
    ) -> Result<LinearMemory> {
        // SAFETY: a fresh reservation, kept until drop; the record is ours.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let base = libc::mmap(
                std::ptr::null_mut(),
                ty.reserved(),
                libc::PROT_NONE,
                flags,
                -1,
                0,
            );
            if base == libc::MAP_FAILED {
                let e = std::io::Error::last_os_error();
                return Err(Error::System(format!(
                    "no address range for a linear memory: {e}"
                )));
            }
            record.write(MemoryRecord {
                base: base.cast(),
                bytes: 0,
            });
        }
        let mut memory = LinearMemory { ty, place, record };
        match memory.grow(ty.min_pages) {
            Some(_) => Ok(memory),
            None => Err(Error::System(format!(
                "no memory for {} pages of linear memory",
                ty.min_pages
            ))),
        }
    }

    fn record(&self) -> &MemoryRecord {
        // SAFETY: `new`'s promise.
        unsafe { &*self.record }
    }

    pub fn pages(&self) -> u64 {
        self.record().bytes / PAGE as u64
    }

    /// The old size in pages; none if it cannot grow so far.
    pub fn grow(&mut self, by: u64) -> Option<u64> {
        let old = self.pages();
        let new = old.checked_add(by)?;
        if new > self.ty.most_pages() {
            return None;
        }
        let record = self.record();
        let (from, bytes) = (old as usize * PAGE, by as usize * PAGE);
        // SAFETY: the range lies in the reservation, which has room for all pages that the type allows.
        let mapped = by == 0
            || unsafe {
                libc::mprotect(
                    record.base.add(from).cast(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                )
            } == 0;
        if !mapped {
            return None;
        }
        // SAFETY: `new`'s promise; no reference to the record is alive.
        unsafe { (*self.record).bytes = (new as usize * PAGE) as u64 };
        Some(old)
    }

    pub fn bytes(&self) -> &[u8] {
        let r = self.record();
        // SAFETY: that many bytes are mapped; code that writes them does not run while they are borrowed with the store.
        unsafe { std::slice::from_raw_parts(r.base, r.bytes as usize) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let r = self.record();
        // SAFETY: as `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(r.base, r.bytes as usize) }
    }
}

impl Drop for LinearMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and the store that could touch it is gone.
        unsafe { libc::munmap(self.record().base.cast(), self.ty.reserved()) };
    }
}

pub(crate) struct TableData {
    pub ty: TableType,
    pub place: Place,
    record: *mut TableRecord,
    elements: Vec<u32>,
}

impl TableData {
    /// # Safety
    /// `record` is the record at `place` and outlives the table.
    pub unsafe fn new(
        ty: TableType,
        place: Place,
        record: *mut TableRecord,
        value: u32,
    ) -> Result<TableData> {
        let min = ty.min;
        let mut table = TableData {
            ty,
            place,
            record,
            elements: Vec::new(),
        };
        table.publish();
        match table.grow(min, value) {
            Some(_) => Ok(table),
            None => Err(Error::System(format!(
                "a table of {min} elements is too large"
            ))),
        }
    }

    fn publish(&mut self) {
        // SAFETY: `new`'s promise.
        unsafe {
            self.record.write(TableRecord {
                base: self.elements.as_mut_ptr(),
                len: self.elements.len() as u64,
            })
        };
    }

    /// The old size; none if it cannot grow so far.
    pub fn grow(&mut self, by: u64, value: u32) -> Option<u64> {
        let old = self.elements.len() as u64;
        let new = old.checked_add(by)?;
        if new > self.ty.max.unwrap_or(u64::MAX).min(MAX_ELEMENTS) {
            return None;
        }
        self.elements.try_reserve(by as usize).ok()?;
        self.elements.resize(new as usize, value);
        self.publish();
        Some(old)
    }

    pub fn elements(&self) -> &[u32] {
        &self.elements
    }

    pub fn elements_mut(&mut self) -> &mut [u32] {
        &mut self.elements
    }

    pub fn is_managed(&self) -> bool {
        self.ty.element.heap.is_managed()
    }
}
