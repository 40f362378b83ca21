//! Media that the processor's caches write back to: persistent memory, mapped.

use super::{Domain, Fence};
use crate::layout::CACHE_LINE;
use std::io;

/// The instruction that writes a cache line back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Writes back and keeps the line.
    Clwb,
    /// Writes back and drops the line; several at a time.
    ClflushOpt,
    /// Writes back and drops the line; one after the other.
    Clflush,
}

impl Instruction {
    /// The best that this processor has.
    pub fn best() -> Instruction {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            // Leaf 7 exists on every processor that has either.
            let features = std::arch::x86_64::__cpuid_count(7, 0).ebx;
            if features & 1 << 24 != 0 {
                return Instruction::Clwb;
            }
            if features & 1 << 23 != 0 {
                return Instruction::ClflushOpt;
            }
        }
        Instruction::Clflush
    }

    #[inline(always)]
    fn write_back(self, line: *const u8) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: these instructions write back a line of the address, and change nothing that a program could see; `best` says which
        // the processor has.
        unsafe {
            use std::arch::asm;
            match self {
                Instruction::Clwb => {
                    asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags))
                }
                Instruction::ClflushOpt => {
                    asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags))
                }
                Instruction::Clflush => {
                    asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags))
                }
            }
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let _ = line;
    }
}

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
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a fence has no operands.
        unsafe {
            std::arch::x86_64::_mm_sfence()
        };
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
}
