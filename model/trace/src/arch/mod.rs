//! All that the recorder and its probes know of the processor.
//!
//! | file | who includes it | what it has |
//! |---|---|---|
//! | `x86_64/recorder.rs` | this crate | which programs can be recorded, the emulator for them, what a call instruction looks like |
//! | `x86_64/futex.rs` | `probe/ring.rs`: this crate and all probes | the number of a system call |
//! | `x86_64/decode.rs` | `probe/qemu` | what an instruction does to memory and registers |
//! | `x86_64/guest.rs` | `probe/qemu` | the numbers of a program's system calls |
//! | `x86_64/entry.rs` | `probe/shim`, `probe/tsan` | functions that know who called them |
//! | `x86_64/shim.rs` | `probe/shim` | system calls, frames |
//! | `x86_64/tsan.rs` | `probe/tsan` | thread-local words, functions that are begun and left, atomics of 16 bytes |
//!
//! A port to another processor is a folder with the same files, and its name here, in `build.rs`, and where the probes include them. Without one
//! the crate reads and writes traces, embeds no probes, and says so when it is asked to record.

#[path = "x86_64/recorder.rs"]
mod recorder;

pub(crate) use recorder::*;
