//! A region's bytes: a file that is mapped, or memory.

use crate::arch;
use crate::snapshot::Watch;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The bytes of a region. They are reached by offsets from the file's first byte; all accesses are checked against the bytes that are there.
pub struct Image {
    base: *mut u8,
    len: u64,
    /// Bytes up to which the image can grow in its place.
    capacity: u64,
    backing: Backing,
    /// Shared with the thread that copies the image while it is stored to.
    watch: Arc<Watch>,
}

enum Backing {
    Memory(#[allow(dead_code)] Vec<u64>),
    Mapped {
        file: File,
        mapping: Mapping,
    },
    /// Bytes of a file that are this process's own once they are written to.
    Private {
        bytes: u64,
    },
}

/// How a file is mapped.
#[derive(Clone, Copy)]
pub(crate) enum Mapping {
    /// Writes are in the file once the system writes them back.
    Shared,
    /// Lines written back from the processor's caches are in the medium.
    Synchronous,
    /// Writes stay in this process.
    Private,
}

impl Mapping {
    fn flags(self) -> libc::c_int {
        match self {
            Mapping::Shared => libc::MAP_SHARED,
            Mapping::Synchronous => libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
            Mapping::Private => libc::MAP_PRIVATE | libc::MAP_NORESERVE,
        }
    }
}

// SAFETY: the image owns its bytes, or was lent them for itself alone.
unsafe impl Send for Image {}

impl Image {
    /// An image in memory that holds `bytes` and can grow to `capacity`.
    pub fn memory(bytes: &[u8], capacity: u64) -> Image {
        let capacity = capacity.max(bytes.len() as u64).next_multiple_of(8);
        let mut words = vec![0u64; (capacity / 8) as usize];
        let base = words.as_mut_ptr().cast::<u8>();
        // SAFETY: the words were just allocated, and have room for the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base, bytes.len()) };
        Image {
            base,
            len: bytes.len() as u64,
            capacity,
            backing: Backing::Memory(words),
            watch: Arc::default(),
        }
    }

    /// An empty image at addresses that the caller owns.
    ///
    /// # Safety
    /// `capacity` bytes at `at` can be read and written, and no other code uses them while the image lives.
    pub unsafe fn at(at: *mut u8, capacity: u64) -> Image {
        Image {
            base: at,
            len: 0,
            capacity,
            backing: Backing::Memory(Vec::new()),
            watch: Arc::default(),
        }
    }

    /// A file, mapped over `capacity` bytes of reserved addresses at `at`. `synchronous` asks that stores which were written back from the
    /// processor's caches are in the medium.
    ///
    /// # Errors
    /// The system's error: `EOPNOTSUPP` if processor caches do not write back to the file's medium.
    ///
    /// # Safety
    /// The addresses are reserved, whole pages, not used by other code, and outlive the image.
    pub unsafe fn map(
        file: File,
        at: *mut u8,
        capacity: u64,
        synchronous: bool,
    ) -> io::Result<Image> {
        let mapping = match synchronous {
            true => Mapping::Synchronous,
            false => Mapping::Shared,
        };
        Image::unmapped(file, at, capacity, mapping).map_all()
    }

    /// The same, but writes stay in this process: the image's owner writes them to the file, and extends the file before the image grows.
    ///
    /// # Errors
    /// The system's error.
    ///
    /// # Safety
    /// As [`Image::map`].
    pub(crate) unsafe fn map_private(file: File, at: *mut u8, capacity: u64) -> io::Result<Image> {
        Image::unmapped(file, at, capacity, Mapping::Private).map_all()
    }

    /// A private view of a file's bytes: writes to it stay in this process.
    ///
    /// # Errors
    /// The system's error.
    pub fn private(file: &File) -> io::Result<Image> {
        use std::os::fd::AsRawFd;
        let len = file.metadata()?.len();
        let mut image = Image::memory(&[], 0);
        if len == 0 {
            return Ok(image);
        }
        // SAFETY: a new mapping where the system likes. A file that another process truncates meanwhile ends this process, as documented.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        (image.base, image.len, image.capacity) = (at.cast(), len, len);
        image.backing = Backing::Private { bytes: len };
        Ok(image)
    }

    /// A file that is being written, mapped where the system likes: it can grow to `capacity`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn of_new_file(file: File, capacity: u64) -> io::Result<(Image, Reservation)> {
        let reservation = Reservation::new(capacity)?;
        let image = Image::unmapped(file, reservation.at, capacity, Mapping::Shared);
        Ok((image, reservation))
    }

    /// A file of which nothing is mapped yet.
    pub(crate) fn unmapped(file: File, at: *mut u8, capacity: u64, mapping: Mapping) -> Image {
        Image {
            base: at,
            len: 0,
            capacity,
            backing: Backing::Mapped { file, mapping },
            watch: Arc::default(),
        }
    }

    /// Maps all that the file has.
    pub(crate) fn map_all(mut self) -> io::Result<Image> {
        if let Backing::Mapped { file, .. } = &self.backing {
            let len = file.metadata()?.len();
            self.map_up_to(len)?;
        }
        Ok(self)
    }

    /// Maps the bytes of the file beyond the mapped ones.
    fn map_up_to(&mut self, len: u64) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let Backing::Mapped { file, mapping, .. } = &self.backing else {
            unreachable!("memory is there")
        };
        if len > self.capacity {
            let what = "it is longer than a region of its kind can be";
            return Err(io::Error::other(what));
        }
        // The page that a file ends in is mapped as a whole; of a private one, what was written to it must stay.
        let from = match mapping {
            Mapping::Shared | Mapping::Synchronous => self.len & !4095,
            Mapping::Private => self.len.next_multiple_of(4096),
        };
        if from >= len {
            self.len = len;
            return Ok(());
        }
        // SAFETY: inside of the addresses that the image was lent; existing mappings there are mapped to the same bytes.
        let mapped = unsafe {
            libc::mmap(
                self.base.add(from as usize).cast(),
                (len - from) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                mapping.flags() | libc::MAP_FIXED,
                file.as_raw_fd(),
                from as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.len = len;
        Ok(())
    }

    /// Makes the image longer; the new bytes are zero. The medium has room for them afterwards.
    ///
    /// # Errors
    /// If the medium is full, or the image cannot grow so far in its place.
    pub fn grow(&mut self, len: u64) -> io::Result<()> {
        if len > self.capacity {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if len <= self.len {
            return Ok(());
        }
        match &self.backing {
            Backing::Mapped { file, mapping } => match mapping {
                Mapping::Shared | Mapping::Synchronous => reserve(file, self.len, len)?,
                // The image's owner has extended the file.
                Mapping::Private => {}
            },
            Backing::Memory(_) => {
                self.len = len;
                self.watch.grown(len);
                return Ok(());
            }
            Backing::Private { .. } => return Err(io::ErrorKind::Unsupported.into()),
        }
        self.map_up_to(len)?;
        self.watch.grown(len);
        Ok(())
    }

    /// Gives the blocks of whole pages back to the file system: they are zero from now on. Returns whether the file system supports that. Writes to
    /// them are already in the file, and their contents are no longer needed.
    pub(crate) fn punch(&mut self, from: u64, to: u64) -> bool {
        use std::os::fd::AsRawFd;
        // A running copy of the image saves the old contents first.
        let at = self.place_to_write(from, to - from);
        let Backing::Mapped { file, mapping } = &self.backing else {
            return false;
        };
        // SAFETY: a call without memory.
        let failed = unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                from as libc::off_t,
                (to - from) as libc::off_t,
            )
        };
        if failed != 0 {
            return false;
        }
        if let Mapping::Private = mapping {
            // SAFETY: whole pages of a private mapping of the file: the next read finds the file's zeroes.
            unsafe { libc::madvise(at.cast(), (to - from) as usize, libc::MADV_DONTNEED) };
        }
        true
    }

    /// Gives bytes of a hole blocks.
    ///
    /// # Errors
    /// If the medium is full.
    pub(crate) fn fill(&self, from: u64, to: u64) -> io::Result<()> {
        match &self.backing {
            Backing::Mapped { file, .. } => reserve(file, from, to),
            _ => Ok(()),
        }
    }

    /// Where the file has no blocks, or none that were ever written: from and to.
    pub(crate) fn holes(&self) -> Vec<(u64, u64)> {
        use std::os::fd::AsRawFd;
        let Some(file) = self.file() else {
            return Vec::new();
        };
        // SAFETY: a call without memory. No other code uses the descriptor's position.
        let seek =
            |at: u64, whence| unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, whence) };
        let (mut holes, mut at) = (Vec::new(), 0);
        while at < self.len {
            let Ok(hole) = u64::try_from(seek(at, libc::SEEK_HOLE)) else {
                break;
            };
            // Behind the last data there is none.
            let end = u64::try_from(seek(hole, libc::SEEK_DATA)).unwrap_or(self.len);
            if hole < self.len {
                holes.push((hole, end.min(self.len)));
            }
            at = end.max(hole + 1);
        }
        holes
    }

    /// Makes the image shorter.
    pub(crate) fn shrink(&mut self, len: u64) -> io::Result<()> {
        if len < self.len {
            if let Backing::Mapped { file, .. } = &self.backing {
                file.set_len(len)?;
            }
            self.len = len;
        }
        Ok(())
    }

    /// Knows nothing of the bytes from an offset on, in memory that is this process's own: they are none of the region's.
    pub(crate) fn forget_from(&mut self, len: u64) {
        debug_assert!(!matches!(self.backing, Backing::Mapped { .. }));
        self.len = self.len.min(len);
    }

    /// Reports all writes to `watch` from now on.
    pub(crate) fn watched(&mut self, watch: Arc<Watch>) {
        watch.grown(self.len);
        self.watch = watch;
    }

    /// Before bytes are written.
    #[inline(always)]
    fn before_write(&self, offset: u64, bytes: u64) {
        if self.watch.is_copying() {
            self.watch.keep(self.base, offset, bytes);
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&File> {
        match &self.backing {
            Backing::Mapped { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Bytes that are there.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that can be there.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    fn check(&self, offset: u64, bytes: u64) {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.len),
            "{bytes} bytes at {offset:#x} are outside of the region's {:#x}",
            self.len
        );
    }

    /// The address of `bytes` bytes at an offset.
    pub fn address(&self, offset: u64, bytes: u64) -> *mut u8 {
        self.check(offset, bytes);
        self.base.wrapping_add(offset as usize)
    }

    /// Prefetches the bytes at an offset, if they exist: they will be needed soon.
    #[inline]
    pub(crate) fn fetch(&self, offset: u64) {
        if offset < self.len {
            arch::fetch(self.base.wrapping_add(offset as usize));
        }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.address(offset, into.len() as u64);
        // SAFETY: checked; `into` does not overlap the image.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Bytes at an offset, copied.
    pub fn bytes(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let mut copy = vec![0; bytes as usize];
        self.read(offset, &mut copy);
        copy
    }

    /// Where `bytes` bytes at an offset can be written, once a running copy of the image has saved the old contents.
    pub(crate) fn place_to_write(&mut self, offset: u64, bytes: u64) -> *mut u8 {
        let to = self.address(offset, bytes);
        self.before_write(offset, bytes);
        to
    }

    /// Copies bytes in.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        let to = self.place_to_write(offset, from.len() as u64);
        // SAFETY: checked; `from` does not overlap the image.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// The 4 bytes at a multiple of 4.
    pub fn u32(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// The 8 bytes at an offset.
    pub fn u64(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Writes 8 bytes at a multiple of 8 as one: all of them are in the medium after a crash, or none.
    pub fn set_u64(&mut self, offset: u64, value: u64) {
        assert!(offset.is_multiple_of(8));
        let at = self.place_to_write(offset, 8);
        // SAFETY: checked, and aligned as the base is.
        unsafe { AtomicU64::from_ptr(at.cast()) }.store(value.to_le(), Relaxed);
    }

    /// All bytes, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(0, self.len)
    }
}

/// Makes the medium have room for a file's bytes: a store into a mapped hole of a full medium would end the process.
fn reserve(file: &File, from: u64, to: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: a call without memory.
    let failed = unsafe {
        libc::posix_fallocate(
            file.as_raw_fd(),
            from as libc::off_t,
            (to - from) as libc::off_t,
        )
    };
    match failed {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Addresses that nothing is mapped at.
pub(crate) struct Reservation {
    at: *mut u8,
    bytes: u64,
}

impl Reservation {
    fn new(bytes: u64) -> io::Result<Reservation> {
        // SAFETY: a new mapping where the system likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Reservation {
                at: at.cast(),
                bytes,
            }),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the owner drops an image at these addresses first.
        unsafe { libc::munmap(self.at.cast(), self.bytes as usize) };
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Backing::Private { bytes } = self.backing {
            // SAFETY: mapped by `private`, and this is its only owner.
            unsafe { libc::munmap(self.base.cast(), bytes as usize) };
        }
        if matches!(self.backing, Backing::Mapped { .. }) && self.capacity > 0 {
            // SAFETY: the addresses stay reserved, as they were lent, and lose what was mapped there.
            unsafe {
                libc::mmap(
                    self.base.cast(),
                    self.capacity as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                    -1,
                    0,
                );
            }
        }
    }
}
