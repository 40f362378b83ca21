//! The recorder: starts a program with a probe inside and takes its accesses out of shared memory.

#[cfg(test)]
mod agent;
mod cc;
mod coder;
mod command;
mod error;
mod functions;
mod launch;
mod live;
mod memory;
mod modules;
mod record;
mod resident;
mod scripts;
mod sink;
mod tables;
mod templates;
mod walk;
mod windows;

#[allow(
    missing_docs,
    reason = "shared with the probes, which have no documentation of their own"
)]
#[path = "../../probe/ring.rs"]
mod ring;

pub use crate::schedule::{Amount, Extent};
pub use cc::{Language, compile};
pub use command::{Mode, RecorderOptions, Target, resolve};
pub use error::RecordError;
pub use live::LiveProgram;
pub use record::{EarlyTrace, Recorder};
