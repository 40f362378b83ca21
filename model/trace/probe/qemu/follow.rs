//! When a recorded process, the first or a child, becomes another program (exec), this starts QEMU with the plugin for
//! that one, instead of letting QEMU start it without. Shells, `system`, `posix_spawn` and the like all come here.

use crate::ring::*;
use crate::*;
use std::ffi::CString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// QEMU's own words, up to the program that it runs.
static QEMU: Mutex<Vec<CString>> = Mutex::new(Vec::new());
/// This process, as it was when it got its place.
static PID: AtomicU32 = AtomicU32::new(0);

/// A script may name a script; more levels are refused by the kernel as well.
const MOST_SCRIPTS: usize = 4;
const LINE_BYTES: usize = 256;
/// More words, or longer ones, are refused by the kernel.
const MOST_WORDS: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 17;

unsafe extern "C" {
    fn execve(
        path: *const c_char,
        args: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
}

/// Remembers how QEMU was started: `words` options before the program.
pub fn keep_words(words: usize) {
    PID.store(std::process::id(), Relaxed);
    let Ok(line) = std::fs::read("/proc/self/cmdline") else {
        return;
    };
    let words = line
        .split(|&byte| byte == 0)
        .take(words + 1)
        .filter_map(|word| CString::new(word).ok());
    if let Ok(mut kept) = QEMU.lock() {
        *kept = words.collect();
    }
}

/// The program that this process began with, by the path that it was started by; `words` as above.
pub fn program(words: usize) -> Option<PathBuf> {
    let line = std::fs::read("/proc/self/cmdline").ok()?;
    let mut rest = line.split(|&byte| byte == 0).skip(words + 1);
    let mut path = rest.next()?;
    // another name for the program, which `start` has put there
    if path == b"-0" {
        path = rest.nth(1)?;
    }
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    Some(std::env::current_dir().ok()?.join(path))
}

/// The guest's memory cannot be seen: only forks are followed.
pub fn keep_nothing() {
    PID.store(std::process::id(), Relaxed);
}

/// Was this process forked since the last answer?
pub fn is_child() -> bool {
    let now = std::process::id();
    PID.swap(now, Relaxed) != now
}

/// Reads at most `into.len()` bytes of the guest's memory, fewer where it is not readable. Its addresses are ours,
/// which is checked when a program begins.
pub fn guest(at: u64, into: &mut [u8]) -> usize {
    #[repr(C)]
    struct Range {
        start: *mut u8,
        bytes: usize,
    }
    unsafe extern "C" {
        fn process_vm_readv(
            pid: c_int,
            to: *const Range,
            to_count: u64,
            from: *const Range,
            from_count: u64,
            flags: u64,
        ) -> isize;
    }
    let to = Range {
        start: into.as_mut_ptr(),
        bytes: into.len(),
    };
    let from = Range {
        start: at as *mut u8,
        bytes: into.len(),
    };
    // SAFETY: the kernel writes into `into` only, and refuses unreadable memory.
    let got = unsafe { process_vm_readv(std::process::id() as c_int, &to, 1, &from, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// Are addresses of the guest addresses of this process? `bytes` are those of an instruction at `pc`.
pub fn sees_guest(pc: u64, bytes: &[u8]) -> bool {
    let mut here = [0; 16];
    let length = bytes.len().min(here.len());
    guest(pc, &mut here[..length]) == length && here[..length] == bytes[..length]
}

/// A string of the guest.
fn text(mut at: u64) -> Option<CString> {
    let mut bytes = Vec::new();
    while bytes.len() < MOST_BYTES {
        // up to the end of a page, behind which nothing may be
        let mut piece = [0; 256];
        let most = piece.len().min(4096 - at as usize % 4096);
        let got = guest(at, &mut piece[..most]);
        if got == 0 {
            return None;
        }
        if let Some(end) = piece[..got].iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return CString::new(bytes).ok();
        }
        bytes.extend_from_slice(&piece[..got]);
        at += got as u64;
    }
    None
}

/// A list of strings of the guest.
fn texts(at: u64) -> Option<Vec<CString>> {
    let mut all = Vec::new();
    for number in 0..MOST_WORDS as u64 {
        let mut place = [0; 8];
        if at == 0 {
            break;
        }
        if guest(at + 8 * number, &mut place) < 8 {
            return None;
        }
        match u64::from_le_bytes(place) {
            0 => break,
            place => all.push(text(place)?),
        }
    }
    Some(all)
}

/// The program that an exec starts.
enum Found {
    /// A program that QEMU runs, with the words that come before the second of the program's own.
    Program(PathBuf, Vec<CString>),
    /// Nothing: the call will fail.
    Nothing,
    /// A program that cannot be recorded.
    Other,
}

/// Follows scripts to the program behind a path.
fn find(path: &Path) -> Found {
    let mut words: Vec<CString> = Vec::new();
    let mut program = path.to_path_buf();
    for _ in 0..=MOST_SCRIPTS {
        const CAN_RUN: c_int = 1;
        let Ok(name) = CString::new(program.as_os_str().as_bytes()) else {
            return Found::Nothing;
        };
        let mode = std::fs::metadata(&program).map(|meta| meta.permissions().mode());
        // SAFETY: the path is a string.
        let can_run = unsafe { access(name.as_ptr(), CAN_RUN) == 0 };
        let (true, Ok(mode)) = (can_run, mode) else {
            return Found::Nothing;
        };
        let mut start = Vec::new();
        let read = std::fs::File::open(&program)
            .map(|file| file.take(LINE_BYTES as u64).read_to_end(&mut start));
        if !matches!(read, Ok(Ok(_))) || mode & 0o6000 != 0 {
            return Found::Other;
        }
        if let Some(line) = start.strip_prefix(b"#!") {
            let line = line
                .split(|&byte| byte == b'\n')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            let mut parts = line.splitn(2, |byte| byte.is_ascii_whitespace());
            let interpreter = parts.next().unwrap_or_default();
            let option = parts
                .next()
                .map(<[u8]>::trim_ascii)
                .filter(|option| !option.is_empty());
            let mut before: Vec<CString> = option
                .and_then(|option| CString::new(option).ok())
                .into_iter()
                .collect();
            before.push(name);
            before.append(&mut words);
            words = before;
            program = Path::new(std::ffi::OsStr::from_bytes(interpreter)).to_path_buf();
            continue;
        }
        // 64 bits, for this processor
        let fits = start.starts_with(b"\x7fELF\x02") && start.get(18..20) == Some(&[62, 0]);
        return if fits {
            Found::Program(program, words)
        } else {
            Found::Other
        };
    }
    Found::Nothing
}

/// `execve` of the guest. Returns when the program is not there or cannot be followed; QEMU goes on then.
pub fn exec(slot: usize, path: u64, args: u64, environment: u64) {
    if let Some(path) = text(path) {
        start(
            slot,
            Path::new(std::ffi::OsStr::from_bytes(path.as_bytes())),
            args,
            environment,
        );
    }
}

/// `execveat` of the guest.
pub fn exec_at(slot: usize, folder: i32, path: u64, args: u64, environment: u64, flags: u64) {
    const CURRENT: i32 = -100;
    const NO_PATH: u64 = 0x1000;
    let Some(path) = text(path) else { return };
    let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
    let opened = PathBuf::from(format!("/proc/self/fd/{folder}"));
    if path.as_os_str().is_empty() && flags & NO_PATH != 0 {
        // the link is gone after exec, its target is not
        let file = std::fs::read_link(&opened).unwrap_or(opened);
        start(slot, &file, args, environment);
    } else if folder == CURRENT || path.is_absolute() {
        start(slot, path, args, environment);
    } else {
        start(slot, &opened.join(path), args, environment);
    }
}

fn start(slot: usize, path: &Path, args: u64, environment: u64) {
    let header = shared().header();
    let (mut program, before) = match find(path) {
        Found::Program(program, before) => (program, before),
        Found::Nothing => return,
        Found::Other => {
            header.lost_processes.fetch_add(1, AcqRel);
            return;
        }
    };
    // under QEMU, this link is QEMU
    if program == Path::new("/proc/self/exe") {
        return lose(header);
    }
    if program.is_relative() {
        program = Path::new(".").join(program);
    }
    let (Some(args), Some(environment)) = (texts(args), texts(environment)) else {
        return;
    };
    let Ok(program) = CString::new(program.as_os_str().as_bytes()) else {
        return;
    };
    let mut line = QEMU.lock().map(|words| words.clone()).unwrap_or_default();
    if line.is_empty() {
        return lose(header);
    }
    if let (true, Some(name)) = (before.is_empty(), args.first()) {
        line.extend([c"-0".to_owned(), name.clone()]);
    }
    line.push(program);
    line.extend(before);
    line.extend(args.into_iter().skip(1));
    let pointers = |words: &[CString]| -> Vec<*const c_char> {
        words
            .iter()
            .map(|word| word.as_ptr())
            .chain([core::ptr::null()])
            .collect()
    };
    let (words, variables) = (pointers(&line), pointers(&environment));
    shared().publish(slot);
    shared().set_replaced(std::process::id(), true);
    shared().ring();
    // SAFETY: lists of strings that end with a null pointer.
    unsafe { execve(words[0], words.as_ptr(), variables.as_ptr()) };
    shared().set_replaced(std::process::id(), false);
}

fn lose(header: &Header) {
    header.lost_processes.fetch_add(1, AcqRel);
}
