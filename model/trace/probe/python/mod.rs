//! Which lines of a Python program a thread is in, by the state of CPython (3.11 and later).
//!
//! The state is read from outside. Functions of the interpreter would say the same, but a program allocates at any time:
//! without the interpreter's lock, while a frame is made, inside of a signal handler. Those functions must not be
//! called then, some allocate themselves, and their instructions would be recorded. Memory that is read may hold anything, so each read can
//! fail, each walk has an end, and a wrong answer is a wrong name at worst.
//!
//! | file | job |
//! |---|---|
//! | `layout` | where things are, by version |
//! | `frames` | the frames of a thread |
//! | `code` | name and lines of a code object |
//!
//! Needs nothing but the standard library: the plugin includes it, and so do tests.

pub mod code;
pub mod frames;
pub mod layout;

/// No structure that is read at once is larger.
const MOST_BYTES: usize = 512;

/// Memory of the program.
pub trait Memory {
    /// Reads all of `into` at an address; `false` if it is not readable.
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool;

    /// A word.
    fn word(&mut self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }
}

/// The word in a piece of memory that was read.
fn word_in(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
