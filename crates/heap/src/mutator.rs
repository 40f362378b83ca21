//! What a thread of the program holds of the heap: its place in the nursery, and the objects that it logged.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::header::Header;
use crate::layout::*;
use crate::memory::Memory;
use crate::reference::Ref;

/// A thread's share of the heap. Compiled code reads and writes the first fields at the offsets of
/// [`layout`](crate::layout).
///
/// To allocate `size` bytes (a multiple of [`OBJECT_ALIGN`]), compiled code computes `cursor + size`. If that is at
/// most `limit`, the object begins at the old cursor, the sum is the new cursor, all bytes of the object are zero,
/// and the header (and an array's length) is to be written. Otherwise it calls
/// [`Heap::alloc_slow`](crate::Heap::alloc_slow), which gives an object whose header is written already.
///
/// After each store of a reference into an object, it tests [`UNLOGGED`] in the object's [`COLLECTOR_BYTE`], and
/// calls [`log_slow`] if it is set. For an element of an array it may call [`log_element_slow`] instead. A store of
/// null or of a 31-bit integer needs no test, nor does one into an object allocated since the last call that may
/// collect.
///
/// It is movable data: an engine may keep it inside of its own structures. It is made by
/// [`Heap::attach`](crate::Heap::attach) and must only be used with that heap, while that heap lives.
#[repr(C)]
pub struct Mutator {
    pub(crate) cursor: u64,
    pub(crate) limit: u64,
    pub(crate) heap_base: *mut u8,
    /// Objects outside of the nursery that were stored into since the last collection.
    pub(crate) remembered: Vec<Ref>,
    /// The same for large arrays, by line.
    pub(crate) cards: Cards,
}

/// The lines of large arrays that were stored into. A large array is not worth scanning for one element.
pub(crate) struct Cards {
    /// One byte for each line of the heap; only those in large-object spaces are used as cards. Not 0: in the list.
    table: *const AtomicU8,
    lines: usize,
    /// Arrays and lines, counted from the heap's base.
    pub dirty: Vec<(Ref, u32)>,
}

impl Cards {
    /// Whether `line` is in the list.
    pub fn is_dirty(&self, line: u32) -> bool {
        self.byte(line).load(Relaxed) != 0
    }

    /// Empties the list and calls `f` with what was in it.
    pub fn clean(&mut self, mut f: impl FnMut(Ref, u32)) {
        for (array, line) in std::mem::take(&mut self.dirty) {
            self.byte(line).store(0, Relaxed);
            f(array, line);
        }
    }

    fn log(&mut self, array: Ref, line: u32) {
        let byte = self.byte(line);
        if byte.load(Relaxed) == 0 {
            byte.store(1, Relaxed);
            self.dirty.push((array, line));
        }
    }

    fn byte(&self, line: u32) -> &AtomicU8 {
        assert!((line as usize) < self.lines);
        // SAFETY: inside of the heap's table, which lives as long as the heap, as the mutator's user promised.
        unsafe { &*self.table.add(line as usize) }
    }
}

const _: () = assert!(offset_of!(Mutator, cursor) == MUTATOR_CURSOR as usize);
const _: () = assert!(offset_of!(Mutator, limit) == MUTATOR_LIMIT as usize);
const _: () = assert!(offset_of!(Mutator, heap_base) == MUTATOR_HEAP_BASE as usize);

// SAFETY: the base is an address that is only used together with the heap, by one thread at a time.
unsafe impl Send for Mutator {}

impl Mutator {
    /// `cards` has a byte for each line of the memory, all 0 where there is no mark-region block.
    pub(crate) fn new(memory: &Memory, cards: &[AtomicU8]) -> Mutator {
        Mutator {
            cursor: 0,
            limit: 0,
            heap_base: memory.base(),
            remembered: Vec::new(),
            cards: Cards {
                table: cards.as_ptr(),
                lines: cards.len(),
                dirty: Vec::new(),
            },
        }
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

    /// Remembers that the 4 bytes at `offset` from the heap's base, in an array, were stored into.
    #[cold]
    fn log_element(&mut self, header: &AtomicU64, array: Ref, offset: u64) {
        if Header(header.load(Relaxed)).has(LARGE) {
            self.cards.log(array, (offset / LINE_SIZE) as u32);
        } else {
            self.log(header, array);
        }
    }

    /// The write barrier after a store into an element of `array`, `offset` from the heap's base.
    #[inline(always)]
    pub(crate) fn element_barrier(&mut self, header: &AtomicU64, array: Ref, offset: u64) {
        if Header(header.load(Relaxed)).has(UNLOGGED) {
            self.log_element(header, array, offset);
        }
    }

    /// The write barrier after a store into `object`.
    #[inline(always)]
    pub(crate) fn barrier(&mut self, header: &AtomicU64, object: Ref) {
        if Header(header.load(Relaxed)).has(UNLOGGED) {
            self.log(header, object);
        }
    }
}

/// The write barrier's slow path, for compiled code: `object` (the bits of a [`Ref`]) has [`UNLOGGED`] set and was
/// stored into. The bit is cleared and the object remembered.
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

/// [`log_slow`] for a store into an element of an array of references, at `address`. It remembers only the
/// element's neighbourhood if the array is large; such an array stays [`UNLOGGED`]. Calling [`log_slow`] instead is
/// as correct, and has the next collection scan the whole array.
///
/// # Safety
/// As [`log_slow`]; `address` is that of an element of `array`.
pub unsafe extern "C" fn log_element_slow(mutator: *mut Mutator, array: u32, address: u64) {
    let array = Ref(array);
    // SAFETY: the caller's promise; headers are 8-byte aligned.
    let (mutator, header) = unsafe {
        let mutator = &mut *mutator;
        let header = AtomicU64::from_ptr(mutator.heap_base.add(array.offset() as usize).cast());
        (mutator, header)
    };
    let offset = address - mutator.heap_base();
    mutator.log_element(header, array, offset);
}
