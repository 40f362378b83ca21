//! What a thread of the program holds of the heap: its place in the nursery, and the objects that it logged.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::header::Header;
use crate::layout::*;
use crate::memory::Memory;
use crate::reference::Ref;

/// A thread's share of the heap. Compiled code reads and writes the first fields at the offsets of [`layout`](crate::layout).
///
/// To allocate `size` bytes (a multiple of [`OBJECT_ALIGN`]), compiled code computes `cursor + size`. If that is at most `limit`, the object
/// begins at the old cursor, the sum is the new cursor, all bytes of the object are zero, and the header (and an array's length) is to be
/// written. Otherwise it calls [`Heap::alloc_slow`](crate::Heap::alloc_slow), which gives an object whose header is written already.
///
/// After each store of a reference into an object, it tests [`UNLOGGED`] in the object's [`COLLECTOR_BYTE`], and calls [`log_slow`] if it is set.
/// A store of null or of a 31-bit integer needs no test, nor does one into an object allocated since the last call that may collect.
///
/// It is movable data: an engine may keep it inside of its own structures. It is made by [`Heap::attach`](crate::Heap::attach) and must only
/// be used with that heap, while that heap lives.
#[repr(C)]
pub struct Mutator {
    pub(crate) cursor: u64,
    pub(crate) limit: u64,
    pub(crate) heap_base: *mut u8,
    /// Objects outside of the nursery that were stored into since the last collection.
    pub(crate) remembered: Vec<Ref>,
}

const _: () = assert!(offset_of!(Mutator, cursor) == MUTATOR_CURSOR as usize);
const _: () = assert!(offset_of!(Mutator, limit) == MUTATOR_LIMIT as usize);
const _: () = assert!(offset_of!(Mutator, heap_base) == MUTATOR_HEAP_BASE as usize);

// SAFETY: the base is an address that is only used together with the heap, by one thread at a time.
unsafe impl Send for Mutator {}

impl Mutator {
    pub(crate) fn new(memory: &Memory) -> Mutator {
        Mutator { cursor: 0, limit: 0, heap_base: memory.base(), remembered: Vec::new() }
    }

    /// The heap's base address.
    pub fn heap_base(&self) -> u64 {
        self.heap_base.addr() as u64
    }

    /// Takes `size` bytes of the nursery, as compiled code does.
    #[inline(always)]
    pub(crate) fn bump(&mut self, size: u64) -> Option<Ref> {
        let next = self.cursor.checked_add(size)?;
        if next > self.limit {
            return None;
        }
        let r = Ref::at(self.cursor - self.heap_base());
        self.cursor = next;
        Some(r)
    }

    /// Remembers that `object` was stored into, and clears its [`UNLOGGED`] bit.
    #[cold]
    fn log(&mut self, header: &AtomicU64, object: Ref) {
        let word = Header(header.load(Relaxed));
        header.store(word.with_collector(word.collector() & !UNLOGGED).0, Relaxed);
        self.remembered.push(object);
    }

    /// The write barrier after a store into `object`.
    #[inline(always)]
    pub(crate) fn barrier(&mut self, header: &AtomicU64, object: Ref) {
        if Header(header.load(Relaxed)).has(UNLOGGED) {
            self.log(header, object);
        }
    }
}

/// The write barrier's slow path, for compiled code: `object` (the bits of a [`Ref`]) has [`UNLOGGED`] set and was stored into.
/// The bit is cleared and the object remembered.
///
/// # Safety
/// `mutator` is a live mutator that nobody else uses during the call, and `object` an object of its heap.
pub unsafe extern "C" fn log_slow(mutator: *mut Mutator, object: u32) {
    let object = Ref(object);
    // SAFETY: the caller's promise; headers are 8-byte aligned.
    let (mutator, header) = unsafe {
        let mutator = &mut *mutator;
        let header = AtomicU64::from_ptr(mutator.heap_base.add(object.offset() as usize).cast());
        (mutator, header)
    };
    mutator.log(header, object);
}
