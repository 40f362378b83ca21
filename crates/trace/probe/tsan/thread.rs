//! Where the calling thread writes: found once per thread, kept in thread-local storage.

use crate::ring::*;
use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};

// Two words per thread: its slot, and whether it has ended (or found none), so that it is not asked again.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 4",
    ".hidden varve_thread",
    ".globl varve_thread",
    ".type varve_thread, @object",
    ".size varve_thread, 16",
    "varve_thread:",
    ".zero 16",
    ".popsection",
);

/// The calling thread's slot, or null.
#[inline(always)]
pub fn slot() -> *mut Slot {
    let slot: *mut Slot;
    // SAFETY: reads a thread-local word that exists in every thread of the executable.
    unsafe { asm!("mov {}, qword ptr fs:[varve_thread@TPOFF]", out(reg) slot, options(nostack, readonly, preserves_flags)) };
    slot
}

fn set_slot(slot: *mut Slot) {
    // SAFETY: writes the calling thread's own word.
    unsafe { asm!("mov qword ptr fs:[varve_thread@TPOFF], {}", in(reg) slot, options(nostack, preserves_flags)) };
}

fn is_over() -> bool {
    let over: u64;
    // SAFETY: reads the calling thread's own word.
    unsafe { asm!("mov {}, qword ptr fs:[varve_thread@TPOFF+8]", out(reg) over, options(nostack, readonly, preserves_flags)) };
    over != 0
}

fn set_over() {
    // SAFETY: writes the calling thread's own word.
    unsafe { asm!("mov qword ptr fs:[varve_thread@TPOFF+8], {}", in(reg) 1u64, options(nostack, preserves_flags)) };
}

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn getpid() -> c_int;
    fn pthread_key_create(key: *mut u32, destructor: extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    fn pthread_atfork(prepare: *const c_void, parent: extern "C" fn(), child: extern "C" fn()) -> c_int;
    fn open(path: *const c_char, flags: c_int) -> c_int;
    fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize;
    fn close(fd: c_int) -> c_int;
}

/// The shared memory; null when the program runs alone.
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static STARTED: AtomicBool = AtomicBool::new(false);
/// The process was another program before; its first thread says so.
static REPLACED: AtomicBool = AtomicBool::new(false);
static RUNNING_THREADS: AtomicU32 = AtomicU32::new(0);
static mut KEY: u32 = 0;

pub fn shared() -> Shared {
    Shared { base: BASE.load(Relaxed) }
}

/// Does anybody listen? All that a program that runs alone asks per access.
#[inline(always)]
pub fn is_recorded() -> bool {
    !BASE.load(Relaxed).is_null()
}

/// Called by a constructor of every instrumented object.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    if STARTED.swap(true, AcqRel) {
        return;
    }
    // SAFETY: the name ends in a zero byte, and `getenv` returns null or a string.
    let path = unsafe {
        let text = getenv(c"VARVE_RING".as_ptr());
        if text.is_null() {
            return;
        }
        core::ffi::CStr::from_ptr(text)
    };
    let Some(shared) = attach(path) else { return };
    // SAFETY: no arguments.
    let pid = unsafe { getpid() } as u32;
    // a recorded program that has replaced itself by this one is the same process; a child is not
    let owner = shared.header().pid.compare_exchange(0, pid, SeqCst, SeqCst).unwrap_or_else(|owner| owner);
    let replaced = owner == pid;
    if owner != 0 && !replaced {
        return;
    }
    if replaced {
        shared.take_over();
        REPLACED.store(true, Relaxed);
    }
    shared.header().mode.store(2, SeqCst);
    write_modules(&shared);
    // SAFETY: the handlers have the types that the C library documents; the key is written before any thread uses it.
    unsafe {
        pthread_key_create(&raw mut KEY, on_thread_exit);
        pthread_atfork(core::ptr::null(), after_fork_in_parent, after_fork_in_child);
    }
    BASE.store(shared.base, Release);
}

/// The first access of a thread, or any access of one that is not recorded. Returns its slot, or null.
#[cold]
pub fn find_slot() -> *mut Slot {
    if BASE.load(Acquire).is_null() || is_over() {
        return null_mut();
    }
    let Some(number) = shared().take_slot() else {
        set_over();
        return null_mut();
    };
    set_slot(shared().slot(number));
    if REPLACED.swap(false, AcqRel) {
        shared().put(number, 0, EVENT_EXEC);
    }
    shared().start_thread(RUNNING_THREADS.fetch_add(1, AcqRel) + 1, number);
    // SAFETY: the key was created before the base was published. The value only has to be non-null.
    unsafe { pthread_setspecific(KEY, 1 as *const c_void) };
    slot()
}

/// Number of a slot of the shared memory.
pub fn number_of(slot: *mut Slot) -> usize {
    // SAFETY: the slot came from this mapping.
    unsafe { slot.offset_from(shared().slot(0)) as usize }
}

extern "C" fn on_thread_exit(_: *mut c_void) {
    let slot = slot();
    if !slot.is_null() {
        set_slot(null_mut());
        set_over();
        shared().end_thread(number_of(slot));
        RUNNING_THREADS.fetch_sub(1, AcqRel);
    }
}

extern "C" fn after_fork_in_parent() {
    if !BASE.load(Relaxed).is_null() {
        shared().header().forks.fetch_add(1, AcqRel);
    }
}

extern "C" fn after_fork_in_child() {
    BASE.store(null_mut(), SeqCst);
    set_slot(null_mut());
    set_over();
}

/// Tells the recorder which file is mapped where, so that call sites get names.
pub fn write_modules(shared: &Shared) {
    let mut buffer = [0u8; 4096];
    // SAFETY: the path ends in a zero byte; reads go into the buffer only.
    unsafe {
        let fd = open(c"/proc/self/maps".as_ptr(), 0);
        loop {
            let bytes = read(fd, buffer.as_mut_ptr().cast(), buffer.len());
            if bytes <= 0 {
                break;
            }
            // a read of this file ends with a whole line
            shared.add_modules(&buffer[..(bytes as usize).min(buffer.len())]);
        }
        close(fd);
    }
}

/// The thread may stop for a while: `work` is the call that may wait.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    let slot = slot();
    if slot.is_null() {
        return work();
    }
    let number = number_of(slot);
    shared().enter_wait(number);
    let result = work();
    // the slot is gone in a child that was forked meanwhile
    if !self::slot().is_null() {
        shared().leave_wait(number);
    }
    result
}
