//! Faults in a region's addresses: a file that is cut off while it is open, a medium that cannot be read, a page that is not as it was sealed.
//! They end the process with a one-line message, as the store cannot be undone and the load has no value. The signal handler calls this module: see
//! [`end_if_in_region`].

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Regions whose faults are reported, at most; faults of further regions end the process as usual.
const MOST: usize = 32;

struct Slot {
    from: AtomicUsize,
    to: AtomicUsize,
    /// The file's name. It is never freed: a handler may be reading it.
    name: AtomicPtr<String>,
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        from: AtomicUsize::new(0),
        to: AtomicUsize::new(0),
        name: AtomicPtr::new(std::ptr::null_mut()),
    }
}; MOST];

/// Addresses whose faults are reported, until this is dropped.
pub(crate) struct Guard(Option<usize>);

impl Guard {
    /// For the region file of a name.
    pub fn new(base: *const u8, bytes: u64, name: &str) -> Guard {
        for (i, slot) in SLOTS.iter().enumerate() {
            let taken =
                slot.from
                    .compare_exchange(0, base.addr(), Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                let name = Box::leak(Box::new(name.to_string()));
                slot.name.store(name, Ordering::Release);
                slot.to
                    .store(base.addr() + bytes as usize, Ordering::Release);
                return Guard(Some(i));
            }
        }
        Guard(None)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(i) = self.0 {
            SLOTS[i].to.store(0, Ordering::Release);
            SLOTS[i].from.store(0, Ordering::Release);
        }
    }
}

/// If an address is one of an open region's file, prints the meaning of the fault and ends the process with exit code 1. May be called by handlers of
/// signals: it allocates nothing.
pub fn end_if_in_region(signal: i32, address: usize) {
    for slot in &SLOTS {
        let (from, to) = (
            slot.from.load(Ordering::Acquire),
            slot.to.load(Ordering::Acquire),
        );
        if from == 0 || !(from..to).contains(&address) {
            continue;
        }
        let name = slot.name.load(Ordering::Acquire);
        // SAFETY: names are leaked.
        let name = unsafe { name.as_ref() }.map_or("region", |n| n.as_str());
        let why: &str = match signal {
            libc::SIGBUS => {
                ": the file was cut off while it was open, or its medium cannot be read; put a copy in its place, or try `varve durable salvage`\n"
            }
            _ => {
                ": the program met a damaged place in the file; `varve durable check` finds it, `varve durable salvage` recovers the intact objects\n"
            }
        };
        for text in [name, why] {
            // SAFETY: bytes of a live string.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: ends the process at once, as a handler may.
        unsafe { libc::_exit(1) };
    }
}
