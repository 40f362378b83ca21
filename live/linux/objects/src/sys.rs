//! System calls, and what of the process they tell. None of this allocates.

use crate::sandbox::closed;
use std::ffi::{CStr, c_int, c_long, c_void};

pub const PAGE: usize = 4096;

// linux/mempolicy.h; the first since Linux 5.15.
pub const MPOL_PREFERRED: c_int = 1;
pub const MPOL_PREFERRED_MANY: c_int = 5;
pub const MPOL_MF_MOVE: u32 = 2;

/// Address space without memory; 0 when there is none.
pub fn reserve(bytes: usize) -> usize {
    map(bytes, libc::PROT_NONE)
}

/// Zeroed memory that is had where it is touched; 0 when there is none.
pub fn zeroed(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(bytes: usize, protection: c_int) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let (none, file) = (std::ptr::null_mut::<c_void>(), -1 as c_long);
    // SAFETY: a new anonymous mapping where the system likes. Called directly, past our own `mmap`.
    let at = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            none,
            bytes,
            protection,
            flags,
            file,
            0 as c_long,
        )
    };
    if at < 0 { 0 } else { at as usize }
}

/// Lets reserved addresses be used.
///
/// # Safety
/// The caller reserved these addresses for itself.
pub unsafe fn open_up(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { libc::mprotect(at as *mut c_void, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Asks for huge pages where they fit, which the kernel need not give.
pub fn prefer_huge_pages(at: usize, bytes: usize) {
    // SAFETY: says how memory of ours may come, and nothing about what it holds.
    unsafe { libc::madvise(at as *mut c_void, bytes, libc::MADV_HUGEPAGE) };
}

/// Has no pages of a file read around the one that is touched.
pub fn read_no_more(at: usize, bytes: usize) {
    // SAFETY: says how memory of ours is used, and nothing about what it holds.
    unsafe { libc::madvise(at as *mut c_void, bytes, libc::MADV_RANDOM) };
}

/// Gives a part of a mapping of ours back.
///
/// # Safety
/// Nothing uses it.
pub unsafe fn unmap(at: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_munmap, at, bytes) };
    }
}

/// Lets go of what a range of ours holds: its pages are zeros when they are touched again. False if that is refused, as of
/// memory that is locked.
///
/// # Safety
/// The contents are not needed.
pub unsafe fn drop_pages(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(at as *mut c_void, bytes, libc::MADV_DONTNEED) == 0 }
}

/// Has pages of a range come from these nodes while they have room, and moves what is there if `flags` say so.
///
/// To insist (`MPOL_BIND`) would have the kernel kill a process when the nodes are full.
pub fn bind(at: usize, bytes: usize, nodes: &[u64], flags: u32) -> bool {
    if closed() {
        return false;
    }
    let limit = nodes.len() * 64 + 1;
    [MPOL_PREFERRED_MANY, MPOL_PREFERRED].iter().any(|mode| {
        // SAFETY: the mask is read, and has one bit less than stated, as the call wants it.
        unsafe {
            libc::syscall(
                libc::SYS_mbind,
                at,
                bytes,
                *mode,
                nodes.as_ptr(),
                limit,
                flags,
            ) == 0
        }
    })
}

/// On which nodes pages of this process are; negative for those that are nowhere. False when it may not be asked.
pub fn nodes_of(pages: &[usize], nodes: &mut [c_int]) -> bool {
    if closed() {
        return false;
    }
    let count = pages.len().min(nodes.len());
    let none = std::ptr::null::<c_int>();
    // SAFETY: both arrays have that many entries. Without nodes, pages are asked about and left where they are.
    unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            count,
            pages.as_ptr(),
            none,
            nodes.as_mut_ptr(),
            0,
        ) == 0
    }
}

/// Whether a page of this process is in memory.
pub fn resident(page: usize) -> bool {
    if closed() {
        return false;
    }
    let mut there = 0u8;
    // SAFETY: a byte for a page.
    unsafe { libc::mincore(page as *mut c_void, PAGE, &mut there) == 0 && there & 1 != 0 }
}

/// Bytes of a range of whole pages that are in memory.
pub fn resident_bytes(start: usize, end: usize) -> usize {
    if closed() {
        return 0;
    }
    let mut there = [0u8; 4096];
    let mut pages = 0;
    for at in (start..end).step_by(there.len() * PAGE) {
        let bytes = (end - at).min(there.len() * PAGE);
        // SAFETY: a byte for each page of the range.
        if unsafe { libc::mincore(at as *mut _, bytes, there.as_mut_ptr()) } == 0 {
            pages += there[..bytes / PAGE]
                .iter()
                .filter(|p| **p & 1 != 0)
                .count();
        }
    }
    pages * PAGE
}

/// A variable of the environment. The C library's `getenv`, which is at hand before its own start is through.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a C string goes in; what comes out is one that lives in the environment. It is read at the start, before the
    // program can change it.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// The calling thread's `errno` stays what it was.
pub fn keeping_errno<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: the C library's pointer to this thread's errno is valid.
    unsafe {
        let errno = *libc::__errno_location();
        let result = action();
        *libc::__errno_location() = errno;
        result
    }
}

/// A new file of `bytes` bytes, mapped to be written and shared: its address, or 0. The name ends in a zero.
pub fn shared_file(name: &[u8], bytes: usize) -> usize {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
    let (none, offset) = (std::ptr::null_mut::<c_void>(), 0 as c_long);
    // SAFETY: a C string, and a descriptor of ours, which is closed again.
    unsafe {
        let file = libc::open(name.as_ptr().cast(), flags, 0o600);
        if file < 0 {
            return 0;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = match libc::ftruncate(file, bytes as i64) {
            0 => libc::syscall(
                libc::SYS_mmap,
                none,
                bytes,
                protection,
                libc::MAP_SHARED,
                file as c_long,
                offset,
            ),
            _ => 0,
        };
        libc::close(file);
        let at = at.max(0) as usize;
        if at != 0 {
            read_no_more(at, bytes);
        }
        at
    }
}

/// A whole file, mapped to be read: address and bytes.
pub fn map_file(path: &CStr, write: bool) -> Option<(usize, usize)> {
    let (mode, protection, sharing) = if write {
        (
            libc::O_RDWR,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
        )
    } else {
        (libc::O_RDONLY, libc::PROT_READ, libc::MAP_PRIVATE)
    };
    // SAFETY: a descriptor of ours, which is closed again; the structure is filled in by the call before it is read.
    unsafe {
        let file = libc::open(path.as_ptr(), mode | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let mut about: libc::stat = std::mem::zeroed();
        let known = libc::fstat(file, &mut about) == 0 && about.st_size > 0;
        let none = std::ptr::null_mut::<c_void>();
        let bytes = about.st_size as usize;
        let at = if known {
            libc::syscall(
                libc::SYS_mmap,
                none,
                bytes,
                protection,
                sharing,
                file as c_long,
                0 as c_long,
            )
        } else {
            -1
        };
        libc::close(file);
        (at > 0).then_some((at as usize, bytes))
    }
}
