//! All that this crate and its shim, which includes these files too, know of the processor.
//!
//! A port to another processor is a file beside the others with the same items, and its two lines here:
//!
//! | item | what it is |
//! |---|---|
//! | [`call`] | the numbers of the system calls that placement makes directly |
//! | [`write_back`] | how programs write cache lines back, for the doctor: the instructions are tried |
//! | [`can_stream`], [`stream`] | stores past the caches, for the curves |
//! | [`can_write_back`], [`store_and_write_back`] | stores that are written back, and leave the line in the cache |
//! | [`fence`] | waits until stores before it are done |
//! | [`QEMU`] | the emulator that runs this processor's programs |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "varve-live is for x86-64 and aarch64: another processor needs a file in live/linux/src/arch/ (see mod.rs there)"
);

/// Words of a cache line.
pub const LINE_WORDS: usize = 8;

/// How programs can write cache lines back, in words.
pub enum WriteBack {
    /// As it should be.
    Full(&'static str),
    /// With a price.
    Partial(&'static str),
    /// Not at all.
    #[cfg_attr(
        target_arch = "x86_64",
        allow(dead_code, reason = "each x86-64 has CLFLUSH")
    )]
    Missing(&'static str),
}
