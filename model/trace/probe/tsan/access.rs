//! Loads and stores: two words each.
//!
//! The first holds the low half of the return address too. The recorder estimates from the distance between two of
//! them how many instructions lie in between.

use crate::ring::*;
use crate::thread::{find_slot, is_recorded, number_of, shared, slot, still_here};

pub const READ: u64 = 0;
pub const WRITE: u64 = 1;
pub const UPDATE: u64 = 2;

/// Appends an access of the calling thread.
#[inline(always)]
pub fn record(addr: usize, kind: u64, size: u64, caller: usize) {
    let slot = slot();
    if slot.is_null() {
        if is_recorded() {
            record_first(addr, kind, size, caller);
        }
        return;
    }
    // SAFETY: the slot is this thread's, and its cursor points into an open chunk with room.
    unsafe {
        let cursor = (*slot).cursor;
        cursor.write(kind | size << 2 | u64::from(caller as u32) << 18);
        cursor.add(1).write(addr as u64);
        let cursor = cursor.add(2);
        (*slot).cursor = cursor;
        if cursor > (*slot).limit {
            chunk_full(slot);
        }
    }
}

#[cold]
#[inline(never)]
fn record_first(addr: usize, kind: u64, size: u64, caller: usize) {
    if !find_slot().is_null() {
        record(addr, kind, size, caller);
    }
}

#[cold]
#[inline(never)]
fn chunk_full(slot: *mut Slot) {
    still_here();
    shared().publish(number_of(slot));
}

/// Appends a range that the C library or the compiler's own code goes over.
pub fn range(addr: usize, bytes: usize, kind: u64) {
    if bytes == 0 {
        return;
    }
    let mut slot = slot();
    if slot.is_null() {
        slot = find_slot();
    }
    if !slot.is_null() {
        shared().put(
            number_of(slot),
            EVENT_RANGE,
            &[addr as u64, bytes as u64, kind],
        );
    }
}

/// Defines entry points that pass their return address on as the second argument.
macro_rules! accesses {
    ($kind:ident, $size:literal, $inner:ident: $($name:ident)*) => {
        extern "C" fn $inner(addr: usize, caller: usize) {
            record(addr, $kind, $size, caller);
        }
        $(
            crate::entry::with_caller!($name = $inner, 1);
        )*
    };
}

accesses!(READ, 1, read1: __tsan_read1 __tsan_volatile_read1);
accesses!(READ, 2, read2: __tsan_read2 __tsan_volatile_read2 __tsan_unaligned_read2 __tsan_unaligned_volatile_read2);
accesses!(READ, 4, read4: __tsan_read4 __tsan_volatile_read4 __tsan_unaligned_read4 __tsan_unaligned_volatile_read4);
accesses!(READ, 8, read8: __tsan_read8 __tsan_volatile_read8 __tsan_unaligned_read8 __tsan_unaligned_volatile_read8 __tsan_vptr_read);
accesses!(READ, 16, read16: __tsan_read16 __tsan_volatile_read16 __tsan_unaligned_read16 __tsan_unaligned_volatile_read16);
accesses!(WRITE, 1, write1: __tsan_write1 __tsan_volatile_write1);
accesses!(WRITE, 2, write2: __tsan_write2 __tsan_volatile_write2 __tsan_unaligned_write2 __tsan_unaligned_volatile_write2);
accesses!(WRITE, 4, write4: __tsan_write4 __tsan_volatile_write4 __tsan_unaligned_write4 __tsan_unaligned_volatile_write4);
accesses!(WRITE, 8, write8: __tsan_write8 __tsan_volatile_write8 __tsan_unaligned_write8 __tsan_unaligned_volatile_write8 __tsan_vptr_update);
accesses!(WRITE, 16, write16: __tsan_write16 __tsan_volatile_write16 __tsan_unaligned_write16 __tsan_unaligned_volatile_write16);
accesses!(UPDATE, 1, update1: __tsan_read_write1);
accesses!(UPDATE, 2, update2: __tsan_read_write2 __tsan_unaligned_read_write2);
accesses!(UPDATE, 4, update4: __tsan_read_write4 __tsan_unaligned_read_write4);
accesses!(UPDATE, 8, update8: __tsan_read_write8 __tsan_unaligned_read_write8);
accesses!(UPDATE, 16, update16: __tsan_read_write16 __tsan_unaligned_read_write16);

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_read_range(addr: usize, bytes: usize) {
    range(addr, bytes, READ);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_write_range(addr: usize, bytes: usize) {
    range(addr, bytes, WRITE);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_begin() {}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {}
