//! The state of the heap that a thread of the program holds: its place in the nursery, and the objects that it logged.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::align::ObjectAlign;
use crate::header::Header;
use crate::layout::*;
use crate::memory::Memory;
use crate::reference::Ref;
use crate::remembered::{Buffer, Remembered};

/// A thread's share of the heap. Compiled code reads and writes the first fields at the offsets of
/// [`layout`](crate::layout).
///
/// To allocate `size` bytes (a multiple of the [alignment](ObjectAlign)), compiled code computes `cursor + size`. If that is at
/// most `limit`, the object begins at the old cursor, the sum is the new cursor, all bytes of the object are zero,
/// and the header (and an array's length) is to be written. Otherwise it calls
/// [`Heap::alloc_slow`](crate::Heap::alloc_slow), which gives an object whose header is written already.
///
/// After each store of a reference into an object, compiled code tests [`UNLOGGED`] in the object's
/// [`COLLECTOR_BYTE`], and if it is set, logs the object without a call:
///
/// ```text
/// byte [object + COLLECTOR_BYTE] = collector byte & !UNLOGGED
/// u32  [remembered]              = the object's reference          remembered: u64 at MUTATOR_REMEMBERED
/// remembered                     = remembered + 4
/// ```
///
/// That is right for every object. The next collection scans the whole of it, though, so that elements of arrays are
/// better logged by line if [`LARGE`] is set in the same byte, whose bits stay as they are:
///
/// ```text
/// line = (address of the element - heap base) / LINE_SIZE
/// if byte [cards + line] == 0                                       cards: u64 at MUTATOR_CARDS
///     byte [cards + line] = 1
///     u32 [remembered] = line << 1 | REMEMBERED_LINE
///     remembered = remembered + 4
/// ```
///
/// After a store of several elements all of their lines are logged, or the array. [`log_slow`] and
/// [`log_element_slow`] do the same, for compilers that prefer a call; neither collects. A store of null or of a 31-bit
/// integer needs no test, nor does one into an object allocated since the last call that may collect. The two steps
/// of noting belong together: no collection may come between them, nor between the store and the test.
///
/// It is movable data: an engine may keep it inside of its own structures. It is made by
/// [`Heap::attach`](crate::Heap::attach) and must only be used with that heap, while that heap lives.
#[repr(C)]
pub struct Mutator {
    pub(crate) cursor: u64,
    pub(crate) limit: u64,
    heap_base: *mut u8,
    /// Where the next entry of the remembered set goes.
    remembered: *mut u32,
    /// One byte for each line of the heap; only those in large-object spaces are used as cards.
    cards: *const AtomicU8,
    lines: u32,
    align: ObjectAlign,
    /// The first entry of the remembered set.
    entries: *mut u32,
}

const _: () = assert!(offset_of!(Mutator, cursor) == MUTATOR_CURSOR as usize);
const _: () = assert!(offset_of!(Mutator, limit) == MUTATOR_LIMIT as usize);
const _: () = assert!(offset_of!(Mutator, heap_base) == MUTATOR_HEAP_BASE as usize);
const _: () = assert!(offset_of!(Mutator, remembered) == MUTATOR_REMEMBERED as usize);
const _: () = assert!(offset_of!(Mutator, cards) == MUTATOR_CARDS as usize);

// SAFETY: the addresses are only used together with the heap, by one thread at a time.
unsafe impl Send for Mutator {}

impl Mutator {
    /// `cards` has a byte for each line of the memory, all 0 where there is no mark-region block.
    pub(crate) fn new(memory: &Memory, cards: &[AtomicU8], buffer: &Buffer) -> Mutator {
        Mutator {
            cursor: 0,
            limit: 0,
            heap_base: memory.base(),
            remembered: buffer.start(),
            cards: cards.as_ptr(),
            lines: cards.len() as u32,
            align: memory.align(),
            entries: buffer.start(),
        }
    }

    /// The heap's base address.
    #[inline]
    pub fn heap_base(&self) -> u64 {
        self.heap_base.addr() as u64
    }

    /// Has the next allocation ask the heap's user, whatever room there is: gives what [`Mutator::go_on`] is to be given before the heap is used
    /// again.
    pub fn stop(&mut self) -> u64 {
        std::mem::take(&mut self.limit)
    }

    /// Allocations go on up to where they would have before [`Mutator::stop`].
    pub fn go_on(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Takes `size` bytes of the nursery, as compiled code does: their distance from the heap's base.
    #[inline(always)]
    pub(crate) fn bump(&mut self, size: u64) -> Option<u64> {
        let next = self.cursor.checked_add(size)?;
        if next > self.limit {
            return None;
        }
        let at = self.cursor - self.heap_base();
        self.cursor = next;
        Some(at)
    }

    /// The objects and array lines stored into since the last collection.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = Remembered> {
        // SAFETY: entries were written from the buffer's begin up to the cursor, which stays inside of the buffer:
        // see `remembered`. The buffer lives as long as the heap, as the mutator's user promised.
        let entries = unsafe {
            let count = self.remembered.offset_from_unsigned(self.entries);
            std::slice::from_raw_parts(self.entries, count)
        };
        entries.iter().map(|&bits| Remembered::of(bits))
    }

    /// Clears the remembered set; `buffer` is that of the heap.
    pub(crate) fn forget(&mut self, buffer: &Buffer) {
        let mut used = 0;
        for entry in self.remembered() {
            used += size_of::<u32>();
            if let Remembered::Line(line) = entry {
                self.card(line).store(0, Relaxed);
            }
        }
        buffer.trim(used);
        self.remembered = self.entries;
    }

    /// Adds an entry that is not there yet.
    #[inline(always)]
    pub(crate) fn remember(&mut self, entry: Remembered) {
        // SAFETY: there is room for every entry that is possible: see `remembered`.
        unsafe {
            self.remembered.write(entry.bits());
            self.remembered = self.remembered.add(1);
        }
    }

    fn card(&self, line: u32) -> &AtomicU8 {
        assert!(line < self.lines);
        // SAFETY: inside of the heap's table, which lives as long as the heap, as the mutator's user promised.
        unsafe { &*self.cards.add(line as usize) }
    }

    /// Remembers that `object` was stored into, unless its [`UNLOGGED`] bit says that this is known.
    #[cold]
    fn log(&mut self, header: &AtomicU64, object: Ref) {
        let word = Header(header.load(Relaxed));
        if word.has(UNLOGGED) {
            header.store(word.with_collector(word.collector() & !UNLOGGED).0, Relaxed);
            self.remember(Remembered::Object(object));
        }
    }

    /// Remembers that the 4 bytes at `offset` from the heap's base, in an array, were stored into.
    #[cold]
    fn log_element(&mut self, header: &AtomicU64, array: Ref, offset: u64) {
        if !Header(header.load(Relaxed)).has(LARGE) {
            return self.log(header, array);
        }
        let line = (offset / LINE_SIZE) as u32;
        if self.card(line).load(Relaxed) == 0 {
            self.card(line).store(1, Relaxed);
            self.remember(Remembered::Line(line));
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

/// The write barrier's slow path as a call: `object` (the bits of a [`Ref`]) was stored into. If it has [`UNLOGGED`]
/// set, the bit is cleared and the object remembered.
///
/// # Safety
/// `mutator` is a live mutator that no other code uses during the call, and `object` an object of its heap.
pub unsafe extern "C" fn log_slow(mutator: *mut Mutator, object: u32) {
    let object = Ref(object);
    // SAFETY: the caller's promise; headers are 8-byte aligned.
    let (mutator, header) = unsafe {
        let mutator = &mut *mutator;
        let header = AtomicU64::from_ptr(
            mutator
                .heap_base
                .add(mutator.align.offset(object) as usize)
                .cast(),
        );
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
        let header = AtomicU64::from_ptr(
            mutator
                .heap_base
                .add(mutator.align.offset(array) as usize)
                .cast(),
        );
        (mutator, header)
    };
    let offset = address - mutator.heap_base();
    mutator.log_element(header, array, offset);
}
