//! The system calls that placement needs, made directly so that an interposed `mmap` never sees them.

// The constants carry the kernel's own names.
#![allow(missing_docs)]

use crate::arch::call;
use std::io;

// From the kernel's uapi headers (asm-generic/mman-common.h, linux/mman.h, linux/userfaultfd.h).
pub const PROT_NONE: i32 = 0;
pub const PROT_READ: i32 = 1;
pub const PROT_WRITE: i32 = 2;
pub const MAP_SHARED: i32 = 0x01;
pub const MAP_PRIVATE: i32 = 0x02;
pub const MAP_FIXED: i32 = 0x10;
pub const MAP_ANONYMOUS: i32 = 0x20;
pub const MAP_GROWSDOWN: i32 = 0x0100;
pub const MAP_NORESERVE: i32 = 0x4000;
pub const MAP_STACK: i32 = 0x2_0000;
pub const MAP_HUGETLB: i32 = 0x4_0000;
pub const MAP_FIXED_NOREPLACE: i32 = 0x10_0000;
pub const MREMAP_MAYMOVE: i32 = 1;
pub const MREMAP_FIXED: i32 = 2;
pub const MREMAP_DONTUNMAP: i32 = 4;
pub const MADV_DONTNEED: i32 = 4;
pub const MADV_HUGEPAGE: i32 = 14;
pub const MADV_NOHUGEPAGE: i32 = 15;
pub const MADV_DONTNEED_LOCKED: i32 = 24;
pub const MADV_POPULATE_WRITE: i32 = 23;
pub const O_CLOEXEC: i32 = 0x8_0000;
pub const O_NONBLOCK: i32 = 0o4000;

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn __errno_location() -> *mut i32;
    fn poll(fds: *mut PollFd, count: u64, milliseconds: i32) -> i32;
}

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the C library returns a valid pointer to this thread's errno.
    unsafe { *__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *__errno_location() = value }
}

/// Keeps `errno` as it was: success must not change it.
pub fn keeping_errno<T>(action: impl FnOnce() -> T) -> T {
    let errno = errno();
    let result = action();
    set_errno(errno);
    result
}

fn check(result: i64) -> io::Result<usize> {
    if result < 0 {
        Err(io::Error::from_raw_os_error(errno()))
    } else {
        Ok(result as usize)
    }
}

/// `mmap`.
///
/// # Safety
/// With `MAP_FIXED` the range must not hold anything that is still used.
pub unsafe fn mmap(
    addr: usize,
    len: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> io::Result<usize> {
    // SAFETY: the caller answers for MAP_FIXED; otherwise the kernel picks unused addresses.
    check(unsafe {
        syscall(
            call::MMAP,
            addr,
            len,
            i64::from(prot),
            i64::from(flags),
            i64::from(fd),
            offset,
        )
    })
}

/// `munmap`.
///
/// # Safety
/// Nothing may use the range afterwards.
pub unsafe fn munmap(addr: usize, len: usize) -> io::Result<()> {
    // SAFETY: the caller answers for the range.
    check(unsafe { syscall(call::MUNMAP, addr, len) }).map(drop)
}

/// `mremap`.
///
/// # Safety
/// Nothing may use what the call unmaps: the old range, and with `MREMAP_FIXED` the new one.
pub unsafe fn mremap(
    old: usize,
    old_len: usize,
    new_len: usize,
    flags: i32,
    new: usize,
) -> io::Result<usize> {
    // SAFETY: the caller answers for both ranges.
    check(unsafe { syscall(call::MREMAP, old, old_len, new_len, i64::from(flags), new) })
}

/// `madvise`.
///
/// # Safety
/// Advice that drops contents (`MADV_DONTNEED`) needs a range whose contents are not needed.
pub unsafe fn madvise(addr: usize, len: usize, advice: i32) -> io::Result<()> {
    // SAFETY: the caller answers for the contents.
    check(unsafe { syscall(call::MADVISE, addr, len, i64::from(advice)) }).map(drop)
}

/// `userfaultfd`.
pub fn userfaultfd(flags: i32) -> io::Result<i32> {
    // SAFETY: takes no pointer.
    check(unsafe { syscall(call::USERFAULTFD, i64::from(flags)) }).map(|fd| fd as i32)
}

/// `ioctl` with a pointer to `argument`.
///
/// # Safety
/// `request` must be one that reads and writes no more than `T`, apart from memory that `T` names and that
/// the caller answers for.
pub unsafe fn ioctl<T>(fd: i32, request: u64, argument: &mut T) -> io::Result<usize> {
    // SAFETY: `argument` is valid for the call; the caller answers for the request.
    check(unsafe {
        syscall(
            call::IOCTL,
            i64::from(fd),
            request,
            std::ptr::from_mut(argument),
        )
    })
}

/// Number of an `ioctl` that reads and writes its argument: `_IOWR(kind, nr, T)` of the kernel's headers.
pub const fn iowr<T>(kind: u64, nr: u64) -> u64 {
    (3 << 30) | ((std::mem::size_of::<T>() as u64) << 16) | (kind << 8) | nr
}

/// Waits for the exclusive lock (`flock`) of an open file; closing the file gives it back.
pub fn lock_file(fd: i32) -> io::Result<()> {
    const LOCK_EX: i64 = 2;
    const EINTR: i32 = 4;
    loop {
        // SAFETY: takes no pointer.
        match check(unsafe { syscall(call::FLOCK, i64::from(fd), LOCK_EX) }) {
            Err(e) if e.raw_os_error() == Some(EINTR) => {}
            result => return result.map(drop),
        }
    }
}

/// Where the calling thread's `errno` lies: different for every living thread.
pub fn errno_address() -> usize {
    // SAFETY: as in `errno`.
    (unsafe { __errno_location() }) as usize
}

/// Sleeps until `word` is woken, unless it no longer holds `expected`.
pub fn futex_wait(word: &std::sync::atomic::AtomicU32, expected: u32) {
    // FUTEX_WAIT | FUTEX_PRIVATE_FLAG; no timeout.
    // SAFETY: the word is valid for the call.
    unsafe {
        syscall(
            call::FUTEX,
            word.as_ptr(),
            128i64,
            i64::from(expected),
            0i64,
        )
    };
}

/// Wakes one thread that sleeps on `word`.
pub fn futex_wake(word: &std::sync::atomic::AtomicU32) {
    // FUTEX_WAKE | FUTEX_PRIVATE_FLAG.
    // SAFETY: the word is valid for the call.
    unsafe { syscall(call::FUTEX, word.as_ptr(), 129i64, 1i64) };
}

/// Ends the process at once.
pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { syscall(call::EXIT_GROUP, i64::from(status)) };
    }
}

/// `struct pollfd`.
#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    happened: i16,
}

/// Waits until `fd` can be read, at most `milliseconds`; `false` when it cannot.
///
/// # Errors
/// The descriptor is closed or broken.
pub fn wait_readable(fd: i32, milliseconds: i32) -> io::Result<bool> {
    const POLLIN: i16 = 1;
    let mut one = PollFd {
        fd,
        events: POLLIN,
        happened: 0,
    };
    // SAFETY: one element, as stated.
    match unsafe { poll(&mut one, 1, milliseconds) } {
        0 => Ok(false),
        n if n > 0 && one.happened == POLLIN => Ok(true),
        n if n > 0 => Err(io::Error::from_raw_os_error(9)), // EBADF
        _ if errno() == 4 => Ok(false),                     // EINTR
        _ => Err(io::Error::last_os_error()),
    }
}
