//! Processors without a file of their own, and interpreters.

/// Does nothing.
#[inline(always)]
pub fn fetch(_: *const u8) {}
