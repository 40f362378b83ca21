//! Page placement on a live Linux machine, without a kernel patch.
//!
//! Under a DRAM cache (Optane memory mode, a CXL device behind a memory-side cache) two pages whose frames
//! fall into the same bin evict each other. This crate lays a program's memory out so that its pages share
//! bins as little as possible: the static policy of Johnny Cache (OSDI 2023), in user space.
//!
//! - [`run`] does it for an unmodified program, through a preloaded shim.
//! - [`objects`] places a native program's objects by allocation site, in fast or slow memory.
//! - [`sampled`] samples which of a program's memory is accessed, at nearly its usual speed.
//! - [`java`] puts the generations of a stock Java virtual machine on memory nodes, and samples its allocations.
//! - [`Placer`] does it for memory that a Rust program allocates.
//! - [`choose`] is the decision alone, without any I/O.
//! - [`machine_conflicts`] counts how the pages of running processes share bins, from the kernel's page maps.
//! - [`curves`] measures what its memory does: latency, bandwidth, mixes.
//! - [`tier`](mod@tier) migrates pages of running programs between fast and slow memory, by a page policy.
//! - [`top`] reports memory use by tier and process, and migration rates.
//! - [`traffic`] counts bytes to and from memory, of a group of tasks or of the machine, where there are counters.
//! - [`nodes`] binds memory to the fast or the slow nodes of a machine, for heaps that choose per object.
//! - [`probe()`] and [`doctor()`] describe this machine and what it lets us do.
//!
//! ```no_run
//! use varve_live::{LiveOptions, run};
//!
//! let options = LiveOptions::new(48 << 30); // 48 GiB of DRAM act as cache
//! let report = run(&["./program".into(), "argument".into()], &options)?;
//! for process in &report.ran.processes {
//!     println!(
//!         "{}: {} of {} pages share a bin, {} as the kernel gave them",
//!         process.program, process.after.sharing, process.after.pages, process.before.sharing
//!     );
//! }
//! # Ok::<(), varve_live::LiveError>(())
//! ```
//!
//! # Effects of placement on a program
//!
//! - **Memory is allocated earlier.** A mapping or block between [`LiveOptions::threshold_bytes`] and
//!   [`LiveOptions::lazy_bytes`] gets all its pages at once, whether they are used or not. Larger ones, and those
//!   mapped with `MAP_NORESERVE`, get them where they are touched, 2 to 32 MiB at a time, from a thread that the
//!   shim runs within the program.
//! - **Candidates cost memory and time**: up to [`PlacementLimits::extra_factor`] times the placed memory while the program
//!   fills it, at most [`PlacementLimits::memory_percent`] of the available memory, and released after 0.2 s of rest.
//! - **The heap** is followed where it grows. The C library then keeps one heap for all threads. Programs with an
//!   allocator of their own are placed through their `mmap`.
//! - **Left to the kernel**: stacks, files, memory that is made accessible by `mprotect` after it was reserved,
//!   explicit huge pages, copies of pages after a `fork`, and everything when frame numbers cannot be read (a
//!   program that gives up its rights) or a limit is reached. The report counts this memory and gives the last reason.
//! - **Not at all**: programs linked statically, set-user-ID programs, and C libraries other than GNU's; [`run`]
//!   refuses the first two and says why.
//! - On a machine with several nodes each node has a DRAM cache of its own. Bind the program to one node
//!   (`numactl --cpunodebind=0 --membind=0`) and give the size of that node's cache.

mod arch;
pub mod cgroups;
pub mod curves;
pub mod doctor;
mod error;
pub mod java;
mod launch;
mod lock;
mod mapped;
mod memory;
pub mod nodes;
pub mod objects;
mod options;
mod perf;
mod place;
pub mod probe;
mod program;
mod report;
mod run;
pub mod sampled;
pub mod tier;
pub mod top;
pub mod traffic;
mod verdict;

pub use doctor::{Available, Check, doctor};
pub use error::LiveError;
pub use mapped::Mapped;
pub use memory::{PlacedMemory, Placer};
pub use options::{LiveOptions, PageSize};
pub use place::bins::{Bins, PAGE, PAGES_PER_HUGE};
pub use place::choose::{Choice, NO_BIN, choose};
pub use place::conflicts::{Conflicts, expected_random};
pub use place::engine::PlacementLimits;
pub use place::error::PlaceError;
pub use probe::{Probe, ProbeOptions, probe};
pub use report::{LiveReport, ProcessReport, Ran};
pub use run::run;
pub use verdict::machine_conflicts;
