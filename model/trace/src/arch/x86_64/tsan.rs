//! For the probe in compiled programs: words that each thread has, and an atomic operation.
//!
//! Thread-local storage is declared and reached in assembly, which stable Rust has no word for; programs reach theirs at fixed distances from fs.

use crate::ring::Slot;
use core::arch::{asm, global_asm, naked_asm};

/// Return addresses of the functions that a thread is in are kept for this many levels.
pub const LEVELS: usize = 64;

// Words per thread: its slot; whether it has ended (or found none), so that it is not asked again; the functions that it
// is in; and from where they were called.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 4",
    ".hidden varve_thread",
    ".globl varve_thread",
    ".type varve_thread, @object",
    ".size varve_thread, 536",
    "varve_thread:",
    ".zero 536",
    ".popsection",
);

/// The calling thread's slot, or null.
#[inline(always)]
pub fn slot() -> *mut Slot {
    let slot: *mut Slot;
    // SAFETY: reads a thread-local word that exists in every thread of the executable.
    unsafe {
        asm!("mov {}, qword ptr fs:[varve_thread@TPOFF]", out(reg) slot, options(nostack, readonly, preserves_flags))
    };
    slot
}

/// Sets it.
pub fn set_slot(slot: *mut Slot) {
    // SAFETY: writes the calling thread's own word.
    unsafe {
        asm!("mov qword ptr fs:[varve_thread@TPOFF], {}", in(reg) slot, options(nostack, preserves_flags))
    };
}

/// Has the thread ended, or found no slot?
pub fn is_over() -> bool {
    let over: u64;
    // SAFETY: reads the calling thread's own word.
    unsafe {
        asm!("mov {}, qword ptr fs:[varve_thread@TPOFF+8]", out(reg) over, options(nostack, readonly, preserves_flags))
    };
    over != 0
}

/// Sets that the thread is over.
pub fn set_over() {
    // SAFETY: writes the calling thread's own word.
    unsafe {
        asm!("mov qword ptr fs:[varve_thread@TPOFF+8], {}", in(reg) 1u64, options(nostack, preserves_flags))
    };
}

/// The compiler calls this when a function begins, with the function's return address.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_func_entry(_: usize) {
    naked_asm!(
        "mov rax, qword ptr fs:[varve_thread@TPOFF+16]",
        "mov ecx, eax",
        "and ecx, {mask}",
        "mov qword ptr fs:[rcx*8+varve_thread@TPOFF+24], rdi",
        "inc rax",
        "mov qword ptr fs:[varve_thread@TPOFF+16], rax",
        "ret",
        mask = const LEVELS - 1,
    )
}

/// And this when it ends.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!("dec qword ptr fs:[varve_thread@TPOFF+16]", "ret")
}

/// Functions that the thread is in.
pub fn depth() -> usize {
    let depth: usize;
    // SAFETY: reads the calling thread's own word.
    unsafe {
        asm!("mov {}, qword ptr fs:[varve_thread@TPOFF+16]", out(reg) depth, options(nostack, readonly, preserves_flags))
    };
    depth
}

/// A return address that was kept.
///
/// # Safety
/// `place` is below [`LEVELS`].
pub unsafe fn caller(place: usize) -> usize {
    let caller: usize;
    // SAFETY: reads the calling thread's own words; the caller guarantees that the place is among them.
    unsafe {
        asm!("mov {}, qword ptr fs:[{}*8+varve_thread@TPOFF+24]", out(reg) caller, in(reg) place, options(nostack, readonly, preserves_flags))
    };
    caller
}

/// Puts `value` where `expected` was, atomically; returns the old value (CMPXCHG16B).
///
/// # Safety
/// `at` is an atomic object of 16 bytes, aligned to as many.
pub unsafe fn compare_exchange(at: *mut u128, expected: u128, value: u128) -> u128 {
    let (low, high): (u64, u64);
    // SAFETY: the caller guarantees the object. rbx is the compiler's, so it is put back.
    unsafe {
        asm!("xchg {low}, rbx", "lock cmpxchg16b [{at}]", "mov rbx, {low}",
             low = inout(reg) value as u64 => _, at = in(reg) at,
             inout("rax") expected as u64 => low, inout("rdx") (expected >> 64) as u64 => high,
             in("rcx") (value >> 64) as u64, options(nostack));
    }
    u128::from(low) | u128::from(high) << 64
}
