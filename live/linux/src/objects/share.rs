//! The file that the processes of a run share, from the outside: processes that were killed are taken out of it.

use super::ledger::{Line, RunLedger};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// The file, mapped until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    ledger: RunLedger,
    start: usize,
    bytes: usize,
    groups: usize,
}

/// A process that takes part of the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taker {
    pub pid: u32,
    /// As the budget counts them.
    pub fast_bytes: i64,
    /// First address of its ranges.
    pub base: u64,
}

/// What a group of sites had while the program ran, in all its processes. Bytes are as the allocator rounds them, and exact to a
/// thousandth of the budget for each thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lived {
    /// Objects and mappings that it was given.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, bytes that were given in slow memory.
    pub slow_bytes: u64,
    /// Objects that were to be in fast memory, and found no room for all of their bytes.
    pub refused: u64,
    /// The most bytes in fast memory.
    pub fast_most: u64,
    /// The most bytes in slow memory.
    pub slow_most: u64,
    /// Bytes in fast memory when all groups together had most.
    pub fast_at_top: u64,
    /// Bytes in slow memory then.
    pub slow_at_top: u64,
}

impl Share {
    /// Makes the file.
    pub fn new(path: &Path, groups: usize) -> io::Result<Share> {
        let bytes = RunLedger::bytes(groups);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        // Only what processes write takes memory.
        file.set_len(bytes as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, file) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping of a file of ours, at an address that the system chooses.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, file, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Most of it is empty: nothing is to be read around a page that is touched.
        // SAFETY: says how the mapping is used, and nothing about what it holds.
        unsafe { libc::madvise(at, bytes, libc::MADV_RANDOM) };
        let start = at.expose_provenance();
        Ok(Share {
            // SAFETY: mapped just now, until `self` is dropped, which has the only ledger.
            ledger: unsafe { RunLedger::at(start, groups) },
            start,
            bytes,
            groups,
        })
    }

    /// The processes that take part of the budget, once those that were killed are taken out.
    pub fn takers(&self) -> Vec<Taker> {
        let mut takers = Vec::new();
        for (index, slot) in self.ledger.slots() {
            let process = slot.process.load(Relaxed);
            if process == 0 {
                continue;
            }
            if !Path::new(&format!("/proc/{process}")).exists() {
                self.ledger.leave(index);
                continue;
            }
            takers.push(Taker {
                pid: process as u32,
                fast_bytes: slot.fast_bytes.load(Relaxed),
                base: slot.base.load(Relaxed),
            });
        }
        takers
    }

    /// What each group had so far.
    pub fn lived(&self) -> Vec<Lived> {
        (0..self.groups)
            .map(|group| lived(self.ledger.line(group)))
            .collect()
    }

    /// What all groups together had so far.
    pub fn all(&self) -> Lived {
        let mut all = Lived::default();
        for one in self.lived() {
            all.objects += one.objects;
            all.bytes += one.bytes;
            all.slow_bytes += one.slow_bytes;
            all.refused += one.refused;
            all.fast_at_top += one.fast_at_top;
            all.slow_at_top += one.slow_at_top;
        }
        [all.fast_most, all.slow_most] = pair(&self.ledger.head().most);
        all
    }

    /// Processes whose memory is in no sum, since there were too many at a time.
    pub fn crowded(&self) -> u64 {
        self.ledger.head().crowded.load(Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the ledger goes with it.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.start), self.bytes) };
    }
}

fn pair(bytes: &[AtomicI64; 2]) -> [u64; 2] {
    [0, 1].map(|tier: usize| bytes[tier].load(Relaxed).max(0) as u64)
}

fn lived(line: &Line) -> Lived {
    let [fast, slow] = [0, 1].map(|tier: usize| line.given[tier].load(Relaxed));
    let [fast_most, slow_most] = pair(&line.most);
    let [fast_at_top, slow_at_top] = pair(&line.at_top);
    Lived {
        objects: line.objects.load(Relaxed),
        bytes: fast + slow,
        slow_bytes: slow,
        refused: line.refused.load(Relaxed),
        fast_most,
        slow_most,
        fast_at_top,
        slow_at_top,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Folder;

    #[test]
    fn a_process_that_is_gone_has_nothing_and_what_it_had_is_known() {
        let folder = Folder::new().unwrap();
        let share = Share::new(&folder.file("share"), 3).unwrap();
        let own = share.ledger.join(u64::from(std::process::id())).unwrap();
        // Larger than any process number.
        let gone = share.ledger.join(1 << 40).unwrap();
        share.ledger.changed(own, 0, 0, 100, 100);
        share.ledger.changed(gone, 2, 1, 7000, 9000);
        share.ledger.line(2).objects.store(5, Relaxed);
        share.ledger.top(1);
        let takers = share.takers();
        assert_eq!(takers.len(), 1);
        assert_eq!(takers[0].pid, std::process::id());
        let lived = share.lived();
        assert_eq!((lived[2].slow_most, lived[2].slow_at_top), (9000, 7000));
        assert_eq!(share.ledger.line(2).now[1].load(Relaxed), 0);
        let all = share.all();
        assert_eq!(
            (all.objects, all.fast_at_top, all.slow_at_top),
            (5, 100, 7000)
        );
        assert_eq!((all.fast_most, all.slow_most), (100, 9000));
        assert_eq!(share.crowded(), 0);
    }
}
