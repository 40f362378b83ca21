//! Pages that are watched. The kernel reports how much of a mapping was used, so a page becomes a mapping of its own: by an
//! advice that its neighbours do not have, which leaves it out of core dumps. Where it can
//! (Linux 6.7), the kernel records writes to it too, for a process that asks from outside (`PAGEMAP_SCAN`).

use crate::sys::PAGE;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicUsize};

/// Pages that are watched at once, at most: each costs two of the 65530 mappings that a process may have, and reading about
/// all of them takes some milliseconds.
const MOST: usize = 2048;
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Where the kernel notes writes; negative for nowhere.
static WRITES: AtomicI32 = AtomicI32::new(-1);

// linux/userfaultfd.h
const USER_MODE_ONLY: c_int = 1;
const UFFD_API: u64 = 0xaa;
const WP_UNPOPULATED: u64 = 1 << 13;
const WP_ASYNC: u64 = 1 << 15;
const MODE_WP: u64 = 2;
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u64 as libc::Ioctl;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u64 as libc::Ioctl;
const UFFDIO_UNREGISTER: libc::Ioctl = 0x8010_aa01_u64 as libc::Ioctl;

/// Has writes noted, where the kernel can. Its descriptor is out of the way of the program's own, which begin at the lowest.
pub fn begin() {
    const HIGH: c_int = 900;
    // SAFETY: descriptors of ours, and a structure of the size that the call writes.
    unsafe {
        let flags = c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY);
        let low = libc::syscall(libc::SYS_userfaultfd, flags) as c_int;
        if low < 0 {
            return;
        }
        let file = libc::fcntl(low, libc::F_DUPFD_CLOEXEC, HIGH);
        libc::close(low);
        let mut wanted = [UFFD_API, WP_UNPOPULATED | WP_ASYNC, 0];
        if file >= 0 && libc::ioctl(file, UFFDIO_API, wanted.as_mut_ptr()) != 0 {
            libc::close(file);
            return;
        }
        WRITES.store(file, Relaxed);
    }
}

fn note_writes(page: usize, request: libc::Ioctl) {
    let file = WRITES.load(Relaxed);
    if file >= 0 {
        let mut range = [page as u64, PAGE as u64, MODE_WP, 0];
        // SAFETY: a structure of at least the size that the call takes. If the program has closed the descriptor, or another file
        // has its number, the call fails.
        unsafe { libc::ioctl(file, request, range.as_mut_ptr()) };
    }
}

fn advise(page: usize, advice: c_int) -> bool {
    // SAFETY: the advice changes nothing of what the page holds.
    unsafe { libc::madvise(page as *mut c_void, PAGE, advice) == 0 }
}

/// Watches a page; false if that cannot be.
pub fn watch(page: usize) -> bool {
    let room = COUNT.load(Relaxed) < MOST && advise(page, libc::MADV_DONTDUMP);
    if room {
        COUNT.fetch_add(1, Relaxed);
        note_writes(page, UFFDIO_REGISTER);
    }
    room
}

/// Gives the page back to its neighbours.
pub fn leave(page: usize) {
    note_writes(page, UFFDIO_UNREGISTER);
    advise(page, libc::MADV_DODUMP);
    COUNT.fetch_sub(1, Relaxed);
}

/// In the child of a fork. What its parent watches stays as it is.
pub fn forget_all() {
    COUNT.store(0, Relaxed);
    // SAFETY: the child's descriptor of what notes its parent's writes.
    unsafe { libc::close(WRITES.swap(-1, Relaxed)) };
}
