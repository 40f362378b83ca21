//! Where CPython has what, by its version. Offsets are those of 64-bit builds with the interpreter's lock.

use super::{MOST_BYTES, Memory, word_in};

/// Offsets in the interpreter's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `_PyRuntimeState`: the first interpreter.
    pub interpreters: u64,
    /// `PyInterpreterState`: the next one, and its first thread.
    pub next_interpreter: u64,
    pub threads: u64,
    /// `PyThreadState`.
    pub previous_thread: u64,
    pub next_thread: u64,
    pub interpreter: u64,
    pub thread: u64,
    /// The current frame, or where it is.
    pub current: u64,
    /// Up to 3.12 the thread has a structure that has the current frame, here.
    pub in_between: Option<u64>,
    /// `_PyInterpreterFrame`.
    pub code: u64,
    pub previous: u64,
    pub instruction: u64,
    pub owner: u64,
    /// `PyCodeObject`.
    pub file: u64,
    pub name: u64,
    pub first_line: u64,
    pub lines: u64,
    pub instructions: u64,
    /// `PyASCIIObject`: its size.
    pub ascii: u64,
}

/// Frames with this owner, or a higher number, are no function's.
pub const OWNED_BY_NONE: u8 = 3;

/// Words of the table that a newer interpreter has at its beginning: see [`told`].
const TABLE_WORDS: usize = 96;
const COOKIE: &[u8; 8] = b"xdebugpy";

/// The layout of a version (`PY_VERSION_HEX`) whose state is at `runtime`. `None` if it is not known.
pub fn layout(version: u32, runtime: u64, memory: &mut impl Memory) -> Option<Layout> {
    // 3.11: pycore_runtime.h, pycore_interp.h, cpython/pystate.h, pycore_frame.h, cpython/code.h
    let first = Layout {
        interpreters: 40,
        next_interpreter: 0,
        threads: 16,
        previous_thread: 0,
        next_thread: 8,
        interpreter: 16,
        thread: 152,
        current: 56,
        in_between: Some(8),
        code: 32,
        previous: 48,
        instruction: 56,
        owner: 69,
        file: 112,
        name: 128,
        first_line: 72,
        lines: 136,
        instructions: 184,
        ascii: 48,
    };
    match version >> 16 {
        0x030b => Some(first),
        0x030c => Some(Layout {
            threads: 72,
            thread: 136,
            in_between: Some(0),
            code: 0,
            previous: 8,
            owner: 70,
            first_line: 68,
            instructions: 192,
            ascii: 40,
            ..first
        }),
        0x030d.. => told(runtime, memory),
        _ => None,
    }
}

/// The layout that an interpreter says itself since 3.13 (`_Py_DebugOffsets`), for debuggers.
///
/// The table grows from version to version. Its beginning does not move. The parts behind it are found by what has been the
/// same in all: a thread begins with its neighbours and its interpreter, and a code object has its file, two names and its
/// lines in this order.
fn told(runtime: u64, memory: &mut impl Memory) -> Option<Layout> {
    let mut bytes = [0; TABLE_WORDS * 8];
    if !memory.read(runtime, &mut bytes) || !bytes.starts_with(COOKIE) {
        return None;
    }
    let word = |at: usize| word_in(&bytes, at as u64 * 8).unwrap_or(u64::MAX);
    // Without the lock, objects begin with other words.
    let is_free_threaded = word(2) != 0;
    if is_free_threaded {
        return None;
    }
    let is_thread = |at: &usize| [word(*at), word(*at + 1), word(*at + 2)] == [0, 8, 16];
    let thread = (7..40).find(is_thread)?;
    let frame = thread + 9;
    let is_code = |at: &usize| {
        let file = word(*at);
        let next = [8, 16, 24].map(|bytes| file.wrapping_add(bytes));
        [word(*at + 1), word(*at + 2), word(*at + 3)] == next
    };
    let code = (frame + 5..frame + 16).find(is_code)?;
    let layout = Layout {
        interpreters: word(5),
        next_interpreter: word(8),
        threads: word(9),
        previous_thread: word(thread),
        next_thread: word(thread + 1),
        interpreter: word(thread + 2),
        current: word(thread + 3),
        thread: word(thread + 4),
        in_between: None,
        previous: word(frame),
        code: word(frame + 1),
        instruction: word(frame + 2),
        owner: word(frame + 4),
        file: word(code),
        name: word(code + 2),
        lines: word(code + 3),
        first_line: word(code + 4),
        instructions: word(code + 8),
        ascii: 40,
    };
    let small = [
        layout.current,
        layout.thread,
        layout.code,
        layout.previous,
        layout.instruction,
        layout.owner,
        layout.first_line,
        layout.lines,
        layout.instructions,
    ];
    small
        .iter()
        .all(|&at| at < MOST_BYTES as u64 - 8)
        .then_some(layout)
}
