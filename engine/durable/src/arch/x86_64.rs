//! x86-64: CLWB, CLFLUSHOPT, CLFLUSH and SFENCE.

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
        #[cfg(not(miri))]
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

    /// Begins to write back the line of an address.
    #[inline(always)]
    pub fn write_back(self, line: *const u8) {
        #[cfg(not(miri))]
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
        #[cfg(miri)]
        let _ = line;
    }
}

/// Has write-backs before it end before stores after it.
#[inline(always)]
pub fn fence() {
    #[cfg(not(miri))]
    // SAFETY: a fence has no operands.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
    #[cfg(miri)]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Has the processor bring the line of an address near.
#[inline(always)]
pub fn fetch(at: *const u8) {
    #[cfg(not(miri))]
    // SAFETY: fetching has no effect but on caches, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(miri)]
    let _ = at;
}
