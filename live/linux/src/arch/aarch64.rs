//! aarch64, as far as it goes: programs are placed; no curve stores past the caches or writes back.

use super::WriteBack;

/// Numbers of system calls (include/uapi/asm-generic/unistd.h).
pub mod call {
    pub const MMAP: i64 = 222;
    pub const MUNMAP: i64 = 215;
    pub const IOCTL: i64 = 29;
    pub const MREMAP: i64 = 216;
    pub const MADVISE: i64 = 233;
    pub const FLOCK: i64 = 32;
    pub const FUTEX: i64 = 98;
    pub const EXIT_GROUP: i64 = 94;
    pub const USERFAULTFD: i64 = 282;
}

/// Runs this processor's programs.
pub const QEMU: &str = "qemu-aarch64";

unsafe extern "C" {
    fn getauxval(kind: u64) -> u64;
}

/// DC CVAP may be used by programs when the kernel says so (HWCAP_DCPOP, bit 16, asm/hwcap.h).
pub fn write_back() -> WriteBack {
    const AT_HWCAP: u64 = 16;
    // SAFETY: reads the auxiliary vector.
    let hwcap = unsafe { getauxval(AT_HWCAP) };
    match hwcap & 1 << 16 {
        0 => WriteBack::Missing("no DC CVAP for programs"),
        _ => WriteBack::Full("DC CVAP"),
    }
}

/// Can stores go past the caches here?
pub fn can_stream() -> bool {
    false
}

/// Never called: [`can_stream`] says no.
pub fn stream(words: &mut [u64]) {
    words.fill(1);
}

/// Can lines be written back and stay in the cache?
pub fn can_write_back() -> bool {
    false
}

/// Never called: [`can_write_back`] says no.
pub fn store_and_write_back(words: &mut [u64]) {
    words.fill(1);
}

/// Waits until stores before it are done.
pub fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
