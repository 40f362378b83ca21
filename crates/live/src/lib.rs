//! Page placement on a live Linux machine, without a kernel patch.
//!
//! Under a DRAM cache (Optane memory mode, a CXL device behind a memory-side cache) two pages whose frames
//! fall into the same bin evict each other. This crate lays a program's memory out so that its pages share
//! bins as little as possible: the static policy of Johnny Cache (OSDI 2023), in user space.
//!
//! - [`run`] does it for an unmodified program, through a preloaded shim.
//! - [`Placer`] does it for memory that a Rust program asks for.
//! - [`choose`] is the decision alone, without any I/O.
//! - [`machine_conflicts`] counts how the pages of running processes share bins, from the kernel's page maps.
//! - [`probe`] and [`doctor`] say what this machine is and what it lets us do.

pub mod doctor;
mod error;
mod memory;
mod options;
mod place;
pub mod probe;
mod program;
mod report;
mod run;
mod shim;
mod verdict;

pub use doctor::{Available, Check, doctor};
pub use error::LiveError;
pub use memory::{PlacedMemory, Placer};
pub use options::{LiveOptions, PageSize};
pub use place::bins::{Bins, PAGE, PAGES_PER_HUGE};
pub use place::choose::{Choice, NO_BIN, choose};
pub use place::conflicts::{Conflicts, expected_random};
pub use place::engine::Limits;
pub use place::error::PlaceError;
pub use probe::{Probe, ProbeOptions, probe};
pub use report::{LiveReport, ProcessReport};
pub use run::run;
pub use verdict::machine_conflicts;
