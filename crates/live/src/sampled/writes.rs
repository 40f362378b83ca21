//! Which watched pages of a process were written, from outside: the shim has the kernel note it
//! (`userfaultfd`, write protection without messages), and `PAGEMAP_SCAN` tells and begins anew. Linux 6.7 and later.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsRawFd;

/// A process's map of pages.
pub struct Writes {
    pages: File,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u64 as libc::Ioctl;
/// Protect what is found, and only look where the kernel was asked to note writes.
const WP_MATCHING: u64 = 1;
const CHECK_WPASYNC: u64 = 2;
const IS_WRITTEN: u64 = 2;

impl Writes {
    pub fn of(process: u32) -> Option<Writes> {
        let pages = File::open(format!("/proc/{process}/pagemap")).ok()?;
        Some(Writes { pages })
    }

    /// Which of these pages were written since the last call; `None` if that is noted of none of them.
    pub fn written(&mut self, pages: &[u64]) -> Option<HashSet<u64>> {
        let (mut written, mut noted) = (HashSet::new(), false);
        for &page in pages {
            // What is found: start, end, categories.
            let mut found = [0u64; 3];
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: WP_MATCHING | CHECK_WPASYNC,
                start: page,
                end: page + 4096,
                vec: found.as_mut_ptr() as u64,
                vec_len: 1,
                category_mask: IS_WRITTEN,
                return_mask: IS_WRITTEN,
                ..Scan::default()
            };
            // SAFETY: the structure is as large as it says, and points to room for one answer.
            let answers = unsafe {
                libc::ioctl(
                    self.pages.as_raw_fd(),
                    PAGEMAP_SCAN,
                    std::ptr::from_mut(&mut scan),
                )
            };
            noted |= answers >= 0;
            if answers > 0 {
                written.insert(page);
            }
        }
        noted.then_some(written)
    }
}
