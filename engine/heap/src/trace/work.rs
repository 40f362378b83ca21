//! Instructions of the tracer's steps, for an [`Observer`](crate::observer::Observer) that models its time. The cost of moving the bytes themselves
//! is not in them.
//!
//! Callgrind counted 250 for each of the 9.85 million nodes (24 bytes, two references, one of them followed) that
//! `valgrind --tool=callgrind target/release/examples/collect 1 none nursery` copies, 94 of them in `copy`. How the others divide
//! into the steps was read off the lines that they stand for. `bench/instructions/run` sets the sum beside whole programs.

/// An object is copied: room is found, both headers are written.
pub(super) const COPY: u64 = 90;
/// An object is marked where it is, with its lines.
pub(super) const MARK: u64 = 50;
/// An object, or a segment of an array, is taken from the stack, and its shape is looked up.
pub(super) const SCAN: u64 = 70;
/// A reference is loaded, and compared with the collected range.
pub(super) const SLOT: u64 = 10;
/// A reference waits in the ring, its target's header is read, and the reference is written.
pub(super) const FOLLOW: u64 = 60;
