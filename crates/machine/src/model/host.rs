//! Large zeroed arrays that cost the host memory only where they are touched, on huge pages where it has them.

use std::ptr::NonNull;

/// A zeroed byte array.
pub struct Zeroed {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is private to its owner and has no interior mutability.
unsafe impl Send for Zeroed {}
// SAFETY: shared references only read.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// Maps `len` bytes of zeros.
    ///
    /// Panics when the host refuses the address range, which is the same as running out of memory.
    pub fn new(len: usize) -> Zeroed {
        let len = len.max(1);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert!(
            at != libc::MAP_FAILED,
            "the host has no address range of {len} B left for the model's tags"
        );
        // SAFETY: the range was just mapped; the advice has no effect on its contents.
        unsafe { libc::madvise(at, len, libc::MADV_HUGEPAGE) };
        Zeroed {
            at: NonNull::new(at.cast()).expect("mmap never maps address 0 here"),
            len,
        }
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `at` points to `len` mapped, initialized (zero) bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the slice unique.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no slice of it outlives `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}
