//! The recorder's mapping of the shared memory. The only unsafe code of the recorder but for starting a process.

use super::ring::{
    CHUNK_WORDS, ENDED, Header, LAYOUT, MODULE_BYTES, MODULES_AT, Process, RING, RUNNING,
    SHARED_BYTES, SITES, SITES_AT, SLOTS, SLOTS_AT, Site, Slot, WAITING, WAKE_AT, chunk_at,
    futex_wait, futex_wake, low_half,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

/// State of the thread of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// The slot was never used.
    Unborn,
    /// It will write more.
    Running,
    /// It is in a system call.
    Waiting,
    /// It has ended; the slot may be used again.
    Ended,
}

/// The shared memory, created here and mapped by the probe through its file.
pub(super) struct SharedMemory {
    file: File,
    base: NonNull<u8>,
}

// SAFETY: the mapping is used through atomics and by one recorder at a time (all readers of chunks need `&mut`).
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// A fresh, empty one.
    pub fn new() -> io::Result<SharedMemory> {
        // SAFETY: the name ends in a zero byte; the result is checked.
        let fd = unsafe { libc::memfd_create(c"varve-ring".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file descriptor is new, and no other code has it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(SHARED_BYTES as u64)?;
        // SAFETY: a fresh shared mapping of our own file; the result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::other("mapped at address 0"))?;
        // SAFETY: the header is the start of the mapping and no probe runs yet.
        unsafe { (*base.as_ptr().cast::<Header>()).layout = LAYOUT };
        Ok(SharedMemory { file, base })
    }

    /// The file, which the probe inherits.
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn header(&self) -> &Header {
        // SAFETY: the mapping starts with a header, whose fields are atomic but for `layout`, which never changes.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Numbers of the processes that are recorded now, and their numbers on the system.
    pub fn processes(&self) -> Vec<(u32, u32)> {
        let entry = |p: &Process| (p.number.load(Acquire), p.pid.load(Acquire));
        let all = self.header().table.iter().map(entry);
        all.filter(|(_, pid)| *pid != 0).collect()
    }

    fn slot(&self, number: usize) -> *mut Slot {
        assert!(number < SLOTS);
        // SAFETY: in the mapping by its layout.
        unsafe { self.base.as_ptr().add(SLOTS_AT).cast::<Slot>().add(number) }
    }

    fn counters(&self, number: usize) -> (u64, u64) {
        let slot = self.slot(number);
        // SAFETY: atomic fields of a slot in the mapping.
        unsafe { ((*slot).head.load(Acquire), (*slot).tail.load(Acquire)) }
    }

    pub fn state(&self, number: usize) -> ThreadState {
        let slot = self.slot(number);
        // SAFETY: atomic field of a slot in the mapping.
        match unsafe { (*slot).state.load(SeqCst) } {
            RUNNING => ThreadState::Running,
            WAITING => ThreadState::Waiting,
            ENDED => ThreadState::Ended,
            _ => ThreadState::Unborn,
        }
    }

    /// Slots that have been used so far.
    pub fn slots(&self) -> usize {
        (self.header().slots.load(Acquire) as usize).min(SLOTS)
    }

    pub fn has_chunk(&self, number: usize) -> bool {
        let (head, tail) = self.counters(number);
        head != tail
    }

    /// Calls `use_words` with the oldest chunk of a slot and gives it back. `false` when there is none.
    pub fn take_chunk(&mut self, number: usize, use_words: impl FnOnce(&[u64], &[Site])) -> bool {
        let (head, tail) = self.counters(number);
        if head == tail {
            return false;
        }
        let slot = self.slot(number);
        // SAFETY: atomic field of a slot in the mapping.
        let filled = unsafe { (&(*slot).filled)[(tail % RING) as usize].load(Acquire) } as usize;
        use_words(
            &self.chunk(number, tail)[..filled.min(CHUNK_WORDS)],
            self.sites(),
        );
        self.give_back(number, tail);
        true
    }

    fn chunk(&self, number: usize, chunk: u64) -> &[u64] {
        // SAFETY: in the mapping; the producer writes no published chunk until it is freed.
        unsafe {
            std::slice::from_raw_parts(
                self.base
                    .as_ptr()
                    .add(chunk_at(number, chunk))
                    .cast::<u64>(),
                CHUNK_WORDS,
            )
        }
    }

    fn give_back(&self, number: usize, tail: u64) {
        let slot = self.slot(number);
        // SAFETY: atomic field of a slot in the mapping.
        let counter = unsafe { &(*slot).tail };
        counter.store(tail + 1, SeqCst);
        let (head, tail) = self.counters(number);
        if head - tail <= WAKE_AT && self.header().stalled.load(SeqCst) != 0 {
            futex_wake(low_half(counter));
        }
    }

    /// The chunk that the thread was filling when its process died. Only after the process has gone.
    pub fn take_rest(&mut self, number: usize, use_words: impl FnOnce(&[u64], &[Site])) {
        let slot = self.slot(number);
        let (head, _) = self.counters(number);
        // SAFETY: the process has gone, so no thread writes the slot; the pointers are only compared, as numbers.
        let filled = unsafe {
            ((*slot).cursor as usize).wrapping_sub((*slot).start as usize) / size_of::<u64>()
        };
        if filled > 0 && filled <= CHUNK_WORDS {
            use_words(&self.chunk(number, head)[..filled], self.sites());
        }
    }

    /// The number of the process that the slot's thread belongs to.
    pub fn process_of(&self, number: usize) -> u32 {
        let slot = self.slot(number);
        // SAFETY: atomic field of a slot in the mapping.
        unsafe { (*slot).process.load(Acquire) }
    }

    /// The thread of this slot is gone, and everything of it has been taken.
    pub fn end_slot(&self, number: usize) {
        let slot = self.slot(number);
        // SAFETY: the process has gone, so no other thread writes the slot.
        unsafe {
            (*slot).cursor = (*slot).start;
            (*slot).state.store(ENDED, SeqCst);
        }
        self.header().running.fetch_sub(1, SeqCst);
    }

    /// The table of sites. Entries that chunks name are complete, since they were written before the code ran.
    fn sites(&self) -> &[Site] {
        // SAFETY: in the mapping; plain numbers of which every bit pattern is valid.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(SITES_AT).cast::<Site>(), SITES)
        }
    }

    /// Length of the probe's text about mapped files.
    pub fn module_bytes(&self) -> usize {
        (self.header().module_bytes.load(Acquire) as usize).min(MODULE_BYTES)
    }

    /// The probe's text about mapped files, from a byte on.
    pub fn module_text(&self, from: usize) -> &[u8] {
        let length = self.module_bytes();
        // SAFETY: in the mapping; the text is only appended to.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(MODULES_AT), length) };
        bytes.get(from..).unwrap_or_default()
    }

    /// Sleeps until a probe rings, unless `ready` returns that there is something already; at most `milliseconds`.
    pub fn sleep_unless(&self, milliseconds: u32, ready: impl Fn(&SharedMemory) -> bool) {
        let header = self.header();
        let bell = header.bell.load(SeqCst);
        header.recorder_sleeps.store(1, SeqCst);
        if !ready(self) {
            futex_wait(&header.bell, bell, milliseconds);
        }
        header.recorder_sleeps.store(0, SeqCst);
    }

    /// No chunks are taken from now on: probes stop waiting for room.
    pub fn close(&self) {
        self.header().closed.store(1, Release);
        for number in 0..self.slots() {
            let slot = self.slot(number);
            // SAFETY: atomic field of a slot in the mapping.
            futex_wake(low_half(unsafe { &(*slot).tail }));
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.close();
        // SAFETY: our own mapping, which nothing borrows any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), SHARED_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::{EVENT, EVENT_WORK, Shared};
    use super::*;

    /// The probe's view of the same memory.
    fn probe(memory: &SharedMemory) -> Shared {
        Shared {
            base: memory.base.as_ptr(),
        }
    }

    #[test]
    fn a_producer_that_is_faster_waits_and_nothing_is_lost() {
        let mut memory = SharedMemory::new().unwrap();
        let side = probe(&memory).base as usize;
        let producer = std::thread::spawn(move || {
            let shared = Shared {
                base: side as *mut u8,
            };
            let slot = shared.take_slot().expect("all slots are free");
            for value in 0..200_000 {
                shared.put(slot, EVENT_WORK, &[value]);
            }
            shared.end_thread(slot);
        });
        let mut seen = Vec::new();
        while memory.state(0) != ThreadState::Ended || memory.has_chunk(0) {
            let took = memory.take_chunk(0, |words, _| {
                let words = words
                    .chunks(2)
                    .filter(|pair| pair[0] == EVENT | EVENT_WORK | 1 << 8);
                seen.extend(words.map(|pair| pair[1]));
            });
            if !took {
                memory.sleep_unless(100, |memory| memory.has_chunk(0));
            }
        }
        producer.join().unwrap();
        assert!(seen.iter().copied().eq(0..200_000), "{} values", seen.len());
    }

    #[test]
    fn a_thread_that_dies_leaves_its_open_chunk_readable() {
        let mut memory = SharedMemory::new().unwrap();
        let shared = probe(&memory);
        let slot = shared.take_slot().expect("all slots are free");
        shared.put(slot, EVENT_WORK, &[7]);
        shared.put(slot, EVENT_WORK, &[8]);
        let mut seen = Vec::new();
        memory.take_rest(slot, |words, _| {
            seen.extend(words.chunks(2).map(|pair| pair[1]))
        });
        assert_eq!(seen, [7, 8]);
    }

    #[test]
    fn slots_of_ended_threads_are_used_again_once_they_are_read() {
        let mut memory = SharedMemory::new().unwrap();
        let shared = probe(&memory);
        let first = shared.take_slot().unwrap();
        shared.end_thread(first);
        assert_ne!(shared.take_slot(), Some(first), "its last chunk is unread");
        while memory.take_chunk(first, |_, _| ()) {}
        assert_eq!(shared.take_slot(), Some(first));
    }
}
