//! For the shim: system calls without the C library.

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
    // SAFETY: only called with calls that the kernel does not know; registers are declared.
    unsafe {
        asm!("syscall", inlateout("rax") call => result, in("rdi") words[0], in("rsi") words[1], in("rdx") words[2],
             in("r10") words[3], in("r8") words[4], in("r9") words[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// What the C library knows the calling thread by (`pthread_self`): the address of its control block, which begins with itself.
pub fn thread() -> usize {
    let thread;
    // SAFETY: every thread of a program with a C library has a control block.
    unsafe { asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly, preserves_flags)) };
    thread
}
