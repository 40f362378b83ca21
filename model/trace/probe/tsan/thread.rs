//! Where the calling thread writes: found once per thread, kept in thread-local storage.

pub use crate::arch::slot;
use crate::arch::{self, LEVELS, is_over, set_over, set_slot};
use crate::ring::*;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};

/// From where the function that is `level` levels up was called; 0 when there is none.
pub fn called_from(level: usize) -> usize {
    let depth = arch::depth();
    match level < depth.min(LEVELS) {
        // SAFETY: the place is among the thread's words.
        true => unsafe { arch::caller((depth - 1 - level) % LEVELS) },
        false => 0,
    }
}

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn getpid() -> c_int;
    fn pthread_key_create(key: *mut u32, destructor: extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    fn pthread_atfork(
        prepare: *const c_void,
        parent: *const c_void,
        child: extern "C" fn(),
    ) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize;
    fn close(fd: c_int) -> c_int;
}

/// The shared memory; null when the program runs alone.
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static STARTED: AtomicBool = AtomicBool::new(false);
/// The process was another program before; its first thread reports that.
static REPLACED: AtomicBool = AtomicBool::new(false);
/// The number of this process.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process that this one was forked from; [`NO_PARENT`] for none.
static PARENT: AtomicU32 = AtomicU32::new(NO_PARENT);
const NO_PARENT: u32 = u32::MAX;
static mut KEY: u32 = 0;

pub fn shared() -> Shared {
    Shared {
        base: BASE.load(Relaxed),
    }
}

/// Is the program recorded? An unrecorded program pays for this check alone on each access.
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
    let Some((process, replaced)) = shared.begin_program(pid()) else {
        return;
    };
    PROCESS.store(process, Relaxed);
    REPLACED.store(replaced, Relaxed);
    shared.header().mode.store(2, SeqCst);
    write_modules(&shared);
    // SAFETY: the handlers have the types that the C library documents; the key is written before any thread uses it.
    unsafe {
        pthread_key_create(&raw mut KEY, on_thread_exit);
        pthread_atfork(core::ptr::null(), core::ptr::null(), after_fork_in_child);
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
        shared().put(number, EVENT_EXEC, &[]);
    }
    shared().start_thread(number, PROCESS.load(Relaxed), parent());
    // SAFETY: the key was created before the base was published. The value only has to be non-null.
    unsafe { pthread_setspecific(KEY, core::ptr::without_provenance(1)) };
    slot()
}

fn parent() -> Option<u32> {
    Some(PARENT.load(Relaxed)).filter(|parent| *parent != NO_PARENT)
}

/// The number of this process.
pub fn process() -> u32 {
    PROCESS.load(Relaxed)
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
    }
}

/// The child goes on under a number of its own; its thread takes a slot with its next access.
extern "C" fn after_fork_in_child() {
    let base = BASE.load(Relaxed);
    set_slot(null_mut());
    if base.is_null() {
        return;
    }
    match shared().add_process(pid()) {
        Some(process) => {
            PARENT.store(PROCESS.swap(process, Relaxed), Relaxed);
            write_modules(&shared());
        }
        None => {
            BASE.store(null_mut(), SeqCst);
            set_over();
        }
    }
}

/// This process has reported that it is about to become another program.
static REPLACING: AtomicBool = AtomicBool::new(false);

/// Reports that the process becomes another program.
pub fn replacing() {
    REPLACING.store(true, Relaxed);
    shared().set_replaced(pid(), true);
}

/// It goes on, so it has not become another program.
pub fn still_here() {
    if REPLACING.swap(false, Relaxed) {
        shared().set_replaced(pid(), false);
    }
}

/// The number of this process on the system.
pub fn pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { getpid() as u32 }
}

/// Writes for the recorder which file is mapped where, so that call sites get names. Each line begins with the number
/// of the process.
pub fn write_modules(shared: &Shared) {
    let mut buffer = [0u8; 4096];
    // the number and a space, from the end on
    let mut start = [b' '; 11];
    let mut length = 1;
    let mut process = PROCESS.load(Relaxed);
    for digit in start.iter_mut().rev().skip(1) {
        *digit = b'0' + (process % 10) as u8;
        length += 1;
        process /= 10;
        if process == 0 {
            break;
        }
    }
    let number = start.get(start.len() - length..).unwrap_or(&[]);
    // SAFETY: the path ends in a zero byte; reads go into the buffer only.
    unsafe {
        let fd = open(c"/proc/self/maps".as_ptr(), 0);
        loop {
            let bytes = read(fd, buffer.as_mut_ptr().cast(), buffer.len());
            if bytes <= 0 {
                break;
            }
            // a read of this file ends with a whole line
            let text = buffer.get(..bytes as usize).unwrap_or(&[]);
            let mut rest = text;
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let (line, later) = rest.split_at_checked(end + 1).unwrap_or((rest, &[]));
                shared.add_line(number, line);
                rest = later;
            }
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
