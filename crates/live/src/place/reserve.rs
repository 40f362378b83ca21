//! Memory reserved for candidates: mapped, populated, and given back when the choice is made.

use super::bins::{HUGE, PAGE, PAGES_PER_HUGE};
use super::error::PlaceError;
use super::sys;

/// Size of the pages that are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 4 KiB pages.
    Base,
    /// 2 MiB pages.
    Huge,
}

impl Unit {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Unit::Base => PAGE,
            Unit::Huge => HUGE,
        }
    }

    /// Base pages in one.
    pub fn pages(self) -> usize {
        match self {
            Unit::Base => 1,
            Unit::Huge => PAGES_PER_HUGE,
        }
    }
}

/// Asks for base or huge pages in a range, then has the kernel give it memory now.
///
/// # Safety
/// The range must be mapped private, anonymous, readable and writable.
pub unsafe fn populate(start: usize, bytes: usize, unit: Unit) -> Result<(), PlaceError> {
    let advice = match unit {
        Unit::Base => sys::MADV_NOHUGEPAGE,
        Unit::Huge => sys::MADV_HUGEPAGE,
    };
    // SAFETY: this advice changes no content. A kernel without transparent huge pages refuses it, and then
    // all pages are base pages, which `huge` finds out.
    let _ = unsafe { sys::madvise(start, bytes, advice) };
    // SAFETY: populating keeps contents.
    match unsafe { sys::madvise(start, bytes, sys::MADV_POPULATE_WRITE) } {
        Ok(()) => Ok(()),
        Err(e) if e.raw_os_error() == Some(22) => {
            // Linux before 5.14 has no such advice: touch every page, keeping what it holds.
            for page in (start..start + bytes).step_by(PAGE) {
                // SAFETY: mapped and writable by this function's contract; an atomic add of zero keeps the
                // content even when another thread writes it.
                unsafe { &*(page as *const std::sync::atomic::AtomicU8) }
                    .fetch_add(0, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(())
        }
        Err(e) => Err(PlaceError::System("cannot populate memory", e)),
    }
}

/// Populated chunks of candidates, addressed by a running index of units.
pub struct Reserve {
    unit: Unit,
    /// `(first unit index, address of that unit, mapping start, mapping bytes)`.
    chunks: Vec<(usize, usize, usize, usize)>,
    units: usize,
}

impl Reserve {
    /// Nothing reserved yet.
    pub fn new(unit: Unit) -> Reserve {
        Reserve {
            unit,
            chunks: Vec::new(),
            units: 0,
        }
    }

    /// Reserves and populates `units` more; returns the address of the first.
    ///
    /// # Errors
    /// [`PlaceError::System`] when the kernel has no memory or address space left.
    pub fn grow(&mut self, units: usize) -> Result<usize, PlaceError> {
        let size = self.unit.bytes();
        // Room to align: the kernel aligns a mapping to base pages only.
        let map_bytes = units * size + (size - PAGE);
        let prot = sys::PROT_READ | sys::PROT_WRITE;
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        // SAFETY: no MAP_FIXED, so only unused addresses are taken.
        let mapping = unsafe { sys::mmap(0, map_bytes, prot, flags, -1, 0) }
            .map_err(|e| PlaceError::System("cannot reserve memory for candidates", e))?;
        let start = mapping.next_multiple_of(size);
        self.chunks.push((self.units, start, mapping, map_bytes));
        self.units += units;
        // SAFETY: mapped above as private anonymous read-write memory.
        unsafe { populate(start, units * size, self.unit) }?;
        Ok(start)
    }

    /// Units reserved so far.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Bytes reserved so far.
    pub fn bytes(&self) -> usize {
        self.units * self.unit.bytes()
    }

    /// Address of unit `index`, counted over all chunks.
    pub fn address(&self, index: usize) -> usize {
        let chunk = self.chunks.partition_point(|c| c.0 <= index) - 1;
        let (first, start, _, _) = self.chunks[chunk];
        start + (index - first) * self.unit.bytes()
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        for &(_, _, mapping, bytes) in &self.chunks {
            // SAFETY: mapped by `grow`; pages that were moved away left holes, but the mapping stayed ours.
            let _ = unsafe { sys::munmap(mapping, bytes) };
        }
    }
}
