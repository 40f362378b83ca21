//! From the first block that a process asks for to its end.

use crate::entry::PLAIN;
use crate::map::{Map, map};
use crate::{budget, line, mapped, memory, modules, report, sampled, sandbox, share, sys, thread};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Addresses are reserved; the environment could not be read yet.
const RESERVED: u32 = 1;
/// All is known.
const BEGUN: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(0);
/// A thread is at it. Others go on without.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// The process of which the counts are. In the child of a `vfork` it is still the parent.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Runs before the program's own code. Other libraries may have asked for blocks before.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    begin();
}

/// Called with the first blocks, until it is known whether there is a site map.
#[cold]
pub fn begin() {
    unsafe extern "C" {
        static environ: *const *const std::ffi::c_char;
    }
    if STATE.load(Ordering::Acquire) == BEGUN || BUSY.swap(1, Ordering::Acquire) == 1 {
        return;
    }
    sys::keeping_errno(|| {
        if STATE.load(Relaxed) < RESERVED {
            memory::set_errno_on_failure();
            thread::prepare();
            memory::reserve();
            STATE.store(RESERVED, Ordering::Release);
        }
        // The C library finds its environment somewhat after the linker's first blocks.
        // SAFETY: only read, at the start.
        if !unsafe { environ }.is_null() {
            // Allocations on the way are not placed.
            let placed = read_map();
            STATE.store(BEGUN, Ordering::Release);
            if !placed {
                PLAIN.store(1, Relaxed);
                memory::prefer_huge_pages();
            }
        }
    });
    BUSY.store(0, Ordering::Release);
}

/// Whether objects are placed from now on.
fn read_map() -> bool {
    let Some(path) = sys::variable(c"VARVE_OBJECTS_MAP") else {
        return false;
    };
    // SAFETY: asks for a number.
    PROCESS.store(unsafe { libc::getpid() }, Relaxed);
    if let Some(report) = sys::variable(c"VARVE_OBJECTS_REPORT") {
        line::begin(Path::new(OsStr::from_bytes(report.to_bytes())));
    }
    if let Err(why) = follow_map(path) {
        report::idle(why);
        return false;
    }
    // SAFETY: functions of this library, which stays loaded.
    unsafe {
        libc::pthread_atfork(None, None, Some(after_fork));
        libc::atexit(finish);
    }
    true
}

fn follow_map(path: &std::ffi::CStr) -> Result<(), &'static str> {
    let (at, bytes) =
        sys::map_file(path, false).ok_or("the site map cannot be read (VARVE_OBJECTS_MAP)")?;
    // Everything is made ready with a map of its own before it is in force.
    let map = Map::at(at, bytes).ok_or("the site map is of another version")?;
    memory::begin(&map)?;
    thread::begin(&map)?;
    budget::begin(&map)?;
    modules::begin(&map)?;
    map.begin();
    budget::decide();
    sampled::begin();
    Ok(())
}

extern "C" fn after_fork() {
    if !sandbox::closed() {
        // SAFETY: asks for a number.
        PROCESS.store(unsafe { libc::getpid() }, Relaxed);
    }
    line::after_fork();
    thread::all().for_each(thread::Thread::forget_history);
    modules::after_fork();
    budget::after_fork();
    mapped::after_fork();
    sampled::after_fork();
}

/// Writes the report, once. The child of a `vfork` ends on its parent's counts, which go on.
extern "C" fn finish() {
    let Some(map) = map() else { return };
    let own = match sandbox::closed() {
        true => PROCESS.load(Relaxed),
        // SAFETY: asks for a number.
        false => unsafe { libc::getpid() },
    };
    if PROCESS
        .compare_exchange(own, 0, Ordering::AcqRel, Relaxed)
        .is_ok()
    {
        sys::keeping_errno(|| report::write(map));
        thread::tell_all();
        share::end();
    }
}

/// `_exit(2)`: many programs end without running exit handlers.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: i32) -> ! {
    finish();
    // SAFETY: ends the process.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    unreachable!("exit_group does not return")
}

/// `_Exit(3)`.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: i32) -> ! {
    // SAFETY: the same.
    unsafe { _exit(status) }
}
