//! Samples that the processor takes by itself, with the address of the access and where it was served: PEBS on Intel, IBS on AMD.
//!
//! ```text
//! event.rs   what this processor offers, as the kernel tells in /sys
//! ring.rs    what the kernel writes: records in a ring of memory
//! open.rs    events opened on the threads of a process, a ring for each processor
//! ```

mod event;
mod open;
mod ring;

pub use event::Event;
pub use open::Hardware;
pub use ring::Hit;

use crate::perf::DEVICES;
use event::offered;
use std::path::Path;

/// The events that this machine offers.
pub fn here() -> Vec<Event> {
    offered(&Path::new("/").join(DEVICES))
}

/// Events that can be opened here.
///
/// # Errors
/// A line that says why not.
pub fn usable() -> Result<Vec<Event>, String> {
    let events = here();
    let Some(first) = events.first() else {
        return Err("no PEBS or IBS: the processor or virtual machine has none to offer".into());
    };
    let own = std::process::id();
    Hardware::begin(own, &events).map_err(|why| format!("{}: {why}", first.name))?;
    Ok(events)
}
