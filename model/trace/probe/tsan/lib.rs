//! The probe that `varve cc` links into programs: the functions that `-fsanitize=thread` makes compilers call.
//!
//! Run alone, the program pays one call and one test per access. Run by a recorder, it finds the shared memory through
//! the variable `VARVE_RING` and writes one record per access. Nothing but `core` and the C library that is there
//! anyway, so that it links into anything; thread-local storage is declared in assembly, which stable Rust has no word
//! for.
//!
//! A signal handler that accesses memory while its thread is in the middle of a record may lose or garble that record;
//! it cannot write outside the thread's own chunks.

#![no_std]

#[path = "../../src/arch/x86_64/tsan.rs"]
mod arch;
#[path = "../../src/arch/x86_64/entry.rs"]
mod entry;
#[path = "../ring.rs"]
mod ring;

mod access;
mod atomics;
mod library;
mod thread;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// The recorder knows compiled programs by this section.
#[used]
#[unsafe(link_section = ".note.varve")]
static MARK: [u8; 8] = *b"varve\0\0\x01";
