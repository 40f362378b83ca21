//! All that this crate knows of the processor: how a cache line gets into the medium.
//!
//! A port to another processor is a file beside `x86_64.rs` with the same items, and its two lines here:
//!
//! | item | what it must do |
//! |---|---|
//! | [`Instruction`] | names the ways to write a line back |
//! | [`Instruction::best`] | the best that the processor has, by asking it |
//! | [`Instruction::write_back`] | begins to write the line of an address back to memory, and changes nothing that a program could see |
//! | [`fence`] | has write-backs before it end before stores after it |
//! | [`fetch`] | has a line brought near; may do nothing |
//!
//! A write-back that does nothing loses data at a power failure, so there is no portable stand-in. An interpreter (Miri) has no medium:
//! there `x86_64.rs` only orders.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{Instruction, fence, fetch};

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "varve-durable is for x86-64: another processor needs a file in engine/durable/src/arch/ that writes its cache lines back (see mod.rs there)"
);
