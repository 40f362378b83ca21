//! Memory for machine code: one range that is written through one mapping and run through another, so that no page is
//! writable and executable at once.

use crate::error::{Error, Result};
use std::ptr;

/// Bytes of code that a store can hold. Within this, all calls between code reach.
const CODE_BYTES: usize = 256 << 20;

pub(crate) struct CodeMemory {
    write: *mut u8,
    run: *mut u8,
    used: usize,
}

fn failed(what: &str) -> Error {
    Error::System(format!(
        "no memory for code ({what}): {}",
        std::io::Error::last_os_error()
    ))
}

impl CodeMemory {
    pub fn new() -> Result<CodeMemory> {
        // SAFETY: a fresh anonymous file, mapped twice at addresses that the kernel chooses; both mappings are kept
        // until drop.
        unsafe {
            let fd = libc::memfd_create(c"varve-code".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(failed("memfd_create"));
            }
            let map = |protection| {
                libc::mmap(
                    ptr::null_mut(),
                    CODE_BYTES,
                    protection,
                    libc::MAP_SHARED | libc::MAP_NORESERVE,
                    fd,
                    0,
                )
            };
            let sized = libc::ftruncate(fd, CODE_BYTES as libc::off_t) == 0;
            let write = if sized {
                map(libc::PROT_READ | libc::PROT_WRITE)
            } else {
                libc::MAP_FAILED
            };
            let run = if sized {
                map(libc::PROT_READ | libc::PROT_EXEC)
            } else {
                libc::MAP_FAILED
            };
            libc::close(fd);
            if write == libc::MAP_FAILED || run == libc::MAP_FAILED {
                return Err(failed("mmap"));
            }
            Ok(CodeMemory {
                write: write.cast(),
                run: run.cast(),
                used: 0,
            })
        }
    }

    /// Range of addresses that code runs at.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.run as usize..self.run as usize + CODE_BYTES
    }

    /// Where the next code will run, if it is aligned to 16.
    pub fn next(&self) -> *const u8 {
        self.run.wrapping_add(self.used.next_multiple_of(16))
    }

    /// Copies code in; the result is where it runs, [`CodeMemory::next`] as it was before.
    pub fn add(&mut self, code: &[u8]) -> Result<*const u8> {
        let at = self.used.next_multiple_of(16);
        if at + code.len() > CODE_BYTES {
            return Err(Error::System(
                "no memory for code: the store's code is larger than 256 MiB".into(),
            ));
        }
        // SAFETY: `at..at + len` lies in the writable mapping, and no code that runs was ever put there.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.write.add(at), code.len()) };
        self.used = at + code.len();
        Ok(self.run.wrapping_add(at))
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: both ranges were mapped by `new`, and the store that runs the code is gone.
        unsafe {
            libc::munmap(self.write.cast(), CODE_BYTES);
            libc::munmap(self.run.cast(), CODE_BYTES);
        }
    }
}
