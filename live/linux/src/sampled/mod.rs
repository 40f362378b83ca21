//! Samples of what a native program does with its memory, while it runs as it always does.
//!
//! ```text
//! format.rs   the file in which the shim keeps samples of objects; the shim includes this module too
//! table.rs    reads that file
//! callers.rs  from a copy of a stack to calls
//! hardware/   accesses that the processor samples by itself (PEBS, IBS): asked first
//! used.rs     which memory was used in a short while
//! damon.rs    the same, counted by the kernel's own monitor where it has one
//! writes.rs   which watched pages were written
//! observe.rs  what is seen of a process over time
//! run.rs      a command under the shim, or a process that is there
//! ```
//!
//! Where the processor samples, each scan takes the samples. Elsewhere each scan has the kernel clear the accessed bits, waits for [`WINDOW`], and asks again. A page that was used often
//! counts as much as one that was used once.

mod callers;
pub(crate) mod damon;
#[allow(
    dead_code,
    reason = "the shim includes it too, and writes what is read here"
)]
pub(crate) mod format;
pub(crate) mod hardware;
mod observe;
pub(crate) mod run;
mod table;
pub(crate) mod used;
mod writes;

pub use callers::FileAddress;
pub use hardware::Event;
pub use observe::{SeenRange, SeenSite};
pub use run::{AccessSampling, SampledError, SampledMemory, attach, can_attach, can_run, command};

use std::time::Duration;

/// How long the use of pages is watched at each look. Short, so that what is used all the time differs from what is used now
/// and then.
pub const WINDOW: Duration = Duration::from_millis(2);

/// How it is seen what is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The accessed bits of pages (`clear_refs`, `smaps`): used or not within [`WINDOW`].
    #[default]
    Bits,
    /// The kernel's monitor (DAMON): in how many of ten times 5 ms.
    Damon,
    /// Accesses that the processor samples, by this mechanism: PEBS or IBS.
    Hardware(&'static str),
}

/// Events of this processor that sample accesses, and that may be opened here.
///
/// # Errors
/// A line that says why there are none.
pub fn hardware() -> Result<Vec<Event>, String> {
    hardware::usable()
}

/// The source of a process's samples: these events if they can be opened on it too, the kernel's monitor, or accessed bits.
pub fn source(events: &[Event]) -> Source {
    match events.first() {
        Some(event) => Source::Hardware(event.mechanism),
        None if damon::is_free(std::path::Path::new(damon::FOLDER)) => Source::Damon,
        None => Source::Bits,
    }
}

/// Whether the processor is one that samples accesses, be it allowed or not.
pub fn has_hardware() -> bool {
    !hardware::here().is_empty()
}
