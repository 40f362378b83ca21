//! Pages that are watched. The kernel tells how much of a mapping was used, so a page becomes a mapping of its own: by an
//! advice that its neighbours do not have, which leaves it out of core dumps.

use crate::sys::PAGE;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Pages that are watched at once, at most: each costs two of the 65530 mappings that a process may have, and reading about
/// all of them takes some milliseconds.
const MOST: usize = 2048;
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn advise(page: usize, advice: c_int) -> bool {
    // SAFETY: the advice changes nothing of what the page holds.
    unsafe { libc::madvise(page as *mut c_void, PAGE, advice) == 0 }
}

/// Watches a page; false if that cannot be.
pub fn watch(page: usize) -> bool {
    let room = COUNT.load(Relaxed) < MOST && advise(page, libc::MADV_DONTDUMP);
    if room {
        COUNT.fetch_add(1, Relaxed);
    }
    room
}

/// Gives the page back to its neighbours.
pub fn leave(page: usize) {
    advise(page, libc::MADV_DODUMP);
    COUNT.fetch_sub(1, Relaxed);
}

/// In the child of a fork. What its parent watches stays as it is.
pub fn forget_all() {
    COUNT.store(0, Relaxed);
}
