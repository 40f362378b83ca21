//! Services of the host for the model: large zeroed arrays that cost memory only where they are touched, on huge pages
//! where it has them, and code for the processor that it runs on (see `arch`).

use std::ptr::NonNull;

/// A zeroed byte array. It begins at a multiple of 4 KiB, or of 2 MiB when it is at least as long.
pub struct Zeroed {
    at: NonNull<u8>,
    len: usize,
    /// The mapping that it lies in.
    mapping: *mut libc::c_void,
    mapped: usize,
}

/// A huge page of the host.
const HUGE: usize = 2 << 20;

// SAFETY: the mapping is private to its owner and has no interior mutability.
unsafe impl Send for Zeroed {}
// SAFETY: shared references only read.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// Maps `len` bytes of zeros.
    ///
    /// Panics when the host refuses the address range, which is the same as running out of memory.
    pub fn new(len: usize) -> Zeroed {
        // A whole number of words, and room to begin at a huge page.
        let (len, mapped) = if len >= HUGE {
            let len = len.next_multiple_of(HUGE);
            (len, len + HUGE)
        } else {
            let len = len.max(1).next_multiple_of(8);
            (len, len)
        };
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert!(
            mapping != libc::MAP_FAILED,
            "the host has no address range of {len} B left for the model's tags"
        );
        let skip = if len >= HUGE {
            mapping.align_offset(HUGE)
        } else {
            0
        };
        // SAFETY: where `skip` is not 0 it is below 2 MiB, and the mapping is that much longer than `len`.
        let at = unsafe { mapping.byte_add(skip) };
        // SAFETY: the range was just mapped; the advice has no effect on its contents.
        unsafe { libc::madvise(at, len, libc::MADV_HUGEPAGE) };
        Zeroed {
            at: NonNull::new(at.cast()).expect("mmap never maps address 0 here"),
            len,
            mapping,
            mapped,
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

    /// The bytes as 32-bit words.
    #[inline(always)]
    pub fn words(&self) -> &[u32] {
        // SAFETY: as above; the start is page-aligned, the length a multiple of 8, and every bit pattern is a number.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / 4) }
    }

    /// The bytes as 32-bit words, to write.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and `&mut self` makes the slice unique.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().cast(), self.len / 4) }
    }
}

/// Work that is compiled for every processor and once more for those with newer instructions (shifts by a register that
/// set no flags, vectors with three operands).
///
/// Code inlined into it is compiled with it, and so is other work that it asks its [`InstructionLevel`] to run.
pub trait Work {
    /// Its result.
    type Out;
    /// Does it. Implementations are `#[inline(always)]`.
    fn work<L: InstructionLevel>(self, level: L) -> Self::Out;
}

/// Which instructions work is compiled with.
pub trait InstructionLevel: Copy {
    /// Does the work with them, as a function of its own.
    fn run<W: Work>(self, work: W) -> W::Out;
}

/// Instructions that every processor has.
#[derive(Clone, Copy, Debug)]
pub struct Common;

impl InstructionLevel for Common {
    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Out {
        work.work(self)
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and no slice of it outlives `self`.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}
