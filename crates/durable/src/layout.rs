//! Where things are in a region file, and where the file is among references.
//!
//! ```text
//! file      0         4 KiB     8 KiB    16 KiB        192 KiB     256 KiB              256 KiB + tables
//!           | magic,  | commit  | roots  | undo log    | class     | tables: types,     | objects, in lines
//!           | version | records |        |             | data      | constants (JSON)   | of 256 bytes ...
//!
//! heap      DURABLE_START                    FILE_START = DURABLE_START + 64 MiB
//!           | constants, not in the file ... | the file from its first byte on
//! ```
//!
//! All numbers are little-endian. A reference is a multiple of 4 bytes from the heap's base, as everywhere, so that objects are at
//! `FILE_START + offset in the file`: fixed, whatever the address of the heap.

use varve_heap::layout::{DURABLE_END, DURABLE_START, LINE_SIZE};

/// The first eight bytes of a region file.
pub const MAGIC: [u8; 8] = *b"VARVEREG";
/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 2;

/// Bytes from the heap's base to the constants, which the file names and does not hold.
pub const CONSTANTS_START: u64 = DURABLE_START;
/// Bytes from the heap's base to the file's first byte.
pub const FILE_START: u64 = DURABLE_START + (64 << 20);
/// Most bytes of a region file.
pub const MAX_FILE: u64 = DURABLE_END - FILE_START;

/// Offset of the two commit records.
pub const COMMITS: u64 = 4 << 10;
/// Bytes from one commit record to the other.
pub const COMMIT_STRIDE: u64 = 2 << 10;
/// Offset of the roots.
pub const ROOTS: u64 = 8 << 10;
/// Bytes of a root's entry: its reference in the first word, the length of its name in the second, its name from byte 8 on.
pub const ROOT_BYTES: u64 = 128;
/// Roots that a region has room for.
pub const MAX_ROOTS: u64 = 64;
/// Bytes of a root's name at most.
pub const MAX_ROOT_NAME: usize = ROOT_BYTES as usize - 8;
/// Offset of the undo log.
pub const LOG: u64 = ROOTS + ROOT_BYTES * MAX_ROOTS;
/// Offset of class data that programs make while they run.
pub const CLASS_DATA: u64 = 192 << 10;
/// Offset of the tables.
pub const TABLES: u64 = 256 << 10;
/// Bytes in which processors write back.
pub const CACHE_LINE: u64 = 64;

/// Fewest bytes of a region file.
pub const FIRST_SIZE: u64 = TABLES + GROWTH;
/// A file is a multiple of this many bytes long.
pub const GROWTH: u64 = 64 << 10;
/// Most bytes that it grows by at a time, unless an object needs more.
pub const MOST_GROWTH: u64 = 64 << 20;

/// The first object after tables of so many bytes.
pub fn objects_after(tables: u64) -> u64 {
    (TABLES + tables).next_multiple_of(LINE_SIZE)
}

const _: () = assert!(LOG < CLASS_DATA && CLASS_DATA < TABLES && TABLES < FIRST_SIZE);
