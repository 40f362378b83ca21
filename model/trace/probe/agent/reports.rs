//! Intervals that the program itself reports, through `varve.Varve` of `programs/api`: in a file that both have mapped.
//!
//! ```text
//! three words of 8 bytes:   intervals that were begun to be written   their time, ns   intervals that were written
//! ```
//!
//! The program finds the file by the property `varve.intervals` and its process number. While the first and the last word differ, it is writing.

use core::ffi::c_long;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

const SYS_MMAP: c_long = 9;
const PROT_READ: c_long = 1;
const MAP_SHARED: c_long = 1;
const PAGE: u64 = 4096;

static WORDS: OnceLock<&'static [AtomicU64; 3]> = OnceLock::new();

/// Makes the file beside `report`. Without it the program is not asked.
pub fn begin(report: &str) {
    if let Some(words) = map(&format!("{report}.{}", std::process::id())) {
        let _ = WORDS.set(words);
    }
}

fn map(path: &str) -> Option<&'static [AtomicU64; 3]> {
    let mut options = std::fs::OpenOptions::new();
    let options = options.read(true).write(true).create_new(true);
    let file = options.open(path).ok()?;
    file.set_len(PAGE).ok()?;
    // SAFETY: a new mapping of a file that is as long. Each argument is a whole word: the last one is on the stack.
    let at = unsafe {
        let file = c_long::from(file.as_raw_fd());
        syscall(
            SYS_MMAP,
            0 as c_long,
            PAGE,
            PROT_READ,
            MAP_SHARED,
            file,
            0 as c_long,
        )
    };
    // SAFETY: mapped as long as the process lives, and aligned to a page; only atomics read the changing words.
    (at > 0).then(|| unsafe { &*(at as *const [AtomicU64; 3]) })
}

/// Intervals so far, and their time, ns.
pub fn sums() -> (u64, u64) {
    let Some([begun, nanos, written]) = WORDS.get() else {
        return (0, 0);
    };
    loop {
        let intervals = written.load(Acquire);
        let time = nanos.load(Acquire);
        if begun.load(Acquire) == intervals {
            return (intervals, time);
        }
        std::thread::yield_now();
    }
}
