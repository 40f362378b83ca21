//! The store's heap. For now objects are born and never die; the collector takes this place.

use super::region::REGION;
use crate::engine::Config;
use crate::error::{Error, Result, TrapKind};
use varve_heap::layout;

/// As compiled code sees it.
#[repr(C)]
pub(crate) struct Mutator {
    cursor: u64,
    limit: u64,
    base: u64,
}

pub(crate) struct Heap {
    start: *mut u8,
    span: usize,
}

impl Heap {
    pub fn new(config: &Config) -> Result<(Heap, Mutator)> {
        let span = REGION + layout::HEAP_SPAN as usize;
        let max = config.heap_max.min(layout::HEAP_SPAN - (1 << 20));
        // SAFETY: a fresh reservation, kept until drop.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let start = libc::mmap(std::ptr::null_mut(), span, libc::PROT_NONE, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(Error::System(format!("no address range for the heap: {}", std::io::Error::last_os_error())));
            }
            let start = start.cast::<u8>();
            let first = start.add(REGION + layout::NULL_GUARD as usize);
            libc::mprotect(first.cast(), max as usize, libc::PROT_READ | libc::PROT_WRITE);
            let base = start.add(REGION) as u64;
            let mutator = Mutator { cursor: first as u64, limit: first as u64 + max, base };
            Ok((Heap { start, span }, mutator))
        }
    }

    /// The address that references count from; the store's region lies before it.
    pub fn base(&self) -> usize {
        self.start as usize + REGION
    }

    pub fn region_start(&self) -> *mut u8 {
        self.start
    }

    pub fn alloc(&mut self, m: &mut Mutator, bytes: u64, header: u64) -> Result<u32> {
        let end = m.cursor.checked_add(layout::object_size(bytes)).filter(|&e| e <= m.limit).ok_or(TrapKind::OutOfMemory)?;
        let at = std::mem::replace(&mut m.cursor, end);
        // SAFETY: the range is mapped and nobody's.
        unsafe { (at as *mut u64).write(header) };
        Ok(((at - m.base) >> layout::REF_SHIFT) as u32)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the store is gone.
        unsafe { libc::munmap(self.start.cast(), self.span) };
    }
}

impl Heap {
    /// Tells the heap about a type: its number is the next one.
    pub fn add_type(&mut self, _index: usize, _ty: &crate::types::Canonical) -> Result<()> {
        Ok(())
    }

    /// The write barrier's slow path.
    pub fn log(&mut self, _mutator: *mut Mutator, _reference: u32) {}
}
