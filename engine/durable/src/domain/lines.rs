//! Media that the processor's caches write back to: persistent memory, mapped.

use super::{Domain, Fence};
use crate::arch::{self, Instruction};
use crate::layout::CACHE_LINE;
use std::io;

/// Writes back cache lines and fences.
pub struct CacheLines {
    name: &'static str,
    instruction: Instruction,
}

impl CacheLines {
    /// Under this name, with the best instruction of this processor.
    pub fn new(name: &'static str) -> CacheLines {
        CacheLines {
            name,
            instruction: Instruction::best(),
        }
    }

    /// The instruction in use.
    pub fn instruction(&self) -> Instruction {
        self.instruction
    }
}

impl Domain for CacheLines {
    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn write_back(&mut self, address: *const u8, bytes: u64) {
        let skew = address.addr() as u64 % CACHE_LINE;
        let first = address.wrapping_sub(skew as usize);
        for line in 0..(skew + bytes).div_ceil(CACHE_LINE) {
            self.instruction
                .write_back(first.wrapping_add((line * CACHE_LINE) as usize));
        }
    }

    #[inline]
    fn fence(&mut self, _: Fence) -> io::Result<()> {
        arch::fence();
        Ok(())
    }
}
