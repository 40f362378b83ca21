//! Frame numbers from `/proc/PID/pagemap`.

use super::bins::PAGE;
use super::error::PlaceError;
use std::fs::File;
use std::os::unix::fs::FileExt;

// Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
const FRAME: u64 = (1 << 55) - 1;

/// One entry of a page map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Is the page in memory?
    pub fn present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// Is it a page of a file or of shared memory?
    pub fn is_file(self) -> bool {
        self.0 & FILE != 0
    }

    /// Has no other process it mapped?
    pub fn is_exclusive(self) -> bool {
        self.0 & EXCLUSIVE != 0
    }

    /// Its frame number; `None` when the page is not in memory, or the kernel hides the number (it then
    /// shows zero, which is never the frame of a program's page).
    pub fn frame(self) -> Option<u64> {
        (self.present() && self.0 & FRAME != 0).then_some(self.0 & FRAME)
    }

    /// The page is in memory, and its frame number is hidden from the reader.
    pub fn hidden(self) -> bool {
        self.present() && self.0 & FRAME == 0
    }
}

/// The page map of one process.
pub struct Pagemap {
    file: File,
}

impl Pagemap {
    /// The caller's own.
    ///
    /// # Errors
    /// [`PlaceError::System`] when /proc is not mounted or may not be read.
    pub fn own() -> Result<Pagemap, PlaceError> {
        Pagemap::open("/proc/self/pagemap")
    }

    /// That of process `pid`; needs the right to trace it.
    ///
    /// # Errors
    /// [`PlaceError::System`] when the process is gone or may not be read.
    pub fn of(pid: u32) -> Result<Pagemap, PlaceError> {
        Pagemap::open(&format!("/proc/{pid}/pagemap"))
    }

    fn open(path: &str) -> Result<Pagemap, PlaceError> {
        let file =
            File::open(path).map_err(|e| PlaceError::System("cannot read /proc/PID/pagemap", e))?;
        Ok(Pagemap { file })
    }

    /// Calls `each(index, entry)` for the `pages` pages from address `start` on.
    ///
    /// # Errors
    /// [`PlaceError::System`] when the read fails; a process that has ended reads as an error too.
    pub fn read(
        &self,
        start: usize,
        pages: usize,
        mut each: impl FnMut(usize, Entry),
    ) -> Result<(), PlaceError> {
        const CHUNK: usize = 4096; // entries: 32 KiB, covers 16 MiB
        let mut bytes = vec![0u8; CHUNK.min(pages) * 8];
        let mut done = 0;
        while done < pages {
            let now = CHUNK.min(pages - done);
            let offset = (start / PAGE + done) as u64 * 8;
            self.file
                .read_exact_at(&mut bytes[..now * 8], offset)
                .map_err(|e| PlaceError::System("cannot read /proc/PID/pagemap", e))?;
            for (i, raw) in bytes[..now * 8].as_chunks::<8>().0.iter().enumerate() {
                each(done + i, Entry(u64::from_ne_bytes(*raw)));
            }
            done += now;
        }
        Ok(())
    }

    /// The file, for `ioctl`s on it.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Can this process read frame numbers? Looks at the page of a local variable, which is in memory.
///
/// # Errors
/// [`PlaceError::Hidden`] when the number is hidden, [`PlaceError::System`] when the page map cannot be read.
pub fn frames_readable() -> Result<(), PlaceError> {
    let probe = 1u8;
    let address = std::hint::black_box(&raw const probe) as usize;
    let mut hidden = false;
    Pagemap::own()?.read(address / PAGE * PAGE, 1, |_, entry| {
        hidden = entry.frame().is_none()
    })?;
    if hidden {
        Err(PlaceError::Hidden)
    } else {
        Ok(())
    }
}
