//! The preloaded allocator: objects of chosen allocation sites in memory of chosen nodes.
//!
//! ```text
//! entry.rs    what programs call, with the return address and the registers that a stack walk begins with
//! alloc.rs    malloc and its relatives: where a block goes, where it comes from
//! memory.rs   address ranges of the two tiers, each an arena of mimalloc; the group of each object in them
//! divided.rs  blocks whose first part is fast and whose rest is slow
//! vast.rs     blocks of very large alignments
//! thread.rs   per thread: a heap in each tier, counts
//! budget.rs   who may have fast memory
//! share.rs    ... of all processes of a run, and what they have in memory; ledger: the file
//! find.rs     from return addresses to groups
//! memo.rs     walks that a thread made before
//! map.rs      the site map as it lies in its file
//! modules.rs  where the map's modules are in this process
//! mapped.rs   mmap, mremap and munmap; static variables
//! pieces.rs   which addresses are mapped, and whose
//! life.rs     start, fork, end
//! sandbox.rs  programs that forbid themselves system calls
//! report.rs   what the line of JSON has
//! line        ... and how it is left, as by the library that places pages
//! sampled/    samples of objects, for profiles
//! sys.rs      system calls
//! ```
//!
//! Without a site map it is mimalloc, on memory as the kernel gives it.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("objects are placed on x86-64 Linux alone: stack walks need its registers");

mod alloc;
mod budget;
mod divided;
mod entry;
mod find;
#[allow(dead_code, reason = "written on the other side, read here")]
#[path = "../../src/objects/format.rs"]
mod format;
#[path = "../../src/sampled/format.rs"]
mod layout;
#[allow(dead_code, reason = "read on the other side")]
#[path = "../../src/objects/ledger.rs"]
mod ledger;
mod life;
#[allow(dead_code, reason = "the library that places pages uses the rest")]
#[path = "../../shim/line.rs"]
mod line;
mod map;
mod mapped;
mod memo;
mod memory;
mod modules;
mod pieces;
mod report;
mod sampled;
mod sandbox;
mod share;
mod sys;
mod thread;
mod vast;
