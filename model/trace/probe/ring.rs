//! The shared memory between a recorded program and its recorder: layout and the producer's half.
//!
//! This file is compiled into the recorder and into every probe, so it uses nothing but `core` and three functions of
//! libc. One anonymous file (memfd) holds, in this order: a [`Header`], the thread [`Slot`]s, the table of [`Site`]s,
//! the module text, and the chunks of records. A slot owns [`RING`] chunks; its thread fills one at a time and
//! publishes it by advancing `head`, the recorder gives it back by advancing `tail`. Untouched pages cost nothing, so
//! everything is sized for the largest case.

#![allow(dead_code)] // each of the programs that include this file uses its own part

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

#[path = "../src/arch/x86_64/futex.rs"]
mod arch;
#[allow(
    clippy::duplicate_mod,
    reason = "replays choose their windows as probes do, so their crate has it too"
)]
#[path = "../src/phases.rs"]
pub mod phases;

use core::cell::UnsafeCell;
use phases::{Accessed, RunPhases};

/// Changes with every change of this file; both sides check it.
pub const LAYOUT: u64 = 0x7661_7276_6501_000c;
/// The object that a file is, by the numbers of its device and its own.
pub const fn file_object(major: u64, minor: u64, inode: u64) -> u64 {
    let device = (major << 20) ^ minor;
    // An odd number with well mixed bits. The highest is for objects without a file.
    (inode ^ device.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & !(1 << 63)
}

/// The same by the device number that `stat` gives, in which both parts are split.
pub const fn file_object_of(device: u64, inode: u64) -> u64 {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    file_object(major, minor, inode)
}

/// Threads that can be recorded at the same time.
pub const SLOTS: usize = 256;
/// Processes that can be recorded at the same time.
pub const PROCESSES: usize = 256;
/// Chunks per slot.
pub const RING: u64 = 8;
/// A thread that waits for room continues when at most this number of chunks is left to take.
pub const WAKE_AT: u64 = RING / 2;
/// Words per chunk: 64 KiB, so that a chunk is still in the cache when the other side reads it.
pub const CHUNK_WORDS: usize = 8192;
/// Addresses of one run, at most.
pub const RUN_ADDRESSES: usize = 60;
/// Words left in a chunk when its cursor is below the limit: room for a whole run, or any event.
pub const MARGIN: usize = RUN_ADDRESSES + 4;
/// Entries in the site table.
pub const SITES: usize = 1 << 22;
/// Bytes for the text about mapped files.
pub const MODULE_BYTES: usize = 4 << 20;
/// Callers of an allocation that compiled code reports, at most.
pub const CALLERS: usize = 4;
/// Return addresses of a stack, at most.
pub const STACK: usize = 16;
/// Lines of a script of which such code is called, at most.
pub const LINES: usize = 8;
/// Marks the word of a line. No address has this bit.
pub const LINE: u64 = 1 << 62;

// A chunk is made of words. A word below 2^63 is an address (or belongs to the words before); the others are one of
// three heads. From compiled code, an access is two words: `kind | size << 2 | caller << 18` (kind: 0 read, 1 write,
// 2 update; caller: the low 32 bits of the return address, 0 when it is not known), and its address.

/// Head of a run of QEMU: code whose accesses are known from its sites. Bits 0-31 are the number of the site of its
/// first access, bits 32-47 the instructions of blocks without any access before it, bits 48-53 how many leaders its sites
/// have. The addresses of the leaders follow.
pub const RUN: u64 = 1 << 63;
pub const RUN_COUNT_SHIFT: u32 = 48;
pub const RUN_COUNT: u64 = 63;
/// Bits of a head that say which one it is.
pub const HEAD: u64 = 7 << 61;
/// Head of an access of QEMU about which the sites say nothing: bits 0-31 are the site, bits 32-49 QEMU's access info.
/// The address follows.
pub const SINGLE: u64 = 3 << 62;
/// Head of an event: bits 0-7 say which, bits 8-15 how many words follow.
pub const EVENT: u64 = 7 << 61;

/// Words: address, bytes, return addresses of up to [`CALLERS`] calls, the innermost first.
pub const EVENT_ALLOC: u64 = 1;
/// Word: the address that is freed.
pub const EVENT_FREE: u64 = 2;
/// Words: address, bytes.
pub const EVENT_MAP: u64 = 3;
/// Words: address, bytes.
pub const EVENT_UNMAP: u64 = 4;
/// The thread comes out of a system call that may have waited. Word: the tick.
pub const EVENT_WAIT: u64 = 5;
/// Word: the tick at which the chunk, or the way into a system call, begins.
pub const EVENT_TICK: u64 = 6;
/// Word: instructions without an access.
pub const EVENT_WORK: u64 = 7;
/// The thread in this slot begins. Words: the tick, the number of its process, and of the one that it was forked from and 1;
/// 0 if it was not.
pub const EVENT_START: u64 = 8;
/// The thread in this slot has ended. Word: the tick.
pub const EVENT_EXIT: u64 = 9;
/// Pages that went back to the operating system while the range stays mapped. Words: address, bytes.
pub const EVENT_DISCARD: u64 = 10;
/// A library wrote or read a range. Words: address, bytes, kind.
pub const EVENT_RANGE: u64 = 11;
/// The process is another program from here on: addresses mean something else.
pub const EVENT_EXEC: u64 = 12;
/// A stack that the thread is going to name by its number. Words: the number, how many bytes there are of the text about
/// modules, return addresses of up to [`STACK`] calls, the innermost first, and two words for each of up to [`LINES`] lines of a
/// script: [`LINE`] and the line, and the number that the text about modules has for the code.
pub const EVENT_STACK: u64 = 13;
/// Words: address, bytes, number of the stack.
pub const EVENT_ALLOC_AT: u64 = 14;
/// The program has mapped memory itself; the mapping was reported before. Words: address, bytes, number of the stack.
pub const EVENT_MAPPED: u64 = 15;
/// A Java virtual machine has started. Words: collector, feature version.
pub const EVENT_MACHINE: u64 = 16;
/// Use of memory of a Java virtual machine. Words: address, bytes, use.
pub const EVENT_HEAP_RANGE: u64 = 17;
/// A Java virtual machine stands still from here on.
pub const EVENT_PAUSE: u64 = 18;
/// It goes on. Words: collections of the young generation, collections of everything.
pub const EVENT_RESUME: u64 = 19;
/// The thread is recorded again after a part of the run that is not. Words: the number of the window, the tick.
pub const EVENT_WINDOW: u64 = 20;
/// Lines that the thread touched while it was not recorded, in order: their addresses, with bit 0 where it stored.
pub const EVENT_TOUCHED: u64 = 21;
/// Pages that other processes may have too; the mapping is reported before. Words: address, bytes, the object that is mapped,
/// offset in it, 1 if a process that writes a page has its own from then on.
pub const EVENT_SHARED: u64 = 22;
/// The program gave memory a color (`varve.h`). Words: address, bytes, 0 for hot and 1 for cold.
pub const EVENT_COLORED: u64 = 23;

/// The first page of the shared memory.
#[repr(C)]
pub struct Header {
    pub layout: u64,
    /// 1 when a QEMU plugin writes, 2 when compiled code does.
    pub mode: AtomicU32,
    /// Counts the events that the recorder may wait for; a futex.
    pub bell: AtomicU32,
    /// 1 while the recorder sleeps on `bell`.
    pub recorder_sleeps: AtomicU32,
    /// 1 when the recorder has gone: probes drop everything and never wait.
    pub closed: AtomicU32,
    /// 1 while no accesses are recorded, since the program has not reached the mark where they begin. The order of
    /// threads does not matter then.
    pub quiet: AtomicU32,
    /// Parts of the run that were recorded so far, between others that were not; 0 when all of it is recorded.
    pub window: AtomicU32,
    /// Processes that were recorded so far; the first is the one that the recorder started.
    pub processes: AtomicU32,
    /// Processes that were started but not followed.
    pub lost_processes: AtomicU32,
    /// Programs that were started by a compiled program, and those that came to be recorded.
    pub spawned: AtomicU32,
    pub arrived: AtomicU32,
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
    /// Threads that run now, and that have been running at once, at most; ticks are only kept above 1.
    pub running: AtomicU32,
    pub threads: AtomicU32,
    /// The order of the threads' actions: every chunk and every return from a system call takes a number.
    pub tick: AtomicU64,
    /// Instructions while it was quiet, of all threads.
    pub skipped: AtomicU64,
    /// Value of `skipped` that ends the quiet; 0: the recorder ends it, or nothing does.
    pub resume_at: AtomicU64,
    /// Value of `skipped` from which on it may end sooner, in a phase of the run that has too few windows.
    pub resume_from: AtomicU64,
    /// How much each thread records of a window, counted as `skipped`, so that threads do as much as each other in it whatever the
    /// system runs; 0: all of it.
    pub quota: AtomicU64,
    /// Threads that have recorded all that they may of the window that is open.
    pub done: AtomicU32,
    /// The tick at which it opened: threads are recorded side by side from there on, whenever the system lets them run.
    pub window_tick: AtomicU64,
    /// 1 where windows stand for the rest of the run, and are chosen by its phases.
    pub samples: AtomicU32,
    /// [`FREE_PHASES`], or who has `phases`.
    phases_used: AtomicU32,
    phases: UnsafeCell<RunPhases>,
    pub table: [Process; PROCESSES],
}

/// A process that is recorded. The entry is free when `pid` is 0.
#[repr(C)]
pub struct Process {
    pub pid: AtomicU32,
    /// Counted from 0 through the recording.
    pub number: AtomicU32,
    /// 1 while it becomes another program (exec).
    pub replaced: AtomicU32,
}

pub const FREE: u32 = 0;
pub const RUNNING: u32 = 1;
/// In a system call: it may produce nothing for a long time.
pub const WAITING: u32 = 2;
pub const ENDED: u32 = 3;

/// State that one thread shares with the recorder. The first line belongs to the thread, the second to the recorder.
#[repr(C, align(64))]
pub struct Slot {
    /// Where the next record goes: an address in the probe's own mapping.
    pub cursor: *mut u64,
    /// Beyond it, the chunk that `cursor` is in has less than [`MARGIN`] words of room.
    pub limit: *mut u64,
    /// First word of the chunk that `cursor` is in.
    pub start: *mut u64,
    /// Chunks published.
    pub head: AtomicU64,
    pub state: AtomicU32,
    /// Number of the process that the thread belongs to.
    pub process: AtomicU32,
    /// Pieces of a vector access that QEMU has still to make.
    pub pieces: u64,
    /// Where the next piece is.
    pub piece_at: u64,
    pub _line1: u64,
    /// Chunks that the recorder has freed; its low half is a futex.
    pub tail: AtomicU64,
    pub _line2: [u64; 7],
    /// The window that the thread has had its part of.
    pub had: u32,
    /// Words in each published chunk.
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
    /// Bytes of the vector register that is loaded or stored in pieces; 0 when it is no such instruction.
    pub vector: u8,
    /// Registers that the address is made of, and the one that is loaded; [`NO_REGISTER`] when there is none.
    pub base: u8,
    pub index: u8,
    pub loads: u8,
    /// 1 when it stores past the caches (MOVNT).
    pub non_temporal: u8,
    /// Description of its accesses.
    pub accesses: [SiteAccess; 2],
}

/// Properties of an access that are known before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SiteAccess {
    /// For [`DERIVED`]: distance from the leader's address. For [`ABSOLUTE`]: distance from the instruction's address.
    pub offset: i32,
    /// [`NONE`], or where the address comes from.
    pub source: u8,
    /// Which address of the run.
    pub leader: u8,
    /// Bytes.
    pub size: u8,
    /// 0 read, 1 write, 2 update.
    pub kind: u8,
}

/// No access, or nothing more after this one.
pub const NONE: u8 = 0;
/// A leader that begins a run: head and address are written.
pub const FIRST: u8 = 1;
/// A leader in a run: its address is written.
pub const NEXT: u8 = 2;
/// At a fixed distance from a leader of the run: nothing is written.
pub const DERIVED: u8 = 3;
/// At a fixed distance from the instruction: nothing is written.
pub const ABSOLUTE: u8 = 4;
/// Nothing is known: each access is a [`SINGLE`], and a run ends before it.
pub const UNKNOWN: u8 = 5;

/// Stands for no register at all.
pub const NO_REGISTER: u8 = 0xff;

const fn page_up(bytes: usize) -> usize {
    (bytes + 4095) & !4095
}

pub const SLOTS_AT: usize = page_up(size_of::<Header>());
pub const SITES_AT: usize = SLOTS_AT + page_up(SLOTS * size_of::<Slot>());
pub const MODULES_AT: usize = SITES_AT + page_up(SITES * size_of::<Site>());
pub const CHUNKS_AT: usize = MODULES_AT + MODULE_BYTES;
pub const CHUNK_BYTES: usize = CHUNK_WORDS * size_of::<u64>();
pub const SHARED_BYTES: usize = CHUNKS_AT + SLOTS * RING as usize * CHUNK_BYTES;

/// Byte offset of chunk `number` of `slot`.
pub const fn chunk_at(slot: usize, number: u64) -> usize {
    CHUNKS_AT + (slot * RING as usize + (number % RING) as usize) * CHUNK_BYTES
}

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
}

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
            arch::FUTEX,
            word.as_ptr(),
            FUTEX_WAIT,
            value,
            &raw const time,
            0usize,
            0usize,
        )
    };
}

/// Wakes the threads that sleep on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel only uses the word's address.
    unsafe {
        syscall(
            arch::FUTEX,
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

/// Who has the phases of the run: no thread, one, or one that has had them for too long. That one may still give them back.
const FREE_PHASES: u32 = 0;
const USED_PHASES: u32 = 1;
const LOST_PHASES: u32 = 2;

impl Header {
    /// Uses the phases of the run. `None` if a thread has them for long, which may have been killed then: nothing waits for it again.
    pub fn with_phases<T>(&self, use_them: impl FnOnce(&mut RunPhases) -> T) -> Option<T> {
        const PATIENCE: u32 = 1 << 20;
        let used = &self.phases_used;
        let take = |_| match used.compare_exchange(FREE_PHASES, USED_PHASES, Acquire, Relaxed) {
            Ok(_) => Some(true),
            Err(LOST_PHASES) => Some(false),
            Err(_) => {
                core::hint::spin_loop();
                None
            }
        };
        match (0..PATIENCE).find_map(take) {
            Some(true) => {}
            Some(false) => return None,
            None => {
                let _ = used.compare_exchange(USED_PHASES, LOST_PHASES, Relaxed, Relaxed);
                return None;
            }
        }
        // SAFETY: they were free and are not now, so no other thread has a reference.
        let result = use_them(unsafe { &mut *self.phases.get() });
        used.store(FREE_PHASES, Release);
        Some(result)
    }
}

/// Accesses are recorded from now on, as one more window of the run.
pub fn open_window(header: &Header) {
    header.done.store(0, Release);
    let tick = header.tick.fetch_add(1, AcqRel);
    header.window_tick.store(tick, Release);
    header.window.fetch_add(1, AcqRel);
    header.quiet.store(0, Release);
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

    /// Appends text about mapped files; text beyond the room is left out.
    pub fn add_modules(&self, text: &[u8]) {
        self.add_line(&[], text);
    }

    /// The same for a line in two parts.
    pub fn add_line(&self, first: &[u8], second: &[u8]) {
        let bytes = first.len() + second.len();
        let at = self.header().module_bytes.fetch_add(bytes as u32, AcqRel) as usize;
        if at + bytes <= MODULE_BYTES {
            // SAFETY: the range was reserved by the addition above and lies in the module text.
            unsafe {
                let to = self.base.add(MODULES_AT + at);
                // volatile as in `put`
                for (at, &byte) in first.iter().chain(second).enumerate() {
                    to.add(at).write_volatile(byte);
                }
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

    /// Points the slot's cursor at its next chunk, which the recorder has freed.
    fn open_chunk(&self, number: usize) {
        // SAFETY: the slot is the calling thread's, and the chunk is inside the mapping.
        unsafe {
            let slot = self.slot(number);
            let chunk = self
                .base
                .add(chunk_at(number, (*slot).head.load(Relaxed)))
                .cast::<u64>();
            (*slot).start = chunk;
            (*slot).limit = chunk.add(CHUNK_WORDS - MARGIN);
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
        slot.filled[(slot.head.load(Relaxed) % RING) as usize].store(filled as u32, Relaxed);
        let head = slot.head.fetch_add(1, SeqCst) + 1;
        // the cleanup after this process must not hand the chunk over again
        slot.cursor = slot.start;
        // waking the recorder for every chunk would cost more than the chunk
        if head - slot.tail.load(Acquire) >= RING / 2 {
            self.ring();
        }
        // A thread that has to wait waits for room for some chunks: to wake for each one would cost more than the
        // chunk.
        let mut room = RING;
        while head - slot.tail.load(Acquire) >= room {
            if header.closed.load(Acquire) != 0 {
                break;
            }
            header.stalled.fetch_add(1, SeqCst);
            self.ring();
            let tail = slot.tail.load(SeqCst);
            if head - tail >= room {
                futex_wait(low_half(&slot.tail), tail as u32, 100);
            }
            header.stalled.fetch_sub(1, SeqCst);
            room = WAKE_AT + 1;
        }
        self.open_chunk(number);
        if header.threads.load(Relaxed) > 1 && header.quiet.load(Acquire) == 0 {
            self.put(number, EVENT_TICK, &[header.tick.fetch_add(1, AcqRel)]);
        }
    }

    /// Appends an event.
    pub fn put(&self, number: usize, event: u64, words: &[u64]) {
        debug_assert!(words.len() < MARGIN);
        // SAFETY: the slot is the calling thread's, and a chunk has room for the event below its limit.
        unsafe {
            let slot = self.slot(number);
            if (*slot).cursor > (*slot).limit {
                self.publish(number);
            }
            let cursor = (*slot).cursor;
            cursor.write(EVENT | event | (words.len() as u64) << 8);
            // volatile, since the compiler would call the program's memcpy, which may be recorded itself
            for (at, &word) in words.iter().enumerate() {
                cursor.add(1 + at).write_volatile(word);
            }
            (*slot).cursor = cursor.add(1 + words.len());
        }
    }

    /// Threads have executed `amount` more instructions that are not recorded. The thread that reaches the end of the
    /// gap opens the next window.
    pub fn skip(&self, amount: u64) {
        let header = self.header();
        let now = header.skipped.fetch_add(amount, AcqRel) + amount;
        let end = header.resume_at.load(Acquire);
        if end != 0
            && now >= end
            && header
                .resume_at
                .compare_exchange(end, 0, AcqRel, Relaxed)
                .is_ok()
        {
            open_window(header);
        }
    }

    /// A thread has passed an interval that is not recorded. In a phase of the run that has too few windows, the next one opens, if its
    /// stretch has begun.
    pub fn passed(&self, interval: &Accessed) {
        let header = self.header();
        let too_few = header.with_phases(|phases| phases.passed(interval));
        let end = header.resume_at.load(Acquire);
        if too_few == Some(true)
            && end != 0
            && header.skipped.load(Acquire) >= header.resume_from.load(Acquire)
            && header
                .resume_at
                .compare_exchange(end, 0, AcqRel, Relaxed)
                .is_ok()
        {
            open_window(header);
        }
    }

    /// Is nothing of a thread recorded now: because all is quiet, or because it has had its part of the window?
    pub fn is_quiet(&self, number: usize) -> bool {
        let header = self.header();
        let window = header.window.load(Acquire);
        // SAFETY: the slot is the calling thread's.
        let had = unsafe { (*self.slot(number)).had };
        header.quiet.load(Acquire) != 0 || window != 0 && had == window
    }

    /// The thread has recorded all that it may of the window.
    pub fn had_part(&self, number: usize) {
        let header = self.header();
        // SAFETY: the slot is the calling thread's.
        unsafe { (*self.slot(number)).had = header.window.load(Acquire) };
        header.done.fetch_add(1, AcqRel);
    }

    /// A thread that was not recorded is recorded from here on.
    pub fn enter_window(&self, number: usize) {
        let header = self.header();
        let window = header.window.load(Acquire);
        if window > 0 {
            let tick = header.window_tick.load(Acquire);
            self.put(number, EVENT_WINDOW, &[u64::from(window), tick]);
        }
    }

    /// The thread may wait now: publishes its records so far.
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
        let alone = header.threads.load(Relaxed) <= 1;
        if state.swap(RUNNING, SeqCst) == WAITING && !alone && header.quiet.load(Acquire) == 0 {
            self.put(number, EVENT_WAIT, &[header.tick.fetch_add(1, AcqRel)]);
        }
    }

    /// The thread in this slot begins. The first has no other thread beside it.
    pub fn start_thread(&self, number: usize, process: u32, parent: Option<u32>) {
        let header = self.header();
        let running = header.running.fetch_add(1, AcqRel) + 1;
        header.threads.fetch_max(running, AcqRel);
        // SAFETY: atomic field of a slot in the mapping.
        unsafe {
            let slot = self.slot(number);
            (*slot).process.store(process, Release);
            (*slot).had = 0;
        }
        let tick = header.tick.fetch_add(1, AcqRel);
        let parent = parent.map_or(0, |parent| u64::from(parent) + 1);
        self.put(number, EVENT_START, &[tick, u64::from(process), parent]);
    }

    /// The thread in this slot has ended.
    pub fn end_thread(&self, number: usize) {
        let tick = self.header().tick.fetch_add(1, AcqRel);
        self.put(number, EVENT_EXIT, &[tick]);
        self.publish(number);
        self.header().running.fetch_sub(1, AcqRel);
        // SAFETY: the slot is the calling thread's until it reports its end.
        unsafe { (*self.slot(number)).state.store(ENDED, SeqCst) };
        self.ring();
    }

    /// The entry of a process.
    pub fn process(&self, pid: u32) -> Option<&'static Process> {
        self.header()
            .table
            .iter()
            .find(|entry| entry.pid.load(Acquire) == pid)
    }

    /// Enters a new process and returns its number. `None` when too many run at once.
    pub fn add_process(&self, pid: u32) -> Option<u32> {
        let header = self.header();
        for entry in &header.table {
            if entry.pid.compare_exchange(0, pid, AcqRel, Relaxed).is_ok() {
                let number = header.processes.fetch_add(1, AcqRel);
                entry.replaced.store(0, Relaxed);
                entry.number.store(number, Release);
                return Some(number);
            }
        }
        header.lost_processes.fetch_add(1, AcqRel);
        None
    }

    /// The process reports whether it is about to become another program.
    pub fn set_replaced(&self, pid: u32, replaced: bool) {
        if let Some(entry) = self.process(pid) {
            entry.replaced.store(u32::from(replaced), SeqCst);
        }
    }

    /// A program begins in this process. Returns the number of the process, and whether another recorded program was
    /// in it before.
    pub fn begin_program(&self, pid: u32) -> Option<(u32, bool)> {
        let Some(entry) = self.process(pid) else {
            self.header().arrived.fetch_add(1, AcqRel);
            return self.add_process(pid).map(|number| (number, false));
        };
        let number = entry.number.load(Acquire);
        self.take_over(number);
        entry.replaced.store(0, SeqCst);
        Some((number, true))
    }

    /// A process has replaced itself by another program: the threads of the old one are gone, and their unpublished
    /// records are handed over.
    fn take_over(&self, process: u32) {
        for number in 0..self.header().slots.load(Acquire) as usize {
            // SAFETY: the threads that owned the slots are gone. Their pointers belong to the old program and are only
            // compared.
            unsafe {
                let slot = self.slot(number);
                let mine = (*slot).process.load(Acquire) == process;
                if mine && matches!((*slot).state.load(Acquire), RUNNING | WAITING) {
                    let filled = ((*slot).cursor as usize).wrapping_sub((*slot).start as usize)
                        / size_of::<u64>();
                    if filled > 0 && filled <= CHUNK_WORDS {
                        let head = (*slot).head.load(Relaxed);
                        (&(*slot).filled)[(head % RING) as usize].store(filled as u32, Relaxed);
                        (*slot).cursor = (*slot).start;
                        (*slot).head.store(head + 1, SeqCst);
                    }
                    (*slot).state.store(ENDED, SeqCst);
                    self.header().running.fetch_sub(1, AcqRel);
                }
            }
        }
    }
}

/// Maps the shared memory behind a path that ends in a zero byte, such as `/proc/PID/fd/N` of the recorder. `None` when
/// there is none, or it has another layout.
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
