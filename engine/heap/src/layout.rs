//! Where bits and bytes are: references, headers, objects, and the part of a mutator that compiled code touches.
//!
//! These constants are a contract with compilers. A compiler emits them; the collector is built on them; nothing
//! else states them.
//!
//! ```text
//! reference   0           null
//!             odd         a 31-bit integer, (value << 1) | 1
//!             even        an object at heap base + reference * 4, or more: see ObjectAlign
//!
//! header      63........56 55........48 47............24 23.............0
//!             temperature  collector    allocation site  type
//!             byte 7       byte 6       bytes 3-5        bytes 0-2
//!
//! struct      0: header    8: fields
//! array       0: header    8: length (u32)   12: elements of at most 4 bytes, or 16: wider elements
//! host        0: header    8: handle (u64)
//! ```

/// Addresses that a heap itself uses at most, in bytes from its base, whatever the [alignment](crate::ObjectAlign) of objects is:
/// places of references in it are encoded in 32 bits, as [slots](SLOT_SHIFT).
pub const HEAP_MAX: u64 = 1 << (32 + SLOT_SHIFT);
/// The place of a reference in the heap, a slot, counts units of `1 << SLOT_SHIFT` bytes from the heap's base.
pub const SLOT_SHIFT: u32 = 2;
pub use crate::usual::{
    DURABLE_END, DURABLE_START, OBJECT_ALIGN, REF_SHIFT, array_size, object_size,
};

/// Bytes after the heap's base that are never mapped, so that an access through a null reference faults.
/// A fixed offset below this needs no null check.
pub const NULL_GUARD: u64 = 64 << 10;
/// The bit that is set in a reference which is a 31-bit integer.
pub const I31_TAG: u32 = 1;
/// The bit that is set in the reference of a durable object, if the heap leaves a range to them: see
/// [`ObjectAlign::durable_start`](crate::ObjectAlign::durable_start).
pub const DURABLE_BIT: u32 = 1 << 31;

// ---- header
// -----------------------------------------------------------------------------------------------------------------------

/// Bytes of an object's header, which is at offset 0.
pub const HEADER_SIZE: u32 = 8;
/// Lowest bit of the type: an index into the heap's shapes.
pub const TYPE_SHIFT: u32 = 0;
/// Bits of the type.
pub const TYPE_BITS: u32 = 24;
/// Lowest bit of the allocation site. Site 0 means unknown.
pub const SITE_SHIFT: u32 = 24;
/// Bits of the allocation site.
pub const SITE_BITS: u32 = 24;
/// Lowest bit of the collector's byte.
pub const COLLECTOR_SHIFT: u32 = 48;
/// Lowest bit of the temperature byte.
pub const TEMPERATURE_SHIFT: u32 = 56;

/// Offset of the collector's byte in an object. The bits in it follow.
pub const COLLECTOR_BYTE: i32 = 6;
/// The object lives elsewhere: the low 32 bits of this header are its new reference, unless [`DURABLE`] is set too.
///
/// With [`DURABLE`], the object became durable: its durable copy's reference is where an ordinary header has site (lower 24 bits) and
/// temperature (upper 8), its type is still there, and its contents then too, until the next collection.
pub const FORWARDED: u8 = 1 << 0;
/// A collector thread is copying the object; others wait.
pub const FORWARDING: u8 = 1 << 1;
/// The two mark bits. One of the two values `MARK_A` and `MARK_B` means live; which one changes with every full
/// collection.
pub const MARK_MASK: u8 = MARK_A | MARK_B;
/// See [`MARK_MASK`].
pub const MARK_A: u8 = 1 << 2;
/// See [`MARK_MASK`].
pub const MARK_B: u8 = 1 << 3;
/// The next store of a reference into this object must note it: see [`MUTATOR_REMEMBERED`]. Clear in the nursery, set
/// at promotion.
pub const UNLOGGED: u8 = 1 << 4;
/// The object survives a crash: stores into it are written back and fenced.
pub const DURABLE: u8 = 1 << 5;
/// The object is in a large-object space and does not move.
pub const LARGE: u8 = 1 << 6;
/// A persistence check tests both at once: none of them set means an ordinary object in its place.
pub const PERSISTENCE_CHECK: u8 = FORWARDED | DURABLE;

/// Offset of the temperature byte in an object. The bits in it follow. Compiled code may set all of them at birth.
pub const TEMPERATURE_BYTE: i32 = 7;
/// The colour that page placement sees, 2 bits: 0 is none.
pub const COLOUR_MASK: u8 = 0b11;
/// The allocation site was hinted, or profiled, as hot.
pub const HOT: u8 = 1 << 2;
/// Written since the collector last read it. Monitoring barriers set it, an observer space reads and clears it.
pub const WRITTEN: u8 = 1 << 3;
/// Lowest of two bits that count, up to 3, the collections that the object survived by copying.
pub const AGE_SHIFT: u32 = 4;
/// The two age bits.
pub const AGE_MASK: u8 = 0b11 << AGE_SHIFT;

/// The header of a new object in the nursery. The collector's byte is 0.
///
/// `temperature` holds bits of [`TEMPERATURE_BYTE`]; 0 is neutral.
#[inline]
pub const fn new_header(type_index: u32, site: u32, temperature: u8) -> u64 {
    debug_assert!(type_index < 1 << TYPE_BITS && site < 1 << SITE_BITS);
    type_index as u64 | (site as u64) << SITE_SHIFT | (temperature as u64) << TEMPERATURE_SHIFT
}

// ---- objects
// ----------------------------------------------------------------------------------------------------------------------

/// Offset of a struct's first field.
pub const STRUCT_BASE: u32 = 8;
/// Offset of an array's length, a `u32` counting elements.
pub const ARRAY_LENGTH: i32 = 8;
/// Offset of the elements of an array whose elements take at most 4 bytes.
pub const ARRAY_NARROW_BASE: u32 = 12;
/// Offset of the elements of an array whose elements take more than 4 bytes.
pub const ARRAY_WIDE_BASE: u32 = 16;
/// Offset of a host object's handle, a `u64`.
pub const HOST_HANDLE: i32 = 8;
/// Bytes of a host object, without alignment padding.
pub const HOST_SIZE: u32 = 16;

/// Offset of the elements of an array, by the bytes that one element takes.
#[inline]
pub const fn array_base(element_size: u32) -> u32 {
    if element_size <= 4 {
        ARRAY_NARROW_BASE
    } else {
        ARRAY_WIDE_BASE
    }
}

// ---- what compiled code reads and writes in a mutator
// -----------------------------------------------------------------------------

/// Offset of the address (`u64`) at which the next object is born in the nursery.
pub const MUTATOR_CURSOR: i32 = 0;
/// Offset of the address (`u64`) up to which the nursery may be used without asking. The bytes from the cursor to
/// it are zero.
pub const MUTATOR_LIMIT: i32 = 8;
/// Offset of the heap's base address (`u64`). It never changes.
pub const MUTATOR_HEAP_BASE: i32 = 16;
/// Offset of the address (`u64`) at which the write barrier logs the next object or line that is stored into: an entry of 4 bytes, after
/// which the address is 4 more. There is always room. An entry is the reference of an object, whose [`UNLOGGED`] bit
/// is cleared with it, or a line: see [`REMEMBERED_LINE`] and the barrier in [`Mutator`](crate::Mutator).
pub const MUTATOR_REMEMBERED: i32 = 24;
/// Offset of the address (`u64`) of the cards: a byte for each line of the heap, by its number from the heap's base.
/// Those of lines in [`LARGE`] objects are not 0 if the line was logged already. The address never changes.
pub const MUTATOR_CARDS: i32 = 32;
/// The bit of an entry that stands for a line, whose number is above it: `(address - heap base) / LINE_SIZE << 1 | 1`.
pub const REMEMBERED_LINE: u32 = 1;

// ---- spaces
// -----------------------------------------------------------------------------------------------------------------------

/// Bytes of a block of a mark-region space.
pub const BLOCK_SIZE: u64 = 32 << 10;
/// Bytes of a line, the unit in which a mark-region space finds holes. It is the write unit of the slow media that
/// we know.
pub const LINE_SIZE: u64 = 256;
/// Lines of a block.
pub const LINES_PER_BLOCK: usize = (BLOCK_SIZE / LINE_SIZE) as usize;
/// Bytes of a chunk, the unit in which spaces take and free address range: a large page of the systems that we
/// know.
pub const CHUNK_SIZE: u64 = 2 << 20;
/// Blocks of a chunk.
pub const BLOCKS_PER_CHUNK: u32 = (CHUNK_SIZE / BLOCK_SIZE) as u32;
/// Bytes of a page, the unit of a large-object space.
pub const PAGE_SIZE: u64 = 4 << 10;
/// An object of at least this many bytes goes to a large-object space when it survives.
pub const LARGE_THRESHOLD: u64 = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_tile_the_word() {
        assert_eq!(TYPE_SHIFT + TYPE_BITS, SITE_SHIFT);
        assert_eq!(SITE_SHIFT + SITE_BITS, COLLECTOR_SHIFT);
        assert_eq!(COLLECTOR_SHIFT, 8 * COLLECTOR_BYTE as u32);
        assert_eq!(TEMPERATURE_SHIFT, 8 * TEMPERATURE_BYTE as u32);
        assert_eq!(
            FORWARDED & FORWARDING & MARK_MASK & UNLOGGED & DURABLE & LARGE,
            0
        );
        assert_eq!(COLOUR_MASK & HOT & WRITTEN & AGE_MASK, 0);
        assert_eq!(new_header(0xabcdef, 0x123456, 0x7f), 0x7f00_1234_56ab_cdef);
    }
}
