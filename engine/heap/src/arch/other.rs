//! Processors that nobody has written a file for, and interpreters.

/// Does nothing.
#[inline(always)]
pub fn fetch(_: *const u8) {}
