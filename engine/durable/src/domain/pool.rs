//! Bytes of a file with the medium that it is on, for callers that keep data of their own there: mapped, and written back line by line.

use super::{CacheLines, Domain, Fence, FileSync};
use crate::file::Medium;
use crate::name::own_any;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file that is mapped as a whole, or memory that nothing survives in.
pub struct Pool {
    base: *mut u8,
    /// Bytes that may be accessed.
    len: u64,
    /// Bytes that are mapped: accesses beyond the file's end would fault, and are refused.
    capacity: u64,
    /// Locked.
    file: Option<File>,
    domain: Box<dyn Domain>,
}

// SAFETY: the mapping is this pool's alone.
unsafe impl Send for Pool {}

/// No medium at all.
struct Nowhere;

impl Domain for Nowhere {
    fn name(&self) -> &'static str {
        "none"
    }

    fn write_back(&mut self, _: *const u8, _: u64) {}

    fn fence(&mut self, _: Fence) -> io::Result<()> {
        Ok(())
    }
}

impl Pool {
    /// Opens or creates a file that may grow to `capacity` bytes, locks it, and maps it as its medium wants it.
    ///
    /// # Errors
    /// The system's error, or that another process has the file.
    pub fn open(path: &Path, medium: Medium, capacity: u64) -> io::Result<Pool> {
        let file = own_any(path).map_err(|e| io::Error::other(e.to_string()))?;
        let synchronous = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
        let dax = || map(Some(&file), capacity, synchronous);
        let shared = || map(Some(&file), capacity, libc::MAP_SHARED);
        let lines = |name| Box::new(CacheLines::new(name)) as Box<dyn Domain>;
        let synced = |interval| -> io::Result<Box<dyn Domain>> {
            Ok(Box::new(FileSync::new(file.try_clone()?, interval)?))
        };
        let (base, domain) = match medium {
            Medium::Dax => (dax()?, lines("dax")),
            Medium::Memory => (shared()?, lines("memory")),
            Medium::File(interval) => (shared()?, synced(interval)?),
            Medium::Best => match dax() {
                Ok(base) => (base, lines("dax")),
                Err(_) => (shared()?, synced(None)?),
            },
        };
        Ok(Pool {
            base,
            len: file.metadata()?.len().min(capacity),
            capacity,
            file: Some(file),
            domain,
        })
    }

    /// Memory that may grow to `capacity` bytes, and is gone with the process.
    ///
    /// # Errors
    /// The system's error.
    pub fn volatile(capacity: u64) -> io::Result<Pool> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Ok(Pool {
            base: map(None, capacity, flags)?,
            len: 0,
            capacity,
            file: None,
            domain: Box::new(Nowhere),
        })
    }

    /// Bytes that are there.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Makes the pool longer; the new bytes are zero.
    ///
    /// # Errors
    /// If the medium is full, or `OutOfMemory` beyond the capacity.
    pub fn grow(&mut self, len: u64) -> io::Result<()> {
        if len > self.capacity {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if len <= self.len {
            return Ok(());
        }
        if let Some(file) = &self.file {
            let (from, bytes) = (self.len as libc::off_t, (len - self.len) as libc::off_t);
            // SAFETY: a call without memory. A hole would end the process if it were stored into on a full medium.
            let failed = unsafe { libc::posix_fallocate(file.as_raw_fd(), from, bytes) };
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
        }
        self.len = len;
        self.domain.grown(len);
        Ok(())
    }

    fn place(&self, at: u64, bytes: u64) -> *mut u8 {
        assert!(
            at.checked_add(bytes).is_some_and(|end| end <= self.len),
            "{bytes} bytes at {at:#x} are outside of the pool's {:#x}",
            self.len
        );
        self.base.wrapping_add(at as usize)
    }

    /// Bytes at an offset.
    pub fn bytes(&self, at: u64, bytes: u64) -> &[u8] {
        // SAFETY: checked; the mapping lives as long as the pool, which no caller changes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.place(at, bytes), bytes as usize) }
    }

    /// Copies bytes in. They are in the medium after [`Pool::write_back`] and [`Pool::fence`].
    pub fn write(&mut self, at: u64, from: &[u8]) {
        let to = self.place(at, from.len() as u64);
        // SAFETY: checked; `from` is other memory, as the pool is borrowed for itself.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// The number at a multiple of 8.
    pub fn u64(&self, at: u64) -> u64 {
        let bytes = self.bytes(at, 8);
        u64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }

    /// Writes a number at a multiple of 8 as one: all of it is in the medium after a crash, or nothing.
    pub fn set_u64(&mut self, at: u64, value: u64) {
        assert!(at.is_multiple_of(8));
        let to = self.place(at, 8).cast::<u64>();
        // SAFETY: checked, and aligned as the mapping is.
        unsafe { to.write_volatile(value.to_le()) };
    }

    /// Has bytes written back.
    pub fn write_back(&mut self, at: u64, bytes: u64) {
        let from = self.place(at, bytes);
        self.domain.write_back(from, bytes);
    }

    /// Waits until all bytes written back are in the medium.
    ///
    /// # Errors
    /// If the system says that it cannot write.
    pub fn fence(&mut self, why: Fence) -> io::Result<()> {
        self.domain.fence(why)
    }
}

fn map(file: Option<&File>, capacity: u64, flags: libc::c_int) -> io::Result<*mut u8> {
    let bytes = usize::try_from(capacity).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // SAFETY: at an address that the system chooses, where nothing was.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file.map_or(-1, |f| f.as_raw_fd()),
            0,
        )
    };
    match base == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(base.cast()),
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no reference into it is left.
        unsafe { libc::munmap(self.base.cast(), self.capacity as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        for medium in [Medium::Memory, Medium::File(None)] {
            let mut pool = Pool::open(&path, medium, 1 << 20).unwrap();
            let begin = pool.len();
            pool.grow(begin + 8192).unwrap();
            pool.set_u64(begin, 7);
            pool.write(begin + 60, b"across a line");
            pool.write_back(begin, 73);
            pool.fence(Fence::Stored).unwrap();
            assert!(Pool::open(&path, medium, 1 << 20).is_err(), "locked");
            drop(pool);
            let pool = Pool::open(&path, medium, 1 << 20).unwrap();
            assert_eq!(pool.u64(begin), 7);
            assert_eq!(pool.bytes(begin + 60, 13), b"across a line");
        }
        let mut pool = Pool::volatile(8192).unwrap();
        pool.grow(8192).unwrap();
        assert_eq!(pool.u64(8184), 0);
        let beyond = pool.grow(8193).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::OutOfMemory);
    }
}
