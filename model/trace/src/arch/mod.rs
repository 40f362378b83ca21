//! The only code of the recorder and its probes that depends on the processor.
//!
//! | file | included by | contents |
//! |---|---|---|
//! | `x86_64/recorder.rs` | this crate | programs that can be recorded, their emulator, the form of call instructions |
//! | `x86_64/futex.rs` | `probe/ring.rs`: this crate and all probes | the number of a system call |
//! | `x86_64/decode.rs` | `probe/qemu` | the effect of an instruction on memory and registers |
//! | `x86_64/guest.rs` | `probe/qemu` | the numbers of a program's system calls |
//! | `x86_64/entry.rs` | `probe/shim`, `probe/tsan` | functions that know their callers |
//! | `x86_64/shim.rs` | `probe/shim` | system calls, frames |
//! | `x86_64/tsan.rs` | `probe/tsan` | thread-local words, functions that are begun and left, atomics of 16 bytes |
//!
//! A port to another processor is a folder with the same files, and its name here, in `build.rs`, and where the probes include them. Without one
//! the crate reads and writes traces, embeds no probes, and says so when it is asked to record.

#[path = "x86_64/recorder.rs"]
mod recorder;

pub(crate) use recorder::*;
