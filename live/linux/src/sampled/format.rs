//! The file in which a process under the shim keeps its samples of objects, and which others read while it runs. The shim
//! includes this module too.
//!
//! ```text
//! words 0..512       the header
//! SLOTS * 32 words   a slot for each object that is followed
//! SLOTS * 8 KiB      for each slot the stack above the call that asked for the object
//! ```
//!
//! An object of `b` bytes is followed with a chance of `1 - exp(-b / interval)`, so as if a point fell on every `interval`
//! bytes on average. It stands for `weight` bytes: its own, divided by that chance.

/// First word of the file: format 1.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VARVSMP1");

/// Objects that are followed at once, at most.
pub const SLOTS: usize = 2048;
/// Words of the header.
pub const HEADER_WORDS: usize = 512;
/// Words of a slot.
pub const SLOT_WORDS: usize = 32;
/// Bytes of a stack that are kept: the same number as other profilers copy.
pub const STACK_BYTES: usize = 8192;
/// Pages of an object that are watched, at most.
pub const WATCHED: usize = 16;
/// Where the stacks begin, bytes.
pub const STACKS: usize = (HEADER_WORDS + SLOTS * SLOT_WORDS) * 8;
/// Bytes of the file.
pub const FILE_BYTES: usize = STACKS + SLOTS * STACK_BYTES;

/// Words of the header: which life of the process this is (a program that it becomes by `exec` begins anew), bytes between
/// points now, a number that is odd while weights change, and the shim's address range: start, end.
pub const LIFE: usize = 1;
/// See [`LIFE`].
pub const INTERVAL: usize = 2;
/// See [`LIFE`].
pub const CHANGING: usize = 3;
/// See [`LIFE`].
pub const RANGE: usize = 4;

/// Words of a slot: the object's number, from 1; 0 while the slot is written.
pub const SERIAL: usize = 0;
/// Its state: one of [`LIVE`], [`FREED`], [`DROPPED`].
pub const STATE: usize = 1;
/// Its first byte.
pub const ADDRESS: usize = 2;
/// Its size.
pub const BYTES: usize = 3;
/// Bytes that it stands for.
pub const WEIGHT: usize = 4;
/// 1 if the program mapped it itself.
pub const MAPPED: usize = 5;
/// Where the call that asked for it returns to.
pub const RETURN: usize = 6;
/// The caller's stack pointer then, at which the copy of the stack begins.
pub const STACK: usize = 7;
/// The caller's frame pointer.
pub const FRAME: usize = 8;
/// Bytes of the copy.
pub const COPIED: usize = 9;
/// Bytes that all objects so far stand for, at its birth.
pub const BORN: usize = 10;
/// The same at its death.
pub const DIED: usize = 11;
/// Number of watched pages, and behind it their addresses.
pub const PAGES: usize = 12;

/// It is there.
pub const LIVE: u64 = 1;
/// It was freed.
pub const FREED: u64 = 2;
/// It is followed no longer: there were too many.
pub const DROPPED: u64 = 3;
