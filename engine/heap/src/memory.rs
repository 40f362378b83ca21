//! The heap's bytes: one reserved address range, and the few ways to access it.
//!
//! A [`View`] checks nothing: the collector's steps use it, and say why they may. A [`Memory`] checks requests of hosts.
//!
//! Every reference lies in the range by construction (32 bits times half of the alignment), so that a wrong one faults or reads a
//! wrong object, but never reaches memory outside of the heap.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::align::{Aligned, ObjectAlign};
use crate::arch;
use crate::header::Header;
use crate::layout::*;
use crate::reference::Ref;

/// An address range of which the first `extent` bytes, but for the null guard, can be read and written.
pub(crate) struct Memory {
    view: View,
    extent: u64,
    /// The system's mapping, for unmapping.
    mapping: (*mut u8, usize),
}

/// The way to objects: where references count from. It is a copy that tracing keeps close, and must not outlive its
/// [`Memory`].
#[derive(Clone, Copy)]
pub(crate) struct View<A = ObjectAlign> {
    base: *mut u8,
    align: A,
    #[cfg(debug_assertions)]
    extent: u64,
}

impl std::ops::Deref for Memory {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

// SAFETY: a view is used as the memory that it comes from.
unsafe impl<A> Send for View<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for View<A> {}
// SAFETY: the range is owned by this value until it is dropped; concurrent accesses go through atomics, or through
// the functions below that ask their callers for exclusive ranges.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl View {
    fn new(base: *mut u8, extent: u64, align: ObjectAlign) -> View {
        #[cfg(not(debug_assertions))]
        let _ = extent;
        View {
            base,
            align,
            #[cfg(debug_assertions)]
            extent,
        }
    }

    /// The same for callers that know the alignment, which must be that of the memory.
    pub fn aligned<A: Aligned>(self, align: A) -> View<A> {
        assert_eq!(self.align, align.align());
        View {
            base: self.base,
            align,
            #[cfg(debug_assertions)]
            extent: self.extent,
        }
    }
}

impl<A: Aligned> View<A> {
    /// The address that references count from.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The same as a number, for compiled code.
    pub fn base_address(&self) -> u64 {
        self.base.expose_provenance() as u64
    }

    /// The alignment of objects.
    #[inline(always)]
    pub fn align(&self) -> ObjectAlign {
        self.align.align()
    }

    /// Bytes from the base to an object.
    #[inline(always)]
    pub fn offset(&self, r: Ref) -> u64 {
        self.align().offset(r)
    }

    /// The reference of the object at an offset.
    #[inline(always)]
    pub fn reference(&self, offset: u64) -> Ref {
        self.align().reference(offset)
    }

    /// The address of an offset.
    ///
    /// # Safety
    /// The offset is inside of the extent and after the null guard, or in the durable range.
    #[inline(always)]
    unsafe fn at(&self, offset: u64) -> *mut u8 {
        #[cfg(debug_assertions)]
        assert!(
            (NULL_GUARD..self.extent).contains(&offset)
                || (self.align().durable_start()..self.align().durable_end()).contains(&offset),
            "offset {offset:#x} is outside of the heap"
        );
        // SAFETY: the caller's promise; the range reserved covers all that it allows.
        unsafe { self.base.add(offset as usize) }
    }

    /// The header word of the object at `r`.
    ///
    /// # Safety
    /// There is an object.
    #[inline(always)]
    pub unsafe fn header_word(&self, r: Ref) -> &AtomicU64 {
        // SAFETY: the caller's promise; objects are 8-byte aligned.
        unsafe { self.long(self.offset(r)) }
    }

    /// The header of the object at `r`.
    ///
    /// # Safety
    /// There is an object.
    #[inline(always)]
    pub unsafe fn header(&self, r: Ref) -> Header {
        // SAFETY: the caller's promise.
        Header(unsafe { self.header_word(r) }.load(Relaxed))
    }

    /// Writes the header of the object at `r`.
    ///
    /// # Safety
    /// There is an object, or room for one.
    #[inline(always)]
    pub unsafe fn set_header(&self, r: Ref, header: Header) {
        // SAFETY: the caller's promise.
        unsafe { self.header_word(r) }.store(header.0, Relaxed);
    }

    /// The 8 bytes at `offset`.
    ///
    /// # Safety
    /// The offset is a multiple of 8, and its bytes can be used. They are only accessed as atomics while several threads
    /// run.
    #[inline(always)]
    pub unsafe fn long(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8));
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(self.at(offset).cast()) }
    }

    /// The 4 bytes at `offset`.
    ///
    /// # Safety
    /// The offset is a multiple of 4, and its bytes can be used. They are only accessed as atomics while several threads
    /// run.
    #[inline(always)]
    pub unsafe fn word(&self, offset: u64) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4));
        // SAFETY: the caller's promise.
        unsafe { AtomicU32::from_ptr(self.at(offset).cast()) }
    }

    /// The length of the array at `r`.
    ///
    /// # Safety
    /// There is an array.
    #[inline(always)]
    pub unsafe fn array_length(&self, r: Ref) -> u32 {
        // SAFETY: the caller's promise; an array has its length there.
        unsafe { self.word(self.offset(r) + ARRAY_LENGTH as u64) }.load(Relaxed)
    }

    /// Prefetches the object at `r`, which will be accessed soon.
    #[inline(always)]
    pub fn prefetch(&self, r: Ref) {
        arch::fetch(self.base.wrapping_add(self.offset(r) as usize));
    }

    /// Has the system give memory for a range of whole pages now. Its contents stay; other threads may use it.
    pub fn populate(&self, offset: u64, bytes: u64) {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let start = self.base.wrapping_add(offset as usize);
            // SAFETY: the call changes no byte of what is mapped, and is refused where nothing is. A system that does
            // not know the advice gives memory when it is touched.
            unsafe { libc::madvise(start.cast(), bytes as usize, libc::MADV_POPULATE_WRITE) };
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = (offset, bytes);
    }

    /// Copies an object's payload, the bytes after the header. `bytes` counts the header too.
    ///
    /// # Safety
    /// The calling thread owns both objects but for their headers, they do not overlap, and both have `bytes` bytes.
    #[inline(always)]
    pub unsafe fn copy_payload(&self, from: Ref, to: Ref, bytes: u64) {
        // SAFETY: the caller's promise. The small sizes are spelled out because a call would cost more than the copy.
        unsafe {
            let from = self.at(self.offset(from)).cast::<u64>();
            let to = self.at(self.offset(to)).cast::<u64>();
            match bytes {
                8 => {}
                16 => to.add(1).write(from.add(1).read()),
                24 => {
                    to.add(1).write(from.add(1).read());
                    to.add(2).write(from.add(2).read());
                }
                32 => {
                    to.add(1).write(from.add(1).read());
                    to.add(2).write(from.add(2).read());
                    to.add(3).write(from.add(3).read());
                }
                _ => {
                    std::ptr::copy_nonoverlapping(from.add(1), to.add(1), (bytes / 8 - 1) as usize)
                }
            }
        }
    }
}

impl Memory {
    /// Bytes from the heap's base to the address that new memory ends at.
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The hot half of this.
    pub fn view(&self) -> View {
        self.view
    }

    /// The 8 bytes at `offset`. Panics if they are not inside, or not aligned.
    #[inline]
    pub fn checked_long(&self, offset: u64) -> &AtomicU64 {
        self.check_aligned(offset, 8);
        // SAFETY: checked to be inside and aligned.
        unsafe { self.long(offset) }
    }

    /// The 4 bytes at `offset`. Panics if they are not inside, or not aligned.
    #[inline]
    pub fn checked_word(&self, offset: u64) -> &AtomicU32 {
        self.check_aligned(offset, 4);
        // SAFETY: checked to be inside and aligned.
        unsafe { self.word(offset) }
    }

    /// The word where an object at `r` has its header. Panics outside of the extent.
    #[inline]
    pub fn checked_header(&self, r: Ref) -> Header {
        Header(self.checked_long(self.offset(r)).load(Relaxed))
    }

    /// The word where an array at `r` has its length. Panics outside of the extent.
    #[inline]
    pub fn checked_array_length(&self, r: Ref) -> u32 {
        let at = self.offset(r);
        self.check_aligned(at, 8);
        self.checked_word(at + ARRAY_LENGTH as u64).load(Relaxed)
    }

    /// The handle of the host object at `r`. Panics outside of the extent.
    pub fn host_handle(&self, r: Ref) -> u64 {
        let mut bytes = [0; 8];
        self.read(self.offset(r) + HOST_HANDLE as u64, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// Zeroes a range that the calling thread owns.
    pub fn zero(&self, offset: u64, bytes: u64) {
        self.check(offset, bytes);
        // SAFETY: checked to be inside; owned by the caller.
        unsafe {
            self.base
                .add(offset as usize)
                .write_bytes(0, bytes as usize)
        }
    }

    /// Fills a range that the calling thread owns with a pattern that is neither a shape, nor the reference of an
    /// object.
    pub fn poison(&self, offset: u64, bytes: u64) {
        self.check(offset, bytes);
        for offset in (offset..offset + bytes).step_by(4) {
            self.checked_word(offset).store(POISON, Relaxed);
        }
    }

    /// Zeroes a range of whole pages by giving its memory back to the system; touching it again costs page faults.
    pub fn discard(&self, offset: u64, bytes: u64) {
        self.check(offset, bytes);
        #[cfg(not(miri))]
        {
            // SAFETY: inside of our own anonymous private mapping, where this gives zeroes.
            let failed = unsafe {
                libc::madvise(
                    self.base.add(offset as usize).cast(),
                    bytes as usize,
                    libc::MADV_DONTNEED,
                )
            };
            if failed == 0 {
                return;
            }
        }
        self.zero(offset, bytes);
    }

    /// Reads plain bytes, for hosts and tests.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        self.check(offset, into.len() as u64);
        // SAFETY: checked to be inside; collector threads do not run while hosts read.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.add(offset as usize),
                into.as_mut_ptr(),
                into.len(),
            )
        }
    }

    /// Writes plain bytes, for hosts and tests.
    pub fn write(&self, offset: u64, from: &[u8]) {
        self.check(offset, from.len() as u64);
        // SAFETY: checked to be inside; collector threads do not run while hosts write.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.base.add(offset as usize), from.len())
        }
    }

    #[inline]
    fn check_aligned(&self, offset: u64, bytes: u64) {
        self.check(offset, bytes);
        if !offset.is_multiple_of(bytes) {
            crooked(offset, bytes);
        }
    }

    #[inline]
    fn check(&self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        if offset < NULL_GUARD || end > self.extent {
            outside(offset, bytes);
        }
    }
}

#[cold]
fn outside(offset: u64, bytes: u64) -> ! {
    panic!("{bytes} bytes at offset {offset:#x} are outside of the heap")
}

#[cold]
fn crooked(offset: u64, bytes: u64) -> ! {
    panic!("offset {offset:#x} is no multiple of {bytes}")
}

/// The value that overwrites old copies: as a reference it is the last object of the span, which is never mapped.
pub(crate) const POISON: u32 = 0xffff_fff0;

#[cfg(test)]
impl Memory {
    /// Reserves the span of all references at the usual alignment, and makes the first `extent` bytes usable.
    pub fn reserve(extent: u64) -> io::Result<Memory> {
        Memory::reserve_after(0, extent, ObjectAlign::default())
    }
}

#[cfg(not(miri))]
impl Memory {
    /// Reserves the span of all references with `before` bytes before it, and makes the first `extent` bytes usable.
    pub fn reserve_after(before: u64, extent: u64, align: ObjectAlign) -> io::Result<Memory> {
        assert!(extent.is_multiple_of(CHUNK_SIZE) && (CHUNK_SIZE..=HEAP_MAX).contains(&extent));
        // The tail takes fixed offsets from the highest references.
        let bytes = (before + align.span() + NULL_GUARD) as usize + CHUNK_SIZE as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.cast::<u8>();
        // SAFETY: the mapping is larger than the span and what precedes it by one chunk.
        let base = unsafe {
            let first = start.add(before as usize);
            first.add(first.align_offset(CHUNK_SIZE as usize))
        };
        let memory = Memory {
            view: View::new(base, extent, align),
            extent,
            mapping: (start, bytes),
        };
        // SAFETY: inside of the mapping just made.
        let failed = unsafe {
            let usable = base.add(NULL_GUARD as usize).cast();
            libc::mprotect(
                usable,
                (extent - NULL_GUARD) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        // Tracing jumps all over the heap: with small pages, address translation would cost more than all else. A
        // system without large pages refuses, and that is no error. SAFETY: advice about our own mapping.
        unsafe { libc::madvise(base.cast(), extent as usize, libc::MADV_HUGEPAGE) };
        Ok(memory)
    }
}

#[cfg(not(miri))]
impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it is left.
        unsafe { libc::munmap(self.mapping.0.cast(), self.mapping.1) };
    }
}

/// The interpreter of undefined behaviour knows no reservations: it gets an allocation of the extent, and no guard.
#[cfg(miri)]
impl Memory {
    pub fn reserve_after(_: u64, extent: u64, align: ObjectAlign) -> io::Result<Memory> {
        let layout =
            std::alloc::Layout::from_size_align(extent as usize, CHUNK_SIZE as usize).unwrap();
        // SAFETY: the extent is not zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        Ok(Memory {
            view: View::new(base, extent, align),
            extent,
            mapping: (base, extent as usize),
        })
    }
}

#[cfg(miri)]
impl Drop for Memory {
    fn drop(&mut self) {
        let layout =
            std::alloc::Layout::from_size_align(self.mapping.1, CHUNK_SIZE as usize).unwrap();
        // SAFETY: allocated above with the same layout.
        unsafe { std::alloc::dealloc(self.mapping.0, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_zero_and_holds_what_is_written() {
        let memory = Memory::reserve(2 * CHUNK_SIZE).unwrap();
        let (a, b) = (
            memory.reference(NULL_GUARD),
            memory.reference(2 * CHUNK_SIZE - 64),
        );
        assert_eq!(memory.checked_header(a), Header(0));
        let header = new_header(1, 2, 3);
        memory.write(memory.offset(a), &header.to_ne_bytes());
        for field in 1..8u64 {
            memory.write(memory.offset(a) + 8 * field, &field.to_ne_bytes());
        }
        for bytes in [8, 16, 24, 32, 40, 64] {
            memory.zero(memory.offset(b), 64);
            // SAFETY: both objects are this test's own.
            unsafe { memory.copy_payload(a, b, bytes) };
            for field in 1..8u64 {
                let mut copied = [0; 8];
                memory.read(memory.offset(b) + 8 * field, &mut copied);
                assert_eq!(
                    u64::from_ne_bytes(copied),
                    if 8 * field < bytes { field } else { 0 }
                );
            }
        }
        assert_eq!(
            memory.checked_header(b),
            Header(0),
            "headers are not copied"
        );
        memory.poison(memory.offset(b), 64);
        assert_eq!(
            memory.checked_word(memory.offset(b) + 60).load(Relaxed),
            POISON
        );
        memory.discard(CHUNK_SIZE, CHUNK_SIZE);
        assert_eq!(memory.checked_word(memory.offset(b) + 60).load(Relaxed), 0);
    }

    #[test]
    #[should_panic(expected = "outside of the heap")]
    fn bytes_behind_the_extent_are_refused() {
        Memory::reserve(CHUNK_SIZE)
            .unwrap()
            .zero(CHUNK_SIZE - 8, 16);
    }
}
