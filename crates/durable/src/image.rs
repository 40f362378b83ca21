//! A region's bytes: a file that is mapped, or memory.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The bytes of a region. They are reached by offsets from the file's first byte; all accesses are checked against the bytes that are there.
pub struct Image {
    base: *mut u8,
    len: u64,
    /// Bytes up to which the image can grow in its place.
    capacity: u64,
    backing: Backing,
}

enum Backing {
    Memory(#[allow(dead_code)] Vec<u64>),
    Mapped { file: File, flags: libc::c_int },
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
        }
    }

    /// An empty image at addresses that belong to somebody else.
    ///
    /// # Safety
    /// `capacity` bytes at `at` can be read and written by nobody else while the image lives.
    pub unsafe fn at(at: *mut u8, capacity: u64) -> Image {
        Image {
            base: at,
            len: 0,
            capacity,
            backing: Backing::Memory(Vec::new()),
        }
    }

    /// A file, mapped over `capacity` bytes of reserved addresses at `at`. `synchronous` asks that stores which were written back from the
    /// processor's caches are in the medium.
    ///
    /// # Errors
    /// What the system says: `EOPNOTSUPP` if the file's medium is none that caches write back to.
    ///
    /// # Safety
    /// The addresses are reserved, whole pages, used by nobody else, and outlive the image.
    pub unsafe fn map(
        file: File,
        at: *mut u8,
        capacity: u64,
        synchronous: bool,
    ) -> io::Result<Image> {
        let len = file.metadata()?.len();
        let mut image = Image::unmapped(file, at, capacity, synchronous);
        image.map_up_to(len)?;
        Ok(image)
    }

    /// A file of which nothing is mapped yet.
    pub(crate) fn unmapped(file: File, at: *mut u8, capacity: u64, synchronous: bool) -> Image {
        let flags = match synchronous {
            true => libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
            false => libc::MAP_SHARED,
        };
        Image {
            base: at,
            len: 0,
            capacity,
            backing: Backing::Mapped { file, flags },
        }
    }

    /// Maps what the file has beyond what is mapped.
    fn map_up_to(&mut self, len: u64) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let Backing::Mapped { file, flags, .. } = &self.backing else {
            unreachable!("memory is there")
        };
        let from = self.len & !4095;
        // SAFETY: inside of the addresses that the image was lent; what is mapped there already is mapped to the same bytes.
        let mapped = unsafe {
            libc::mmap(
                self.base.add(from as usize).cast(),
                (len - from) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_FIXED,
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
        let Backing::Mapped { file, .. } = &self.backing else {
            self.len = len;
            return Ok(());
        };
        reserve(file, self.len, len)?;
        self.map_up_to(len)
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&File> {
        match &self.backing {
            Backing::Mapped { file, .. } => Some(file),
            Backing::Memory(_) => None,
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

    /// Copies bytes out.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.address(offset, into.len() as u64);
        // SAFETY: checked; `into` is somebody else's memory.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Bytes at an offset, copied.
    pub fn bytes(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let mut copy = vec![0; bytes as usize];
        self.read(offset, &mut copy);
        copy
    }

    /// Copies bytes in.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        let to = self.address(offset, from.len() as u64);
        // SAFETY: checked; `from` is somebody else's memory.
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
        let at = self.address(offset, 8);
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

impl Drop for Image {
    fn drop(&mut self) {
        if matches!(self.backing, Backing::Mapped { .. }) && self.len > 0 {
            // SAFETY: the addresses stay reserved, as they were lent, and lose what was mapped there.
            unsafe {
                libc::mmap(
                    self.base.cast(),
                    self.len as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                    -1,
                    0,
                );
            }
        }
    }
}
