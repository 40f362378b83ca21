//! The shared memory between a recorded program and its recorder: layout and the producer's half.
//!
//! This file is compiled into the recorder and into every probe, so it uses nothing but `core` and three
//! functions of libc. One anonymous file (memfd) holds, in this order: a [`Header`], the thread [`Slot`]s, the
//! table of [`Site`]s, the module text, and the chunks of records. A slot owns [`RING`] chunks; its thread fills
//! one at a time and publishes it by advancing `head`, the recorder gives it back by advancing `tail`. Pages that
//! nobody touches cost nothing, so everything is sized for the largest case.

#![allow(dead_code)] // each of the programs that include this file uses its own part

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Changes with every change of this file; both sides check it.
pub const LAYOUT: u64 = 0x7661_7276_6501_0004;
/// Threads that can be recorded at the same time.
pub const SLOTS: usize = 256;
/// Chunks per slot.
pub const RING: u64 = 8;
/// Records per chunk: 64 KiB, so that a chunk is still in the cache when the other side reads it.
pub const CHUNK_RECORDS: usize = 4096;
/// Entries in the site table.
pub const SITES: usize = 1 << 22;
/// Bytes for the text that says which file is mapped where.
pub const MODULE_BYTES: usize = 4 << 20;

/// One access or event, as a probe writes it.
///
/// For an access, `addr` is the virtual address, and `what` holds, from QEMU: the site number (32 bits), QEMU's raw
/// access info (18 bits), instructions of blocks without any access since the last record (14 bits); from compiled
/// code: the kind (8 bits: 0 read, 1 write, 2 update), the size in bytes (16 bits), 8 zero bits, the low half of the
/// return address (32 bits; 0 when it is not known). For an event, the low half of `what` is [`EVENT`] and the high half says which.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Record {
    pub addr: u64,
    pub what: u64,
}

/// Low half of `what` for records that are events.
pub const EVENT: u64 = 0xffff_ffff;
/// Second record follows: `addr` is the size, `what` the return address of the call.
pub const EVENT_ALLOC: u64 = 1;
/// `addr` is freed.
pub const EVENT_FREE: u64 = 2;
/// Second record follows: `addr` is the size in bytes.
pub const EVENT_MAP: u64 = 3;
/// Second record follows: `addr` is the size in bytes.
pub const EVENT_UNMAP: u64 = 4;
/// The thread comes out of a system call that may have waited; `addr` is the tick.
pub const EVENT_WAIT: u64 = 5;
/// `addr` is the tick at which the chunk, or the way into a system call, begins.
pub const EVENT_TICK: u64 = 6;
/// `addr` instructions without an access.
pub const EVENT_WORK: u64 = 7;
/// The thread in this slot begins.
pub const EVENT_START: u64 = 8;
/// The thread in this slot has ended.
pub const EVENT_EXIT: u64 = 9;
/// Second record follows: pages that went back to the operating system while the range stays mapped.
pub const EVENT_DISCARD: u64 = 10;
/// The process is another program from here on: addresses mean something else.
pub const EVENT_EXEC: u64 = 12;
/// A library wrote or read a range: `addr` is its start; second record: `addr` the bytes, `what` the kind.
pub const EVENT_RANGE: u64 = 11;

/// The first page of the shared memory.
#[repr(C)]
pub struct Header {
    pub layout: u64,
    /// Process that is recorded, set by its probe; 0 before.
    pub pid: AtomicU32,
    /// 1 when a QEMU plugin writes, 2 when compiled code does.
    pub mode: AtomicU32,
    /// Counts what the recorder may wait for; a futex.
    pub bell: AtomicU32,
    /// 1 while the recorder sleeps on `bell`.
    pub recorder_sleeps: AtomicU32,
    /// 1 when the recorder has gone: probes drop everything and never wait.
    pub closed: AtomicU32,
    /// Children that were forked (they are not recorded).
    pub forks: AtomicU32,
    /// 1 when the process replaced itself by another program.
    pub execs: AtomicU32,
    /// Threads that found no slot.
    pub lost_threads: AtomicU32,
    /// Instructions that got no entry because the site table was full.
    pub lost_sites: AtomicU32,
    /// Producers that wait for room.
    pub stalled: AtomicU32,
    /// Next entry of the site table.
    pub sites: AtomicU32,
    /// Slots that were ever used.
    pub slots: AtomicU32,
    /// Bytes of module text written.
    pub module_bytes: AtomicU32,
    /// Threads that have been running at once, at most; ticks are only kept above 1.
    pub threads: AtomicU32,
    /// The order of what threads do: every chunk and every return from a system call takes a number.
    pub tick: AtomicU64,
}

pub const FREE: u32 = 0;
pub const RUNNING: u32 = 1;
/// In a system call: it may produce nothing for a long time.
pub const WAITING: u32 = 2;
pub const ENDED: u32 = 3;

/// What one thread shares with the recorder. The first line belongs to the thread, the second to the recorder.
#[repr(C, align(64))]
pub struct Slot {
    /// Where the next record goes: an address in the probe's own mapping.
    pub cursor: *mut Record,
    /// End of the chunk that `cursor` is in.
    pub limit: *mut Record,
    /// Instructions of blocks without an access since the last record.
    pub pending: u64,
    /// First record of the chunk that `cursor` is in.
    pub start: *mut Record,
    /// Chunks published.
    pub head: AtomicU64,
    pub state: AtomicU32,
    pub _state: u32,
    pub _line: [u64; 2],
    /// Chunks given back; its low half is a futex.
    pub tail: AtomicU64,
    pub _line2: [u64; 7],
    /// Records in each published chunk.
    pub filled: [AtomicU32; RING as usize],
}

/// An instruction of a translated block. The instructions of a block have consecutive numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Site {
    pub pc: u64,
    /// Number of the block's first instruction.
    pub block: u32,
    /// Instructions in the block.
    pub count: u16,
    /// Bytes of the vector register that is loaded or stored in pieces of 8; 0 when it is no such instruction.
    pub vector: u8,
    /// Registers that the address is made of, and the one that is loaded; [`NO_REGISTER`] when there is none.
    pub base: u8,
    pub index: u8,
    pub loads: u8,
    /// 1 when it stores past the caches (MOVNT).
    pub non_temporal: u8,
    pub _space: [u8; 5],
}

/// Stands for no register at all.
pub const NO_REGISTER: u8 = 0xff;

const fn page_up(bytes: usize) -> usize {
    (bytes + 4095) & !4095
}

pub const SLOTS_AT: usize = 4096;
pub const SITES_AT: usize = SLOTS_AT + page_up(SLOTS * size_of::<Slot>());
pub const MODULES_AT: usize = SITES_AT + page_up(SITES * size_of::<Site>());
pub const CHUNKS_AT: usize = MODULES_AT + MODULE_BYTES;
pub const CHUNK_BYTES: usize = CHUNK_RECORDS * size_of::<Record>();
pub const SHARED_BYTES: usize = CHUNKS_AT + SLOTS * RING as usize * CHUNK_BYTES;

/// Byte offset of chunk `number` of `slot`.
pub const fn chunk_at(slot: usize, number: u64) -> usize {
    CHUNKS_AT + (slot * RING as usize + (number % RING) as usize) * CHUNK_BYTES
}

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
}

const SYS_FUTEX: i64 = 202;
const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: i32 = 1;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// Sleeps while `word` is `value`, at most `milliseconds`.
pub fn futex_wait(word: &AtomicU32, value: u32, milliseconds: u32) {
    let time = Timespec {
        seconds: i64::from(milliseconds / 1000),
        nanoseconds: i64::from(milliseconds % 1000) * 1_000_000,
    };
    // SAFETY: the word and the time outlive the call; the kernel only reads them.
    unsafe {
        syscall(
            SYS_FUTEX,
            word.as_ptr(),
            FUTEX_WAIT,
            value,
            &raw const time,
            0usize,
            0usize,
        )
    };
}

/// Wakes whoever sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel only uses the word's address.
    unsafe {
        syscall(
            SYS_FUTEX,
            word.as_ptr(),
            FUTEX_WAKE,
            i32::MAX,
            0usize,
            0usize,
            0usize,
        )
    };
}

/// The futex half of a 64-bit counter: its low 32 bits (all hosts that can record are little-endian).
pub fn low_half(counter: &AtomicU64) -> &AtomicU32 {
    // SAFETY: an AtomicU64 is large and aligned enough to hold an AtomicU32 at its start.
    unsafe { &*core::ptr::from_ref(counter).cast::<AtomicU32>() }
}

/// A mapping of the shared memory in a recorded program.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    pub base: *mut u8,
}

impl Shared {
    pub fn header(&self) -> &'static Header {
        // SAFETY: the mapping starts with a header, lasts as long as the process, and the fields are atomic.
        unsafe { &*self.base.cast::<Header>() }
    }

    pub fn slot(&self, number: usize) -> *mut Slot {
        debug_assert!(number < SLOTS);
        // SAFETY: in the mapping by its layout.
        unsafe { self.base.add(SLOTS_AT).cast::<Slot>().add(number) }
    }

    pub fn site(&self, number: usize) -> *mut Site {
        debug_assert!(number < SITES);
        // SAFETY: in the mapping by its layout.
        unsafe { self.base.add(SITES_AT).cast::<Site>().add(number) }
    }

    /// Appends text about mapped files; what does not fit is left out.
    pub fn add_modules(&self, text: &[u8]) {
        let at = self
            .header()
            .module_bytes
            .fetch_add(text.len() as u32, AcqRel) as usize;
        if at + text.len() <= MODULE_BYTES {
            // SAFETY: the range was reserved by the addition above and lies in the module text.
            unsafe {
                self.base
                    .add(MODULES_AT + at)
                    .copy_from_nonoverlapping(text.as_ptr(), text.len());
            }
        }
    }

    /// Rings the recorder's bell.
    pub fn ring(&self) {
        let header = self.header();
        header.bell.fetch_add(1, SeqCst);
        if header.recorder_sleeps.load(SeqCst) != 0 {
            futex_wake(&header.bell);
        }
    }

    /// Takes a slot for a new thread. `None` when all are in use.
    pub fn take_slot(&self) -> Option<usize> {
        for number in 0..SLOTS {
            // SAFETY: the slot is in the mapping; only atomics are used before it is ours.
            let (state, head, tail) = unsafe {
                let slot = self.slot(number);
                (&(*slot).state, &(*slot).head, &(*slot).tail)
            };
            let now = state.load(Acquire);
            let usable = now == FREE || (now == ENDED && head.load(Acquire) == tail.load(Acquire));
            if usable
                && state
                    .compare_exchange(now, RUNNING, AcqRel, Relaxed)
                    .is_ok()
            {
                self.header().slots.fetch_max(number as u32 + 1, AcqRel);
                self.open_chunk(number);
                return Some(number);
            }
        }
        self.header().lost_threads.fetch_add(1, AcqRel);
        None
    }

    /// Points the slot's cursor at its next chunk, which has been given back.
    fn open_chunk(&self, number: usize) {
        // SAFETY: the slot is the calling thread's, and the chunk is inside the mapping.
        unsafe {
            let slot = self.slot(number);
            let chunk = self
                .base
                .add(chunk_at(number, (*slot).head.load(Relaxed)))
                .cast::<Record>();
            (*slot).start = chunk;
            // an event of two records that starts below the limit still fits
            (*slot).limit = chunk.add(CHUNK_RECORDS - 1);
            (*slot).cursor = chunk;
        }
    }

    /// Hands the open chunk of a slot to the recorder and opens the next, waiting for room.
    #[cold]
    pub fn publish(&self, number: usize) {
        let header = self.header();
        // SAFETY: the slot is the calling thread's.
        let slot = unsafe { &mut *self.slot(number) };
        // SAFETY: both point into the same chunk.
        let filled = unsafe { slot.cursor.offset_from(slot.start) } as usize;
        if filled == 0 {
            return;
        }
        if header.execs.load(Relaxed) != 0 {
            // it did not become another program after all
            header.execs.store(0, Relaxed);
        }
        slot.filled[(slot.head.load(Relaxed) % RING) as usize].store(filled as u32, Relaxed);
        let head = slot.head.fetch_add(1, SeqCst) + 1;
        // waking the recorder for every chunk would cost more than the chunk
        if head - slot.tail.load(Acquire) >= RING / 2 {
            self.ring();
        }
        while head - slot.tail.load(Acquire) >= RING {
            if header.closed.load(Acquire) != 0 {
                break;
            }
            header.stalled.fetch_add(1, SeqCst);
            self.ring();
            let tail = slot.tail.load(SeqCst);
            if head - tail >= RING {
                futex_wait(low_half(&slot.tail), tail as u32, 100);
            }
            header.stalled.fetch_sub(1, SeqCst);
        }
        self.open_chunk(number);
        if header.threads.load(Relaxed) > 1 {
            self.put(number, header.tick.fetch_add(1, AcqRel), EVENT_TICK);
        }
    }

    /// Appends an event of one record.
    pub fn put(&self, number: usize, addr: u64, event: u64) {
        // SAFETY: the slot is the calling thread's, and a chunk that is open has room for two.
        unsafe {
            let slot = self.slot(number);
            (*slot).cursor.write(Record {
                addr,
                what: EVENT | event << 32,
            });
            (*slot).cursor = (*slot).cursor.add(1);
            if (*slot).cursor >= (*slot).limit {
                self.publish(number);
            }
        }
    }

    /// Appends an event of two records.
    pub fn put_two(&self, number: usize, addr: u64, event: u64, bytes: u64, what: u64) {
        // SAFETY: the slot is the calling thread's, and a chunk that is open has room for two.
        unsafe {
            let slot = self.slot(number);
            if (*slot).cursor.add(1) >= (*slot).limit {
                self.publish(number);
            }
            (*slot).cursor.write(Record {
                addr,
                what: EVENT | event << 32,
            });
            (*slot).cursor.add(1).write(Record { addr: bytes, what });
            (*slot).cursor = (*slot).cursor.add(2);
            if (*slot).cursor >= (*slot).limit {
                self.publish(number);
            }
        }
    }

    /// The thread may wait now: what it has done so far is handed over.
    pub fn enter_wait(&self, number: usize) {
        // SAFETY: the slot is the calling thread's.
        let state = unsafe { &(*self.slot(number)).state };
        self.publish(number);
        state.store(WAITING, SeqCst);
        self.ring();
    }

    /// The thread goes on after it may have waited.
    pub fn leave_wait(&self, number: usize) {
        let header = self.header();
        // SAFETY: the slot is the calling thread's.
        let state = unsafe { &(*self.slot(number)).state };
        if state.swap(RUNNING, SeqCst) == WAITING && header.threads.load(Relaxed) > 1 {
            self.put(number, header.tick.fetch_add(1, AcqRel), EVENT_WAIT);
        }
    }

    /// The thread in this slot begins; only the first has company from nobody.
    pub fn start_thread(&self, running: u32, number: usize) {
        let header = self.header();
        header.threads.fetch_max(running, AcqRel);
        self.put(number, header.tick.fetch_add(1, AcqRel), EVENT_START);
    }

    /// This process has replaced itself by another program: the threads of the old one are gone, and what they had
    /// not published is handed over.
    pub fn take_over(&self) {
        for number in 0..self.header().slots.load(Acquire) as usize {
            // SAFETY: the threads that owned the slots are gone. Their pointers belong to the old program and are only
            // compared.
            unsafe {
                let slot = &mut *self.slot(number);
                if matches!(slot.state.load(Acquire), RUNNING | WAITING) {
                    let filled = (slot.cursor as usize).wrapping_sub(slot.start as usize)
                        / size_of::<Record>();
                    if filled > 0 && filled <= CHUNK_RECORDS {
                        let head = slot.head.load(Relaxed);
                        slot.filled[(head % RING) as usize].store(filled as u32, Relaxed);
                        slot.cursor = slot.start;
                        slot.head.store(head + 1, SeqCst);
                    }
                    slot.state.store(ENDED, SeqCst);
                }
            }
        }
        self.header().execs.store(0, SeqCst);
    }

    /// The thread in this slot has ended.
    pub fn end_thread(&self, number: usize) {
        self.put(number, self.header().tick.fetch_add(1, AcqRel), EVENT_EXIT);
        self.publish(number);
        // SAFETY: the slot is the calling thread's until it says that it has ended.
        unsafe { (*self.slot(number)).state.store(ENDED, SeqCst) };
        self.ring();
    }
}

/// Maps the shared memory behind a path that ends in a zero byte, such as `/proc/PID/fd/N` of the recorder. `None`
/// when there is none, or not what this layout expects.
pub fn attach(path: &core::ffi::CStr) -> Option<Shared> {
    unsafe extern "C" {
        fn open(path: *const core::ffi::c_char, flags: i32, ...) -> i32;
        fn close(fd: i32) -> i32;
        fn mmap(
            at: *mut u8,
            bytes: usize,
            protection: i32,
            flags: i32,
            fd: i32,
            offset: i64,
        ) -> *mut u8;
    }
    const OPEN_READ_WRITE: i32 = 2;
    const READ_WRITE: i32 = 3;
    const SHARED: i32 = 1;
    // SAFETY: the path is a string; the mapping is fresh, wherever the kernel likes, and checked before use.
    let base = unsafe {
        let fd = open(path.as_ptr(), OPEN_READ_WRITE);
        if fd < 0 {
            return None;
        }
        let base = mmap(
            core::ptr::null_mut(),
            SHARED_BYTES,
            READ_WRITE,
            SHARED,
            fd,
            0,
        );
        close(fd);
        base
    };
    if base as isize == -1 {
        return None;
    }
    let shared = Shared { base };
    (shared.header().layout == LAYOUT).then_some(shared)
}
