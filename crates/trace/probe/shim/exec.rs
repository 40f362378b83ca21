//! When the recorded program replaces itself by another one (exec), that one is started under QEMU too.
//!
//! The recorder leaves the words for that in `VARVE_EXEC`, a line each: QEMU, its options, last `-E` and the preloads.
//! Child processes are left alone: neither this library nor the words are in their environment.

use crate::Next;
use core::arch::{asm, naked_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

unsafe extern "C" {
    static mut environ: *mut *mut u8;
}

/// The words of the recorder, or null when the program is not to be followed.
static WORDS: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The process that is recorded.
static PROCESS: AtomicU32 = AtomicU32::new(0);

const OPEN: usize = 2;
const READ: usize = 0;
const CLOSE: usize = 3;
const ACCESS: usize = 21;
const GETPID: usize = 39;

const MOST_WORDS: usize = 16;
/// Scripts that name scripts as their interpreters; the kernel allows about as many.
const MOST_SCRIPTS: usize = 4;
const MOST_ARGS: usize = 4096;
const LINE_BYTES: usize = 256;

/// A system call that leaves `errno` alone.
fn system(call: usize, a: usize, b: usize, c: usize) -> isize {
    let result;
    // SAFETY: only called with the calls above and with pointers that live during the call.
    unsafe {
        asm!("syscall", inlateout("rax") call => result, in("rdi") a, in("rsi") b, in("rdx") c,
             lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Length of a string without its zero byte.
fn length(text: *const u8) -> usize {
    // SAFETY: strings of the program end in a zero byte.
    (0..).find(|&at| unsafe { text.add(at).read_volatile() } == 0).unwrap_or(0)
}

fn starts_with(text: *const u8, start: &[u8]) -> bool {
    // SAFETY: the comparison stops at the first difference, so not behind the zero byte.
    start.iter().enumerate().all(|(at, &byte)| unsafe { text.add(at).read_volatile() } == byte)
}

/// Keeps the recorder's words, and takes them and this library, which comes last in `LD_PRELOAD`, out of the environment.
pub extern "C" fn on_load(_: c_int, _: *mut *mut c_char, environment: *mut *mut u8) {
    PROCESS.store(system(GETPID, 0, 0, 0) as u32, Relaxed);
    let mut place = environment;
    // SAFETY: the environment is a list of strings that ends with a null pointer; no other thread runs yet.
    unsafe {
        while !place.is_null() && !(*place).is_null() {
            let text = *place;
            if starts_with(text, b"VARVE_EXEC=") {
                WORDS.store(text, Relaxed);
                remove(place);
            } else if starts_with(text, b"LD_PRELOAD=") {
                match (0..length(text)).rev().find(|&at| text.add(at).read() == b':') {
                    Some(colon) => {
                        text.add(colon).write(0);
                        place = place.add(1);
                    }
                    None => remove(place),
                }
            } else {
                place = place.add(1);
            }
        }
    }
}

/// Closes the gap at `place` in a list of pointers that ends with null.
///
/// # Safety
/// `place` is inside such a list, which nobody else uses.
unsafe fn remove(mut place: *mut *mut u8) {
    // SAFETY: the loop ends at the null pointer.
    unsafe {
        while !(*place).is_null() {
            *place = *place.add(1);
            place = place.add(1);
        }
    }
}

type Execve = unsafe extern "C" fn(*const u8, *const *const u8, *const *const u8) -> c_int;

static EXECVE: Next = Next::new(c"execve");

/// What the program asked for, without us.
fn plain(path: *const u8, args: *const *const u8, environment: *const *const u8) -> c_int {
    match EXECVE.get() {
        // SAFETY: the C library's function of this type, with the program's own arguments.
        Some(next) => unsafe { core::mem::transmute::<*mut c_void, Execve>(next)(path, args, environment) },
        None => -1,
    }
}

/// The words of a command line that is being put together.
struct Line {
    words: [*const u8; MOST_ARGS],
    count: usize,
}

impl Line {
    /// One place stays free for the null pointer at the end.
    fn push(&mut self, word: *const u8) -> bool {
        let fits = self.count + 1 < MOST_ARGS;
        if fits {
            self.words[self.count] = word;
            self.count += 1;
        }
        fits
    }
}

/// A first line of a script, cut into interpreter and option.
struct Script {
    bytes: [u8; LINE_BYTES],
    option: Option<usize>,
}

impl Script {
    /// The program itself (`Ok(None)`), a script (`Ok(Some)`), or something that is not to be followed.
    fn read(path: *const u8, into: &mut Script) -> Result<bool, ()> {
        const CAN_RUN: usize = 1;
        if system(ACCESS, path as usize, CAN_RUN, 0) != 0 {
            return Err(());
        }
        let file = system(OPEN, path as usize, 0, 0);
        if file < 0 {
            return Err(());
        }
        let got = system(READ, file as usize, into.bytes.as_mut_ptr() as usize, LINE_BYTES - 1);
        system(CLOSE, file as usize, 0, 0);
        let got = usize::try_from(got).map_err(|_| ())?;
        if got >= 4 && into.bytes.first_chunk() == Some(b"\x7fELF") {
            return Ok(false);
        }
        if got < 3 || into.bytes.first_chunk() != Some(b"#!") {
            return Err(());
        }
        into.cut(got)
    }

    /// Puts zero bytes behind the interpreter, which then starts at the third byte, and behind its option.
    fn cut(&mut self, got: usize) -> Result<bool, ()> {
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        let end = (2..got).find(|&at| self.bytes[at] == b'\n').ok_or(())?;
        self.bytes[end] = 0;
        let start = (2..end).find(|&at| !blank(self.bytes[at])).ok_or(())?;
        self.bytes.copy_within(start..=end, 2);
        let end = end - (start - 2);
        self.option = None;
        if let Some(gap) = (2..end).find(|&at| blank(self.bytes[at])) {
            self.option = (gap..end).find(|&at| !blank(self.bytes[at]));
            self.bytes[gap] = 0;
        }
        Ok(true)
    }

    fn interpreter(&self) -> *const u8 {
        &raw const self.bytes[2]
    }
}

/// Starts QEMU for the new program. Returns only when that is not possible.
fn follow(path: *const u8, args: *const *const u8, environment: *const *const u8) -> Option<()> {
    let words = WORDS.load(Relaxed);
    let is_recorded = system(GETPID, 0, 0, 0) as u32 == PROCESS.load(Relaxed);
    if words.is_null() || !is_recorded || args.is_null() {
        return None;
    }
    const NO_SCRIPT: Script = Script { bytes: [0; LINE_BYTES], option: None };
    let mut scripts = [NO_SCRIPT; MOST_SCRIPTS];
    let mut depth = 0;
    let mut program = path;
    loop {
        let script = scripts.get_mut(depth)?;
        if !Script::read(program, script).ok()? {
            break;
        }
        program = script.interpreter();
        depth += 1;
    }

    let mut text = [0u8; 4096];
    let line = &mut Line { words: [null(); MOST_ARGS], count: 0 };
    split_words(words, &mut text, line)?;
    // SAFETY: the program's list of words, which ends with a null pointer.
    let mut rest = unsafe {
        if !(*args).is_null() && depth == 0 {
            // the name that the program is to see
            let fits = line.push(c"-0".as_ptr().cast()) && line.push(*args);
            fits.then_some(())?;
        }
        if (*args).is_null() { args } else { args.add(1) }
    };
    line.push(program).then_some(())?;
    for level in (0..depth).rev() {
        if let Some(option) = scripts[level].option {
            line.push(&raw const scripts[level].bytes[option]).then_some(())?;
        }
        let script = if level == 0 { path } else { scripts[level - 1].interpreter() };
        line.push(script).then_some(())?;
    }
    // SAFETY: the same list.
    unsafe {
        while !(*rest).is_null() {
            line.push(*rest).then_some(())?;
            rest = rest.add(1);
        }
    }

    let variables = &mut Line { words: [null(); MOST_ARGS], count: 0 };
    let mut place = environment;
    // SAFETY: the environment is a list that ends with a null pointer.
    unsafe {
        while !place.is_null() && !(*place).is_null() {
            variables.push(*place).then_some(())?;
            place = place.add(1);
        }
    }
    variables.push(words).then_some(())?;
    plain(line.words[0], line.words.as_ptr(), variables.words.as_ptr());
    None
}

/// Copies the recorder's words into `text`, each with its zero byte, and puts them on the line.
fn split_words(words: *const u8, text: &mut [u8; 4096], line: &mut Line) -> Option<()> {
    let from = b"VARVE_EXEC=".len();
    let bytes = length(words).checked_sub(from)?;
    if bytes + 1 > text.len() {
        return None;
    }
    for at in 0..bytes {
        // SAFETY: below the length of the string.
        let byte = unsafe { words.add(from + at).read() };
        text[at] = if byte == b'\n' { 0 } else { byte };
    }
    let mut start = 0;
    for _ in 0..MOST_WORDS {
        line.push(&raw const text[start]).then_some(())?;
        match (start..bytes).find(|&at| text[at] == 0) {
            Some(end) => start = end + 1,
            None => return Some(()),
        }
    }
    None
}

/// The function of the C library with this name.
#[unsafe(no_mangle)]
pub extern "C" fn execve(path: *const u8, args: *const *const u8, environment: *const *const u8) -> c_int {
    follow(path, args, environment);
    plain(path, args, environment)
}

/// The function of the C library with this name.
#[unsafe(no_mangle)]
pub extern "C" fn execv(path: *const u8, args: *const *const u8) -> c_int {
    // SAFETY: the C library's variable.
    execve(path, args, unsafe { environ }.cast())
}

/// The function of the C library with this name.
#[unsafe(no_mangle)]
pub extern "C" fn execvp(file: *const u8, args: *const *const u8) -> c_int {
    // SAFETY: the C library's variable.
    execvpe(file, args, unsafe { environ }.cast())
}

/// The function of the C library with this name.
#[unsafe(no_mangle)]
pub extern "C" fn execvpe(file: *const u8, args: *const *const u8, environment: *const *const u8) -> c_int {
    type Execvpe = unsafe extern "C" fn(*const u8, *const *const u8, *const *const u8) -> c_int;
    static EXECVPE: Next = Next::new(c"execvpe");
    let mut path = [0u8; 4096];
    if let Some(found) = find(file, environment, &mut path) {
        follow(found, args, environment);
    }
    match EXECVPE.get() {
        // SAFETY: the C library's function of this type, with the program's own arguments.
        Some(next) => unsafe { core::mem::transmute::<*mut c_void, Execvpe>(next)(file, args, environment) },
        None => -1,
    }
}

/// Functions with the words as arguments: the five that are in registers are put below the return address and those
/// on the stack, and the place of all is the second argument.
macro_rules! with_words {
    ($($name:ident => $inner:ident)*) => {
        $(
            /// The function of the C library with this name.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "push r9", "push r8", "push rcx", "push rdx", "push rsi",
                    "mov rsi, rsp",
                    "call {inner}",
                    "add rsp, 40",
                    "ret",
                    inner = sym $inner
                )
            }
        )*
    };
}

with_words!(execl => on_execl execlp => on_execlp execle => on_execle);

/// Collects the words up to the null pointer; also returns what comes behind it.
///
/// # Safety
/// `place` holds five words, a return address, and then the rest, as `with_words` leaves them.
unsafe fn collect(place: *const *const u8, line: &mut Line) -> Option<*const u8> {
    const IN_REGISTERS: usize = 5;
    // SAFETY: the program's own arguments end with a null pointer.
    let word = |at: usize| unsafe { place.add(if at < IN_REGISTERS { at } else { at + 1 }).read() };
    for at in 0..MOST_ARGS {
        if word(at).is_null() {
            return Some(word(at + 1));
        }
        line.push(word(at)).then_some(())?;
    }
    None
}

const NO_LINE: Line = Line { words: [null(); MOST_ARGS], count: 0 };
const TOO_MANY: c_int = -1;

extern "C" fn on_execl(path: *const u8, place: *const *const u8) -> c_int {
    let line = &mut { NO_LINE };
    // SAFETY: called by `with_words`; the environment is the C library's variable.
    unsafe { collect(place, line).map_or(TOO_MANY, |_| execve(path, line.words.as_ptr(), environ.cast())) }
}

extern "C" fn on_execlp(file: *const u8, place: *const *const u8) -> c_int {
    let line = &mut { NO_LINE };
    // SAFETY: called by `with_words`; the environment is the C library's variable.
    unsafe { collect(place, line).map_or(TOO_MANY, |_| execvpe(file, line.words.as_ptr(), environ.cast())) }
}

extern "C" fn on_execle(path: *const u8, place: *const *const u8) -> c_int {
    let line = &mut { NO_LINE };
    // SAFETY: called by `with_words`; the environment follows the null pointer.
    unsafe { collect(place, line).map_or(TOO_MANY, |environment| execve(path, line.words.as_ptr(), environment.cast())) }
}

/// Looks a command up in `PATH`; the answer is in `path`, or `file` itself.
fn find(file: *const u8, environment: *const *const u8, path: &mut [u8; 4096]) -> Option<*const u8> {
    let name = length(file);
    // SAFETY: below the length of the string; the environment ends with a null pointer.
    unsafe {
        if (0..name).any(|at| file.add(at).read() == b'/') {
            return Some(file);
        }
        let mut place = environment;
        while !place.is_null() && !(*place).is_null() && !starts_with(*place, b"PATH=") {
            place = place.add(1);
        }
        if place.is_null() || (*place).is_null() {
            return None;
        }
        let mut folder = (*place).add(5);
        loop {
            let end = (0..).find(|&at| matches!(folder.add(at).read(), 0 | b':'))?;
            if end + 1 + name < path.len() {
                for at in 0..end {
                    path[at] = folder.add(at).read();
                }
                path[end] = b'/';
                for at in 0..=name {
                    path[end + 1 + at] = file.add(at).read();
                }
                const CAN_RUN: usize = 1;
                if system(ACCESS, path.as_ptr() as usize, CAN_RUN, 0) == 0 {
                    return Some(path.as_ptr());
                }
            }
            if folder.add(end).read() == 0 {
                return None;
            }
            folder = folder.add(end + 1);
        }
    }
}
