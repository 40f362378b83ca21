//! Names of frames: functions, source lines and what was inlined, from a program's file or its separate debug file.
//!
//! Lines come from DWARF. Functions without it come from the symbol table. Debug files are found as debuggers find
//! them: by build id below `/usr/lib/debug/.build-id`, and by the name in `.gnu_debuglink`. Nothing is fetched from
//! elsewhere, and compressed debug sections are not read.
//!
//! ```
//! use varve_symbols::Binary;
//! let me = std::env::current_exe()?;
//! let binary = Binary::read(&me)?;
//! assert!(binary.frame(u64::MAX).function.is_none(), "no function is there");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | job |
//! |---|---|
//! | `binary` | [`Binary`]: functions and lines of a file |
//! | `elf` | a file, read and taken apart |
//! | `debug` | separate debug files |
//! | `statics` | static variables |
//! | `cpython` | the interpreter of Python in a file |
//! | `rebuilt` | a profile for files that were built anew |
//! | [`unwind`] | tables by which stacks without frame pointers are walked |
//! | [`import`] | profiles of native programs from what other tools have written |

mod binary;
mod calls;
mod cpython;
mod debug;
mod demangle;
mod elf;
pub mod import;
mod rebuilt;
mod statics;
pub mod unwind;

pub use binary::Binary;
pub use calls::{CALL_BYTES, ends_in_call};
pub use cpython::{CPython, cpython};
pub use demangle::demangle;
pub use elf::SymbolsError;
pub use rebuilt::{Rebuilt, rebuilt};
pub use statics::{LEAST_STATIC_BYTES, Static, statics};
