//! The stack that compiled code runs on.

use crate::error::{Error, Result};
use std::ops::Range;

/// Bytes that host functions may use below the limit of compiled code.
const MARGIN: usize = 1 << 20;
/// Bytes above them for code that makes an exception because the rest is full.
const LAST: usize = 512 << 10;
/// Bytes at the end that are never mapped.
const GUARD: usize = 1 << 20;

pub(crate) struct Stack {
    start: *mut u8,
    bytes: usize,
}

impl Stack {
    /// A stack that gives compiled code `size` bytes.
    pub fn new(size: usize) -> Result<Stack> {
        let bytes = size.next_multiple_of(4096) + LAST + MARGIN + GUARD;
        // SAFETY: a fresh mapping, kept until drop.
        let start = unsafe {
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
            let p = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            if p == libc::MAP_FAILED || libc::mprotect(p, GUARD, libc::PROT_NONE) != 0 {
                let e = std::io::Error::last_os_error();
                return Err(Error::System(format!(
                    "no memory for a stack of {bytes} bytes: {e}"
                )));
            }
            p.cast::<u8>()
        };
        Ok(Stack { start, bytes })
    }

    pub fn top(&self) -> usize {
        self.start as usize + self.bytes
    }

    pub fn limit(&self) -> usize {
        self.last_limit() + LAST
    }

    /// The limit for code that makes an exception because the rest is full.
    pub fn last_limit(&self) -> usize {
        self.start as usize + GUARD + MARGIN
    }

    /// Where the handling of an overflow runs: below all frames but the one that overflowed. `last`: for the code that makes an exception.
    pub fn overflow_start(&self, last: bool) -> usize {
        let limit = if last {
            self.last_limit()
        } else {
            self.limit()
        };
        limit - (64 << 10)
    }

    pub fn guard(&self) -> Range<usize> {
        self.start as usize..self.start as usize + GUARD
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; no code runs on it any more, since running borrows the store.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
