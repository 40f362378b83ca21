//! System calls of the guest: memory that comes and goes, waiting, threads that end, fork and exec; and the calls
//! with numbers of our own, by which the allocation shim inside the guest speaks to the plugin.

use crate::api::Id;
use crate::guest::*;
use crate::marks::*;
use crate::ring::*;
use crate::*;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

/// `malloc` returned `args[0]`, `args[1]` bytes, to `args[2]`, an address that is at `args[3]`; rbp was `args[4]`. The C library
/// knows the thread by `args[5]`.
const CALL_ALLOC: i64 = 0x7661_0001;
/// `args[0]` is about to be freed.
const CALL_FREE: i64 = 0x7661_0002;
/// `mmap` returned memory without a file; the same words as for `malloc`.
const CALL_MAPPED: i64 = 0x7661_0003;
/// The program gives `args[1]` bytes from `args[0]` on the color `args[2]`.
const CALL_COLORED: i64 = 0x7661_0008;

pub extern "C" fn on_call(
    _: Id,
    number: c_uint,
    call: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    _: u64,
    _: u64,
) {
    if is_deaf(number) {
        return;
    }
    settle(number);
    // SAFETY: the entry is this thread's.
    let slot = unsafe {
        let entry = vcpu(number);
        (*entry).args = [a, b, c, d, e, f];
        (*entry).number
    };
    match call {
        CALL_ALLOC | CALL_MAPPED => {
            let event = match call {
                CALL_ALLOC => EVENT_ALLOC_AT,
                _ => EVENT_MAPPED,
            };
            let stack = stacks::tell(slot, [c, d, e], f);
            shared().put(slot, event, &[a, b, stack]);
        }
        CALL_MACHINE => shared().put(slot, EVENT_MACHINE, &[a, b]),
        CALL_HEAP_RANGE => shared().put(slot, EVENT_HEAP_RANGE, &[b, c, a]),
        // a pause that begins in quiet is not recorded; if its begin was recorded, so is its end
        CALL_PAUSE if !is_quiet() => {
            PAUSE_TOLD.store(true, SeqCst);
            shared().put(slot, EVENT_PAUSE, &[]);
        }
        CALL_PAUSE => {}
        CALL_RESUME if PAUSE_TOLD.swap(false, SeqCst) => {
            shared().put(slot, EVENT_RESUME, &[a, b]);
        }
        CALL_RESUME => {}
        CALL_FREE => shared().put(slot, EVENT_FREE, &[a]),
        CALL_COLORED => shared().put(slot, EVENT_COLORED, &[a, b, c]),
        EXIT | EXIT_GROUP => thread_ends(number),
        EXECVE => follow::exec(slot, a, b, c),
        EXECVEAT => follow::exec_at(slot, a as i32, b, c, d, e),
        STAT | ACCESS if MARKED.load(Relaxed) => mark(number, a),
        NEWFSTATAT | FACCESSAT | FACCESSAT2 | STATX if MARKED.load(Relaxed) => mark(number, b),
        MUNMAP | MREMAP => stacks::forget_stacks(a, b),
        MPROTECT if c & PROT_READ == 0 => stacks::cannot_read(a, b),
        MMAP if d & MAP_FIXED != 0 => stacks::forget_stacks(a, b),
        _ if may_wait(call) => shared().enter_wait(slot),
        _ => {}
    }
}

/// Memory can be read.
const PROT_READ: u64 = 1;
/// A mapping replaces those in its place.
const MAP_FIXED: u64 = 0x10;

/// The beginning of a pause was reported, and its end was not yet.
static PAUSE_TOLD: AtomicBool = AtomicBool::new(false);

/// A program marks the part to record by checking for files: accesses are recorded from the first file on, up to the
/// second. In every language that is one call, and outside of a recording there is no such file.
const BEGIN: &[u8] = b"/varve/record/begin\0";
const END: &[u8] = b"/varve/record/end\0";

/// A thread of the program checks whether a file exists. If that is a mark, it holds for this thread at once.
fn mark(number: c_uint, path: u64) {
    let mut begin = [0; BEGIN.len()];
    let got = follow::guest(path, &mut begin);
    let shared = shared();
    let header = shared.header();
    // the shorter one may be at the end of readable memory
    if begin[..got].starts_with(END) {
        header.quiet.store(1, Release);
    } else if got == begin.len() && begin == *BEGIN && header.quiet.load(Acquire) != 0 {
        // a window, so that the pages that the program has touched so far are in it
        open_window(header);
    }
    settle(number);
}

pub extern "C" fn on_return(_: Id, number: c_uint, call: i64, result: i64) {
    if matches!(call, CLONE | FORK | VFORK | CLONE3) {
        // a child that is not followed stays so, and so do its children
        if result == 0 && !is_deaf(number) && follow::is_child() {
            begin_child(number);
        }
        return;
    }
    if is_deaf(number) {
        return;
    }
    let shared = shared();
    // SAFETY: the entry is this thread's.
    let (slot, args) = unsafe { ((*vcpu(number)).number, (*vcpu(number)).args) };
    if may_wait(call) {
        shared.leave_wait(slot);
        return;
    }
    let failed = (-4095..0).contains(&result);
    match call {
        MMAP if !failed => {
            shared.put(slot, EVENT_MAP, &[result as u64, args[1]]);
            const EXECUTABLE: u64 = 4;
            const STACK: u64 = 0x20000;
            if args[3] & STACK != 0 {
                write_stack(&shared, result as u64, args[1]);
                stacks::add_for_stacks(result as u64, args[1]);
                if args[2] & PROT_READ != 0 {
                    stacks::can_read(result as u64, args[1]);
                }
            }
            if let Some((object, private)) = object(args[3], args[4] as i32) {
                let words = [result as u64, args[1], object, args[5], u64::from(private)];
                shared.put(slot, EVENT_SHARED, &words);
            }
            if args[2] & EXECUTABLE != 0 && (args[4] as i32) >= 0 {
                write_module(&shared, result as u64, args[1], args[5], args[4] as i32);
            }
        }
        SHMAT if !failed => attached(&shared, slot, args[0], result as u64),
        SHMDT if !failed => detached(&shared, slot, args[0]),
        MPROTECT if !failed && args[2] & PROT_READ != 0 => stacks::can_read(args[0], args[1]),
        MUNMAP if !failed => shared.put(slot, EVENT_UNMAP, &[args[0], args[1]]),
        MREMAP if !failed => {
            shared.put(slot, EVENT_UNMAP, &[args[0], args[1]]);
            shared.put(slot, EVENT_MAP, &[result as u64, args[2]]);
        }
        BRK => on_break(&shared, slot, result as u64),
        // MADV_DONTNEED, MADV_FREE, MADV_REMOVE
        MADVISE if !failed && matches!(args[2], 4 | 8 | 9) => {
            shared.put(slot, EVENT_DISCARD, &[args[0], args[1]])
        }
        _ => {}
    }
}

/// Objects without a file that this process has mapped.
static OBJECTS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// The object that a mapping with these flags is of, and whether writes are private; none for memory of the process alone.
fn object(flags: u64, file: i32) -> Option<(u64, bool)> {
    const SHARED: u64 = 1;
    const ANONYMOUS: u64 = 0x20;
    let about = match flags & ANONYMOUS {
        0 if file >= 0 => std::fs::metadata(format!("/proc/self/fd/{file}")).ok(),
        _ => None,
    };
    match about.filter(|about| about.is_file()) {
        Some(about) => Some((
            file_object_of(about.dev(), about.ino()),
            flags & SHARED == 0,
        )),
        // The kernel makes one for this call.
        None if flags & SHARED != 0 => {
            let number = OBJECTS.fetch_add(1, Relaxed);
            let process = u64::from(PROCESS.load(Relaxed));
            Some((1 << 63 | process << 40 | number, false))
        }
        None => None,
    }
}

/// Segments of System V that this process, or one that it was forked from, has attached: address and bytes. A lock that another thread had
/// at the fork stays taken in the child, so nothing waits for it.
static SEGMENTS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

unsafe extern "C" {
    fn shmctl(segment: c_int, what: c_int, about: *mut SegmentInfo) -> c_int;
}

/// `struct shmid_ds` of the C library on x86-64.
#[repr(C)]
struct SegmentInfo {
    /// `struct ipc_perm`
    rights: [u64; 6],
    bytes: u64,
    rest: [u64; 16],
}

/// Bytes of a segment of System V.
fn segment_bytes(segment: u64) -> Option<u64> {
    const STAT: c_int = 2;
    let mut about = SegmentInfo {
        rights: [0; 6],
        bytes: 0,
        rest: [0; 16],
    };
    // SAFETY: room for what the call writes.
    (unsafe { shmctl(segment as c_int, STAT, &mut about) } == 0).then_some(about.bytes)
}

/// A segment of System V is at an address now. It is one object for all processes that attach it.
fn attached(shared: &Shared, slot: usize, segment: u64, address: u64) {
    let Some(bytes) = segment_bytes(segment) else {
        return;
    };
    let bytes = bytes.next_multiple_of(4096);
    if let Ok(mut segments) = SEGMENTS.try_lock() {
        segments.push((address, bytes));
    }
    shared.put(slot, EVENT_MAP, &[address, bytes]);
    let object = 3 << 62 | segment & 0xffff_ffff;
    shared.put(slot, EVENT_SHARED, &[address, bytes, object, 0, 0]);
}

fn detached(shared: &Shared, slot: usize, address: u64) {
    let Ok(mut segments) = SEGMENTS.try_lock() else {
        return;
    };
    if let Some(at) = segments.iter().position(|(start, _)| *start == address) {
        let (start, bytes) = segments.swap_remove(at);
        shared.put(slot, EVENT_UNMAP, &[start, bytes]);
    }
}

static BREAK: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// The end of the heap segment has moved.
fn on_break(shared: &Shared, slot: usize, now: u64) {
    let before = BREAK.swap(now, AcqRel);
    if before != 0 && now > before {
        shared.put(slot, EVENT_MAP, &[before, now - before]);
    } else if before > now {
        shared.put(slot, EVENT_UNMAP, &[now, before - now]);
    }
}

/// Everything that is mapped from a file now: the program and its interpreter (and QEMU itself). Each line begins with
/// the number of the process. Before them comes how the program was named when it was started, since links are not there.
pub fn write_modules(shared: &Shared) {
    if let Ok(maps) = std::fs::read_to_string("/proc/self/maps") {
        let process = PROCESS.load(Relaxed);
        let mut text = String::new();
        let words = WORDS.load(Relaxed) as usize;
        if let Some(program) = follow::program(words).filter(|_| words > 0) {
            text.push_str(&format!("{process} started\t{}\n", program.display()));
        }
        for line in maps.lines().filter(|line| line.contains('/')) {
            text.push_str(&format!("{process} {line}\n"));
            stacks::add_mapping(line);
        }
        shared.add_modules(text.as_bytes());
    }
}

/// The stack of a thread.
fn write_stack(shared: &Shared, start: u64, bytes: u64) {
    let process = PROCESS.load(Relaxed);
    let line = format!(
        "{process} {start:x}-{:x} rw-p 0 0:0 0 [stack]\n",
        start + bytes
    );
    shared.add_modules(line.as_bytes());
}

/// The stack that this address is in, if no other call has reported it: that of the first thread. Returns its range.
pub fn write_stack_at(shared: &Shared, address: u64) -> Option<(u64, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let range = |line: &str| {
        let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(start)?, number(end)?))
    };
    let mut ranges = maps.lines().filter_map(range);
    let (start, end) = ranges.find(|(start, end)| (*start..*end).contains(&address))?;
    write_stack(shared, start, end - start);
    Some((start, end))
}

/// One more file is mapped executable.
fn write_module(shared: &Shared, start: u64, bytes: u64, offset: u64, fd: i32) {
    if let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) {
        let process = PROCESS.load(Relaxed);
        let line = format!(
            "{start:x}-{:x} r-xp {offset:x} 0:0 0 {}",
            start + bytes,
            path.display()
        );
        stacks::add_mapping(&line);
        shared.add_modules(format!("{process} {line}\n").as_bytes());
    }
}
