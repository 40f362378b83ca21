//! x86-64: CLWB, CLFLUSHOPT, MOVNTDQ and SFENCE.

use super::{LINE_WORDS, WriteBack};
use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, __m128i, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128,
};

/// Numbers of system calls (arch/x86/entry/syscalls/syscall_64.tbl).
pub mod call {
    pub const MMAP: i64 = 9;
    pub const MUNMAP: i64 = 11;
    pub const IOCTL: i64 = 16;
    pub const MREMAP: i64 = 25;
    pub const MADVISE: i64 = 28;
    pub const FLOCK: i64 = 73;
    pub const FUTEX: i64 = 202;
    pub const EXIT_GROUP: i64 = 231;
    pub const USERFAULTFD: i64 = 323;
}

/// Runs this processor's programs.
pub const QEMU: &str = "qemu-x86_64";

/// CLFLUSHOPT and CLWB: bits from the Intel SDM, volume 2A, CPUID.
fn knows() -> (bool, bool) {
    // SAFETY: CPUID is part of every x86-64 processor. (Newer compilers know that these calls are safe.)
    #[allow(unused_unsafe)]
    let features = unsafe {
        if __cpuid(0).eax >= 7 {
            __cpuid_count(7, 0).ebx
        } else {
            0
        }
    };
    (features & 1 << 23 != 0, features & 1 << 24 != 0)
}

/// Tries what the processor announces.
pub fn write_back() -> WriteBack {
    let (clflushopt, clwb) = knows();
    let line = [0u8; 64];
    // SAFETY: the instructions are announced by the processor, and the line is ours.
    unsafe {
        if clwb {
            asm!("clwb [{}]", in(reg) line.as_ptr(), options(nostack));
        }
        if clflushopt {
            asm!("clflushopt [{}]", in(reg) line.as_ptr(), options(nostack));
        }
    }
    match (clwb, clflushopt) {
        (true, _) => WriteBack::Full("CLWB and CLFLUSHOPT executed"),
        (false, true) => {
            WriteBack::Partial("CLFLUSHOPT executed, no CLWB: a flushed line leaves the cache")
        }
        (false, false) => WriteBack::Partial("CLFLUSH alone: flushes wait for each other"),
    }
}

/// Can stores go past the caches here?
pub fn can_stream() -> bool {
    true
}

/// Stores whole lines past the caches.
pub fn stream(words: &mut [u64]) {
    assert!(words.as_ptr().cast::<__m128i>().is_aligned());
    // SAFETY: SSE2 is part of x86-64. The pieces of 16 B lie within `words`, which is borrowed mutably and
    // aligned as just checked.
    unsafe {
        let value = _mm_set1_epi64x(1);
        for piece in words.as_chunks_mut::<2>().0 {
            _mm_stream_si128(piece.as_mut_ptr().cast(), value);
        }
    }
}

/// Does the processor know CLWB?
pub fn can_write_back() -> bool {
    knows().1
}

/// Stores whole lines and writes each back. The processor must know CLWB (see [`can_write_back`]).
pub fn store_and_write_back(words: &mut [u64]) {
    for line in words.as_chunks_mut::<LINE_WORDS>().0 {
        line.fill(1);
        // SAFETY: CLWB writes a line back and changes nothing that the program can see; the address is that of
        // borrowed memory. That the processor knows it was checked before this pattern was made.
        unsafe {
            asm!("clwb [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
    }
}

/// Waits until stores before it are done.
pub fn fence() {
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() };
}
