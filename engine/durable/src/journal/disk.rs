//! The few operations of a journal on its file. Tests implement them in memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Why a journal waits for the medium. Tests leave single ones out, to see that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Sync {
    /// The file has another length.
    Length,
    /// A transaction is to be there.
    Committed,
    /// The changes of transactions must be in place before the transactions are dropped.
    InPlace,
    /// Bytes that the region has just gained must be zero before anything is stored there.
    Cleared,
    /// Where the journal is, and from which transaction on it counts, was written.
    Placed,
}

/// A file, as its journal uses it.
pub trait Disk: Send {
    /// Its bytes.
    ///
    /// # Errors
    /// The system's error, here and below.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has none.
    ///
    /// # Errors
    /// As above.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads bytes, all of which are there.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes bytes where there are some.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until all that was written is in the medium.
    fn sync(&mut self, why: Sync) -> io::Result<()>;

    /// Extends the file to at least `bytes` bytes, allocated on the medium; new ones are zero.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;

    /// Truncates the file to at most `bytes` bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Disk for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self, _: Sync) -> io::Result<()> {
        self.sync_data()
    }

    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let held = Disk::len(self)?;
        if bytes <= held {
            return Ok(());
        }
        let (from, more) = (held as libc::off_t, (bytes - held) as libc::off_t);
        // SAFETY: a call without memory.
        match unsafe { libc::posix_fallocate(self.as_raw_fd(), from, more) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}
