//! Programs that forbid themselves system calls (seccomp). We learn of it before they do, and make none from then on that the C
//! library's allocator would not: memory is had as before, in whole blocks, and nothing is asked of the kernel.

use crate::map::map;
use crate::{line, sampled, sys, thread};
use std::arch::{asm, naked_asm};
use std::ffi::{c_int, c_long, c_ulong};
use std::sync::atomic::Ordering::Relaxed;

/// `SECCOMP_SET_MODE_STRICT` and `SECCOMP_SET_MODE_FILTER`.
const SETS: std::ops::RangeInclusive<c_long> = 0..=1;

/// Whether system calls are forbidden that are not of an allocator.
#[inline]
pub fn closed() -> bool {
    line::CLOSED.load(Relaxed)
}

/// A system call, with its error in `errno`.
///
/// # Safety
/// As of that call.
unsafe fn call(number: c_long, arguments: [c_ulong; 5]) -> c_long {
    let [a, b, c, d, e] = arguments;
    let result: c_long;
    // SAFETY: the caller's call; the kernel changes the two registers beside the result.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
             lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if (-4095..0).contains(&result) {
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = -result as c_int };
        return -1;
    }
    result
}

/// A call that may forbid others.
///
/// # Safety
/// As of that call.
unsafe fn forbid(number: c_long, arguments: [c_ulong; 5]) -> c_long {
    let (before, samples) = (closed(), sampled::pause());
    if let Some(map) = map() {
        // What is asked for a thread's first block, such as where its stack is.
        sys::keeping_errno(|| _ = thread::current(map));
        line::CLOSED.store(true, Relaxed);
    }
    // SAFETY: the caller's call.
    let result = unsafe { call(number, arguments) };
    if result < 0 {
        // It was refused, or only asked whether there is such a thing.
        line::CLOSED.store(before, Relaxed);
        sampled::resume(samples);
    }
    result
}

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    let arguments = [option as c_ulong, a, b, c, d];
    // SAFETY: the caller's call.
    unsafe {
        match option {
            libc::PR_SET_SECCOMP => forbid(libc::SYS_prctl, arguments) as c_int,
            _ => call(libc::SYS_prctl, arguments) as c_int,
        }
    }
}

unsafe extern "C" fn seccomp(
    number: c_long,
    operation: c_ulong,
    flags: c_ulong,
    about: c_ulong,
) -> c_long {
    let arguments = [operation, flags, about, 0, 0];
    // SAFETY: the caller's call.
    unsafe {
        match SETS.contains(&(operation as c_long)) {
            true => forbid(number, arguments),
            false => call(number, arguments),
        }
    }
}

unsafe extern "C" fn failed(result: c_long) -> c_long {
    // SAFETY: this thread's.
    unsafe { *libc::__errno_location() = -result as c_int };
    -1
}

/// As the C library's: a system call of any number, with up to six arguments.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() -> c_long {
    naked_asm!(
        "cmp rdi, {number}",
        "je {seccomp}",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {failed}",
        number = const libc::SYS_seccomp,
        seccomp = sym seccomp,
        failed = sym failed,
    )
}
