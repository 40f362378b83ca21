//! Who called the allocator, and who called that: the frame pointers of programs that keep them.
//!
//! Programs that were compiled without frame pointers have something else in that register. Each step is therefore
//! checked here as far as needed not to crash, and the recorder drops return addresses that follow no call.

use crate::arch::{self, FRAME_ALIGN, MINCORE, system};
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Where a function of the allocator was called from. Two words, as its arguments are passed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Callers {
    /// Where the return address is.
    place: *const usize,
    /// The frame pointer at that time.
    frame: usize,
}

/// Return addresses, at most.
pub const MOST: usize = 4;
/// No frame is larger.
const MOST_FRAME_BYTES: usize = 1 << 20;
const PAGE: usize = 4096;

/// Pages that are known to be mapped, by their low bits.
static MAPPED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

fn is_mapped(address: usize) -> bool {
    let page = address / PAGE;
    let known = &MAPPED[page % MAPPED.len()];
    if known.load(Relaxed) == page {
        return true;
    }
    let mut resident = 0u8;
    let mapped = system(
        MINCORE,
        [page * PAGE, PAGE, &raw mut resident as usize, 0, 0, 0],
    ) == 0;
    if mapped {
        known.store(page, Relaxed);
    }
    mapped
}

impl Callers {
    /// Return addresses, the innermost first; 0 after the last.
    pub fn walk(self) -> [usize; MOST] {
        let mut found = [0; MOST];
        // SAFETY: the stack pointer of the call points to its return address.
        found[0] = unsafe { self.place.read() };
        let (mut below, mut frame) = (self.place as usize, self.frame);
        for caller in &mut found[1..] {
            // a frame lies above the last one and is aligned
            if frame <= below
                || frame - below > MOST_FRAME_BYTES
                || frame % FRAME_ALIGN != 0
                || !is_mapped(frame)
            {
                break;
            }
            // SAFETY: the page is mapped, and 16 aligned bytes are on one page.
            let (next, back) = unsafe { arch::frame(frame) };
            *caller = back;
            if back == 0 {
                break;
            }
            (below, frame) = (frame, next);
        }
        found
    }
}
