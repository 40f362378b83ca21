//! Memory for machine code: one range that is written through one mapping and run through another, so that no page is
//! writable and executable at once.

use crate::error::{Error, Result};
use std::ptr;

/// Bytes of code that a store can hold. Within this, all calls between code reach.
const CODE_BYTES: usize = 256 << 20;
/// Pieces of code start at multiples of this: as many bytes as the longest constant in them.
const ALIGN: usize = 32;

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

/// Two mappings of the same memory, to write and to run.
type Mappings = (*mut libc::c_void, *mut libc::c_void);

fn of_file() -> Result<Mappings> {
    // SAFETY: a fresh anonymous file, mapped twice at addresses that the kernel chooses; both mappings are kept until drop.
    unsafe {
        let fd = libc::memfd_create(c"varve-code".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(failed("memfd_create"));
        }
        let map = |protection| {
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), CODE_BYTES, protection, flags, fd, 0)
        };
        let (mut write, mut run) = (libc::MAP_FAILED, libc::MAP_FAILED);
        if libc::ftruncate(fd, CODE_BYTES as libc::off_t) == 0 {
            write = map(libc::PROT_READ | libc::PROT_WRITE);
            run = map(libc::PROT_READ | libc::PROT_EXEC);
        }
        libc::close(fd);
        match write == libc::MAP_FAILED || run == libc::MAP_FAILED {
            true => Err(failed("mmap")),
            false => Ok((write, run)),
        }
    }
}

/// Valgrind knows no second mapping of this kind, so it is not the usual one.
fn anonymous() -> Result<Mappings> {
    // SAFETY: fresh shared memory, and a second mapping of it (which is what an old size of 0 asks for), both at addresses that the
    // kernel chooses and kept until drop.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let write = libc::mmap(ptr::null_mut(), CODE_BYTES, protection, flags, -1, 0);
        if write == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        let run = libc::mremap(write, 0, CODE_BYTES, libc::MREMAP_MAYMOVE);
        if run == libc::MAP_FAILED {
            return Err(failed("mremap"));
        }
        match libc::mprotect(run, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC) {
            0 => Ok((write, run)),
            _ => Err(failed("mprotect")),
        }
    }
}

impl CodeMemory {
    /// With `named`, the kernel calls it anonymous memory: only then does `perf` use names of functions in it.
    pub fn new(named: bool) -> Result<CodeMemory> {
        let (write, run) = if named { anonymous() } else { of_file() }?;
        Ok(CodeMemory {
            write: write.cast(),
            run: run.cast(),
            used: 0,
        })
    }

    /// Range of addresses that code runs at.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.run as usize..self.run as usize + CODE_BYTES
    }

    /// Where the next code will run.
    pub fn next(&self) -> *const u8 {
        self.run.wrapping_add(self.used.next_multiple_of(ALIGN))
    }

    /// The bytes of a piece of code, from the address that it runs at.
    ///
    /// Panics if there was never code.
    pub fn bytes(&self, start: usize, len: usize) -> &[u8] {
        let at = start - self.run as usize;
        assert!(at + len <= self.used, "code that was added");
        // SAFETY: the range was written before, is mapped to be read, and never changes.
        unsafe { std::slice::from_raw_parts(self.run.add(at), len) }
    }

    /// Copies code in; the result is where it runs, [`CodeMemory::next`] as it was before.
    pub fn add(&mut self, code: &[u8]) -> Result<*const u8> {
        let at = self.used.next_multiple_of(ALIGN);
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
