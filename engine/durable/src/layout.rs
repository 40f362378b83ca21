//! Where things are in a region file, and where the file is among references. `docs/region-format.md` documents the bytes.
//!
//! ```text
//! file      0         4 KiB     8 KiB    16 KiB        192 KiB     256 KiB       384 KiB             first page after both tables
//!           | magic,  | commit  | roots  | undo log    | records   | directory   | tables: types,    | objects, in lines
//!           | version | records |        |             |           | of marks    | constants, twice  | of 256 bytes, and marks ...
//!
//! heap      DURABLE_START                    FILE_START = DURABLE_START + 64 MiB
//!           | constants, not in the file ... | the file from its first byte on
//! ```
//!
//! All numbers are little-endian. A reference counts units of half the alignment of objects from the heap's base, as everywhere, so that objects
//! are at `FILE_START + offset in the file`: fixed, whatever the address of the heap. The alignment of objects decides how far references reach: see
//! [`Addresses`].

use varve_heap::layout::{DURABLE_END, DURABLE_START, LINE_SIZE};
use varve_heap::{ObjectAlign, Ref};

/// The first eight bytes of a region file.
pub const MAGIC: [u8; 8] = *b"VARVEREG";
/// The version of the format that this crate writes. It reads [`OLDEST`] too.
pub const VERSION: u32 = 3;
/// The version that a file has instead while its region has a journal after it: see [`journal`](crate::journal). Programs that know none would
/// miss what is in there.
pub const JOURNALED: u32 = 4;
/// The oldest version that this crate reads: a region of it is rewritten when it is opened.
pub const OLDEST: u32 = 2;

/// Bytes from the heap's base to the constants, which the file names and does not hold, where objects are aligned to 8 bytes.
pub const CONSTANTS_START: u64 = DURABLE_START;
/// Bytes of address range that constants have, before the file's first byte.
pub const CONSTANTS_ROOM: u64 = 64 << 20;
/// Bytes from the heap's base to the file's first byte, where objects are aligned to 8 bytes.
pub const FILE_START: u64 = DURABLE_START + CONSTANTS_ROOM;
/// Most bytes of a region file, where objects are aligned to 8 bytes.
pub const MAX_FILE: u64 = DURABLE_END - FILE_START;

/// The targets of references, by the alignment of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses(pub ObjectAlign);

/// Where a reference leads.
pub(crate) enum Place {
    /// To an object at an offset in the file.
    File(u64),
    /// To a constant, at an offset in constants.
    Constant(u64),
    /// Elsewhere.
    Outside,
}

impl Addresses {
    /// Bytes from the heap's base to the constants.
    pub const fn constants_start(self) -> u64 {
        self.0.durable_start()
    }

    /// Bytes from the heap's base to the file's first byte.
    pub const fn file_start(self) -> u64 {
        self.constants_start() + CONSTANTS_ROOM
    }

    /// Most bytes of a region file.
    pub const fn max_file(self) -> u64 {
        self.0.durable_end() - self.file_start()
    }

    pub(crate) fn place(self, r: Ref) -> Place {
        match self.0.offset(r) {
            offset if offset >= self.file_start() => Place::File(offset - self.file_start()),
            offset if offset >= self.constants_start() => {
                Place::Constant(offset - self.constants_start())
            }
            _ => Place::Outside,
        }
    }

    /// The offset in the file of an object that is there.
    pub fn offset(self, r: Ref) -> u64 {
        self.0.offset(r) - self.file_start()
    }

    /// The reference of the object at an offset in the file.
    pub fn reference(self, offset: u64) -> Ref {
        self.0.reference(self.file_start() + offset)
    }

    /// The reference of a constant.
    pub fn constant(self, offset: u64) -> Ref {
        self.0.reference(self.constants_start() + offset)
    }
}

/// Offset of the shift from references to distances, which follows from the alignment of objects (u32).
pub const ALIGN_SHIFT: u64 = 12;
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
/// Offset of records: class data that programs make while they run, and objects that are the same in each run.
pub const CLASS_DATA: u64 = 192 << 10;
/// Offset of the directory of marks: where the marks of each group of pages are.
pub const DIRECTORY: u64 = 256 << 10;
/// Offset of the tables.
pub const TABLES: u64 = 384 << 10;
/// Offset of the tables in version 2, which has no directory.
pub const TABLES_2: u64 = 256 << 10;
/// Bytes in which processors write back.
pub const CACHE_LINE: u64 = 64;

/// Bytes of a page, of which each has a mark: whether it may be written to, its checksum, which of its lines are taken.
pub const PAGE: u64 = 4 << 10;
/// Pages of a group, whose marks are together.
pub const GROUP_PAGES: u64 = 4096;
/// Bytes of a group's marks.
pub const GROUP_MARKS: u64 = GROUP_PAGES * 8;
/// Groups that the directory has room for.
pub const MAX_GROUPS: u64 = (TABLES - DIRECTORY) / 8;
const _: () = assert!(MAX_GROUPS * GROUP_PAGES * PAGE >= Addresses(ObjectAlign::MOST).max_file());

/// Fewest bytes of a region file.
pub const FIRST_SIZE: u64 = TABLES + GROWTH;
/// A file is a multiple of this many bytes long.
pub const GROWTH: u64 = 64 << 10;
/// Most bytes that it grows by at a time, unless an object needs more: a file system that fills them with zeroes does so in milliseconds.
pub const MOST_GROWTH: u64 = 16 << 20;

/// The room for one copy of tables of `tables` bytes.
pub fn tables_room(tables: u64) -> u64 {
    tables.next_multiple_of(CACHE_LINE)
}

/// The offset of the first object after two copies of tables of `tables` bytes.
pub fn objects_after(tables: u64) -> u64 {
    (TABLES + 2 * tables_room(tables)).next_multiple_of(PAGE)
}

/// The same in version 2, which has them once.
pub fn objects_after_2(tables: u64) -> u64 {
    (TABLES_2 + tables).next_multiple_of(LINE_SIZE)
}

/// A number below 2^48 with a checksum above it, so that both are written at once.
pub fn with_sum(number: u64) -> u64 {
    debug_assert!(number < 1 << 48);
    number | u64::from(sum_of(number)) << 48
}

/// The number that [`with_sum`] was given; none if the word was never written by it.
pub fn without_sum(word: u64) -> Option<u64> {
    let number = word & ((1 << 48) - 1);
    (with_sum(number) == word).then_some(number)
}

fn sum_of(number: u64) -> u16 {
    let sum = crc32c::crc32c(&number.to_le_bytes());
    // Zero has a sum of zero, as fresh files have.
    match number {
        0 => 0,
        _ => (sum ^ sum >> 16) as u16,
    }
}

const _: () = assert!(LOG < CLASS_DATA && CLASS_DATA < TABLES_2 && TABLES < FIRST_SIZE);
const _: () = assert!(PAGE / LINE_SIZE == 16, "a mark has a bit for each line");
