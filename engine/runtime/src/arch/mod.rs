//! All processor-specific knowledge of the engine, and the layout of registers in signal handlers. The rest is in the code generator.
//!
//! A port is a folder beside `x86_64` with the same items, and its two lines here:
//!
//! | file | item | function |
//! |---|---|---|
//! | `enter.rs` | `varve_enter` | saves the host's registers and an [`EntryRecord`](crate::store::region::EntryRecord), sets the pinned register and the stack, calls a trampoline |
//! | | `varve_leave` | leaves the innermost entry from any depth |
//! | | `varve_resume` | goes on at an exception handler of a frame further up |
//! | `stubs.rs` | `exit`, `lazy`, `lazy_entries` | the ways out of compiled code, as machine code: they note the frame pointer, and where the return address is |
//! | `frames.rs` | `caller`, `return_address`, `return_slot` | the words at a frame pointer, and the place where an exit recorded the return address |
//! | `signals.rs` | `Interrupted` | reads the registers of an interrupted thread, and has it go on elsewhere |
//! | `counters.rs` | `varve_count_target` | counts the target of a call, and changes no register |
//! | `onepass/` | `OnePass`, `Piece` | machine code in one pass; a port may say of each function that it has none, and Cranelift makes it |
//! | `relocate.rs` | `relocate`, `width`, `RELOCATIONS` | fills the address of a function into machine code; how long that field is; the kinds of fields |

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use x86_64::*;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!(
    "varve-runtime runs on x86-64 Linux: engine/runtime/src/arch/mod.rs lists what a port needs"
);
