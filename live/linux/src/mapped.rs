//! Memory of our own, in whole pages.

use std::io;
use std::ptr;

/// Untouched pages; unmapped when dropped.
#[derive(Debug)]
pub struct Mapped {
    start: usize,
    bytes: usize,
}

impl Mapped {
    /// Maps this number of bytes.
    ///
    /// # Errors
    /// The system has no more memory or addresses.
    pub fn new(bytes: usize) -> io::Result<Mapped> {
        Mapped::with(bytes, 0)
    }

    /// Maps this number of bytes, without reserving memory for them.
    ///
    /// # Errors
    /// As [`Mapped::new`].
    pub fn unreserved(bytes: usize) -> io::Result<Mapped> {
        Mapped::with(bytes, libc::MAP_NORESERVE)
    }

    fn with(bytes: usize, flags: i32) -> io::Result<Mapped> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: a new anonymous mapping at an address that the system chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, prot, flags, -1, 0) };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(Mapped {
                start: start.expose_provenance(),
                bytes,
            }),
        }
    }

    /// Where it begins.
    pub fn start(&self) -> usize {
        self.start
    }

    /// All of it.
    pub fn all(&mut self) -> &mut [u8] {
        // SAFETY: the mapping, which the system has zeroed, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.bytes) }
    }

    /// Its start, for writing.
    pub fn as_ptr<T>(&self) -> *mut T {
        ptr::with_exposed_provenance_mut(self.start)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `with`, and there is no reference into it.
        unsafe { libc::munmap(self.as_ptr(), self.bytes) };
    }
}
