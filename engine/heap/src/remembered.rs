//! The remembered set: the entries of the write barrier since the last collection, in a buffer that compiled code
//! fills.
//!
//! An entry has 4 bytes. An even one is the reference of an object outside of the nursery that was stored into. An
//! odd one is a line of a large array that was stored into, `line << 1 | 1`: an array is not worth scanning for one
//! element.
//!
//! # Why it never overflows
//!
//! The buffer has an entry for every 8 bytes of the heap's range, which is all addresses that an object can have,
//! whatever its alignment, its space and tier, the observer space included. Between two collections no memory
//! outside of the nursery is used again, so that an address means one object, and:
//!
//! - an object is logged at most once: logging clears its [`UNLOGGED`] bit, and only collections, which empty the
//!   buffer, set it. A large object is logged once without the bit, at its birth, and does not have it then.
//! - a line is logged at most once, because its card says so until the buffer is emptied. The 32 entries of a line's
//!   256 bytes are enough for it: of a large object's first line the object takes one more, and no other line of it
//!   has an object.
//!
//! The address range costs nothing but itself: the system provides memory for the written part, and gets back the part
//! that only a rare collection needed. Behind the range is a page that faults, for compilers with errors.

use std::io;

use crate::align::ObjectAlign;
use crate::layout::*;
use crate::reference::Ref;

/// Bytes that stay in memory from one collection to the next.
const KEEP: usize = 1 << 20;
/// Bytes after the buffer that fault.
const GUARD: usize = 64 << 10;

/// A decoded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// An object was stored into.
    Object(Ref),
    /// A line of a large array was stored into, counted from the heap's base.
    Line(u32),
}

impl Remembered {
    /// As it is in the buffer.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        match self {
            Remembered::Object(r) => r.0,
            Remembered::Line(line) => line << 1 | REMEMBERED_LINE,
        }
    }

    /// Decodes the bits of [`Remembered::bits`].
    #[inline(always)]
    pub fn of(bits: u32) -> Remembered {
        match bits & REMEMBERED_LINE {
            0 => Remembered::Object(Ref(bits)),
            _ => Remembered::Line(bits >> 1),
        }
    }
}

/// Address range for the entries of one mutator. It belongs to the heap, and must outlive the mutator's use.
pub(crate) struct Buffer {
    start: *mut u32,
    bytes: usize,
}

// SAFETY: the range is owned by this value; its only writer is the heap's only mutator, or a collection while that
// one stands still.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Where the first entry is written.
    pub fn start(&self) -> *mut u32 {
        self.start
    }

    /// Bytes of entries for a heap with a range of `extent` bytes.
    fn bytes_for(extent: u64) -> usize {
        (extent / ObjectAlign::LEAST.bytes()) as usize * size_of::<u32>()
    }

    /// Returns memory that is seldom needed to the system. The first `used` bytes held entries, which are not needed
    /// any more.
    pub fn trim(&self, used: usize) {
        debug_assert!(used <= self.bytes);
        #[cfg(not(miri))]
        if used > KEEP {
            // SAFETY: inside of our own anonymous mapping; its content is not needed. A system that refuses keeps
            // the memory in use, and that is all.
            unsafe {
                libc::madvise(
                    self.start.byte_add(KEEP).cast(),
                    used - KEEP,
                    libc::MADV_DONTNEED,
                );
            }
        }
        #[cfg(miri)]
        let _ = (used, KEEP);
    }
}

#[cfg(not(miri))]
impl Buffer {
    /// Reserves a buffer for a heap whose range has `extent` bytes.
    pub fn reserve(extent: u64) -> io::Result<Buffer> {
        let bytes = Buffer::bytes_for(extent);
        let map = |address: *mut libc::c_void, bytes, protection, fixed| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
            // SAFETY: a new mapping at an address that the system chooses, or in place of a part of that.
            unsafe { libc::mmap(address, bytes, protection, flags, -1, 0) }
        };
        let start = map(std::ptr::null_mut(), bytes + GUARD, libc::PROT_NONE, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let buffer = Buffer {
            start: start.cast(),
            bytes,
        };
        let usable = libc::PROT_READ | libc::PROT_WRITE;
        if map(start, bytes, usable, libc::MAP_FIXED) == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(buffer)
    }
}

#[cfg(not(miri))]
impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the mutator is used no more.
        unsafe { libc::munmap(self.start.cast(), self.bytes + GUARD) };
    }
}

/// The interpreter of undefined behaviour knows no reservations: it gets an allocation.
#[cfg(miri)]
impl Buffer {
    pub fn reserve(extent: u64) -> io::Result<Buffer> {
        let bytes = Buffer::bytes_for(extent) + GUARD;
        let layout = std::alloc::Layout::from_size_align(bytes, PAGE_SIZE as usize).unwrap();
        // SAFETY: it has a guard's bytes at least.
        let start = unsafe { std::alloc::alloc_zeroed(layout) }.cast();
        Ok(Buffer {
            start,
            bytes: bytes - GUARD,
        })
    }
}

#[cfg(miri)]
impl Drop for Buffer {
    fn drop(&mut self) {
        let layout =
            std::alloc::Layout::from_size_align(self.bytes + GUARD, PAGE_SIZE as usize).unwrap();
        // SAFETY: allocated above with the same layout.
        unsafe { std::alloc::dealloc(self.start.cast(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_they_said() {
        for entry in [
            Remembered::Object(Ref(0xffff_fffe)),
            Remembered::Object(Ref(2)),
            Remembered::Line(0),
            Remembered::Line((HEAP_MAX / LINE_SIZE - 1) as u32),
        ] {
            assert_eq!(Remembered::of(entry.bits()), entry);
        }
    }

    /// As many entries as there are addresses of objects fit, and as many again once the memory went back.
    #[test]
    fn every_object_of_the_range_has_an_entry() {
        let extent = 2 * CHUNK_SIZE;
        let buffer = Buffer::reserve(2 * CHUNK_SIZE).unwrap();
        let entries = (extent / ObjectAlign::LEAST.bytes()) as usize;
        for round in 0..2 {
            // SAFETY: the buffer has as many entries, and is this test's own.
            let all = unsafe { std::slice::from_raw_parts_mut(buffer.start(), entries) };
            all.iter_mut().zip(0..).for_each(|(entry, i)| *entry = i);
            assert_eq!(all[entries - 1], entries as u32 - 1, "round {round}");
            buffer.trim(4 * entries);
        }
    }
}
