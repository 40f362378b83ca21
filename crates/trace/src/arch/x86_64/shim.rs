//! For the shim: system calls without the C library, and the frames of functions.

use core::arch::asm;

// `core` was compiled to unwind and names this function in its tables; here nothing unwinds. Hidden, so that programs
// that have the real one keep it.
core::arch::global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);

/// A system call that leaves `errno` alone.
pub fn system(call: usize, words: [usize; 6]) -> isize {
    let result;
    // SAFETY: only called with calls that the kernel does not know, and with `mincore`, whose result lives during the
    // call; registers are declared.
    unsafe {
        asm!("syscall", inlateout("rax") call => result, in("rdi") words[0], in("rsi") words[1], in("rdx") words[2],
             in("r10") words[3], in("r8") words[4], in("r9") words[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Number of a system call.
pub const MINCORE: usize = 27;

/// Frames begin at a multiple of this.
pub const FRAME_ALIGN: usize = 16;

/// What a frame pointer points to, in functions that keep one: the caller's frame pointer, and the return address.
///
/// # Safety
/// The 16 bytes at `frame` can be read.
pub unsafe fn frame(frame: usize) -> (usize, usize) {
    let words = frame as *const usize;
    // SAFETY: promised by the caller.
    unsafe { (words.read(), words.add(1).read()) }
}
