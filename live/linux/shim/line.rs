//! The line of JSON that each process of a run leaves when it ends.
//!
//! A process may have given up by then what it takes to write a file: its rights, its root, its descriptors, or system calls. So
//! room for the line is mapped when the process begins, in a file of its own beside the report. Where the report can still be
//! written, that file goes; a process that is killed leaves it empty.

use std::ffi::{c_int, c_long};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of room for a line. The file has no holes: to write into one on a full disk ends a program.
const ROOM: usize = 1 << 18;

/// Set before the process forbids itself system calls: a line goes to its room from then on.
pub static CLOSED: AtomicBool = AtomicBool::new(false);

struct Room {
    address: usize,
    file: PathBuf,
}

struct Line {
    report: PathBuf,
    room: Option<Room>,
    pid: u32,
    program: String,
}

static LINE: Mutex<Option<Line>> = Mutex::new(None);

unsafe extern "C" {
    // Not the C library's `mmap`, which the library around us may stand before.
    fn syscall(number: c_long, ...) -> c_long;
}

/// `SYS_mmap`.
#[cfg(target_arch = "x86_64")]
const MMAP: c_long = 9;
#[cfg(not(target_arch = "x86_64"))]
const MMAP: c_long = 222;

/// `SYS_fallocate`.
#[cfg(target_arch = "x86_64")]
const FALLOCATE: c_long = 285;
#[cfg(not(target_arch = "x86_64"))]
const FALLOCATE: c_long = 47;

/// This process will leave its line in `report`.
pub fn begin(report: &Path) {
    let pid = std::process::id();
    let line = Line {
        report: report.into(),
        room: room(report, pid),
        pid,
        program: program(),
    };
    *lock() = Some(line);
}

/// In the child of a fork, which has a line of its own. One without system calls cannot make room.
pub fn after_fork() {
    let report = {
        let mut line = lock();
        let Some(line) = &mut *line else { return };
        // The room is the parent's.
        line.room = None;
        line.report.clone()
    };
    if !CLOSED.load(Relaxed) {
        begin(&report);
    }
}

/// Leaves the line, which ends with a line feed.
pub fn leave(text: &str) {
    let mut line = lock();
    let Some(line) = &mut *line else { return };
    let room = line.room.take();
    if !CLOSED.load(Relaxed) {
        let file = File::options().append(true).create(true).open(&line.report);
        // In one write, so that lines of several processes do not mix.
        if file
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .is_ok()
        {
            return remove(room);
        }
    }
    let Some(room) = room else {
        if !CLOSED.load(Relaxed) {
            eprintln!("varve: cannot write the report {}", line.report.display());
        }
        return;
    };
    let bytes = text.len().min(ROOM);
    // SAFETY: a mapping of that many bytes, which is never given back, and is written once.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), room.address as *mut u8, bytes) };
}

/// Leaves nothing, for want of anything to say.
pub fn leave_nothing() {
    let mut line = lock();
    if let Some(line) = &mut *line
        && !CLOSED.load(Relaxed)
    {
        remove(line.room.take());
    }
}

/// What each line begins with: the process, and its program as the kernel calls it.
pub fn process() -> String {
    let line = lock();
    let (pid, known) = match &*line {
        Some(line) if CLOSED.load(Relaxed) => (line.pid, line.program.clone()),
        _ => (std::process::id(), program()),
    };
    format!("\"pid\":{pid},\"program\":{}", quoted(&known))
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn lock() -> std::sync::MutexGuard<'static, Option<Line>> {
    LINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn program() -> String {
    let name = fs::read("/proc/self/comm").unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    // It may be printed, where a terminal would take these as commands.
    name.trim_end_matches('\n').replace(char::is_control, "?")
}

fn remove(room: Option<Room>) {
    if let Some(room) = room {
        let _ = fs::remove_file(room.file);
    }
}

/// Room in a new file, of which the name has the number of the process. `None` where none can be had: then the report must do.
fn room(report: &Path, pid: u32) -> Option<Room> {
    // The number may have been another process's, or a program's that this process was before.
    for turn in 0..1000 {
        let mut name = report.as_os_str().to_owned();
        name.push(format!(".{pid}.{turn}"));
        let file = PathBuf::from(name);
        match File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&file)
        {
            Ok(open) => {
                let address = allocate(&open).then(|| map(&open)).flatten();
                return match address {
                    Some(address) => Some(Room { address, file }),
                    None => {
                        let _ = fs::remove_file(&file);
                        None
                    }
                };
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Takes the file's bytes from the disk.
fn allocate(file: &File) -> bool {
    let descriptor = c_long::from(file.as_raw_fd());
    // SAFETY: an open file of ours.
    unsafe {
        syscall(
            FALLOCATE,
            descriptor,
            0 as c_long,
            0 as c_long,
            ROOM as c_long,
        ) == 0
    }
}

fn map(file: &File) -> Option<usize> {
    const READ_AND_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    let descriptor = c_long::from(file.as_raw_fd());
    let none = std::ptr::null_mut::<u8>();
    // SAFETY: a new shared mapping of a file of ours.
    let at = unsafe {
        syscall(
            MMAP,
            none,
            ROOM,
            READ_AND_WRITE,
            SHARED,
            descriptor,
            0 as c_long,
        )
    };
    (at > 0).then_some(at as usize)
}
