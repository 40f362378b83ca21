//! The preloaded library behind `varve run --live`: lays the memory that a program asks for out over the bins
//! of the DRAM cache, at the moment the program asks for it.
//!
//! It interposes `mmap` and its relatives and the allocator's large blocks, and follows the growth of the
//! heap. Memory that cannot be placed keeps the kernel's own pages and is counted. It is configured by
//! environment variables, see `config`; without them it only passes calls on.
//!
//! Built on the standard library alone, by `rustc` from the build script.

#![warn(unsafe_op_in_unsafe_fn)]

mod alloc;
mod big;
mod config;
mod growth;
mod holes;
mod hooks_malloc;
mod hooks_map;
mod lazy;
mod life;
mod line;
mod lock;
mod next;
mod report;
mod state;

// The shim uses a part of what is there.
#[allow(dead_code)]
#[path = "../src/arch/mod.rs"]
mod arch;
#[path = "../src/place/mod.rs"]
mod place;
