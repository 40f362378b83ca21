//! Any processor, in plain Rust.

use crate::model::host::{InstructionLevel, Work};

/// Does nothing.
#[inline(always)]
pub fn fetch(_: *const u8) {}

fn equal_among<const N: usize>(numbers: &[u32; N], wanted: u32) -> u32 {
    (0..N).fold(0, |mask, i| mask | ((numbers[i] == wanted) as u32) << i)
}

/// One bit for each of 8 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_8(numbers: &[u32; 8], wanted: u32) -> u32 {
    equal_among(numbers, wanted)
}

/// One bit for each of 12 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_12(numbers: &[u32; 12], wanted: u32) -> u32 {
    equal_among(numbers, wanted)
}

/// One bit for each of 16 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_16(numbers: &[u32; 16], wanted: u32) -> u32 {
    equal_among(numbers, wanted)
}

/// Nothing is known of newer instructions, so there are none.
#[derive(Clone, Copy, Debug)]
pub enum Newer {}

impl Newer {
    /// Never.
    pub fn detect() -> Option<Newer> {
        None
    }
}

impl InstructionLevel for Newer {
    fn run<W: Work>(self, _: W) -> W::Out {
        match self {}
    }
}
