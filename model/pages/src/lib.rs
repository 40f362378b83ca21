//! Page placement: the frames of a machine, the bins of a DRAM cache, and the policies that decide which frame
//! backs which page.
//!
//! [`Placement`] is the interface for the model and live Linux: a policy, made by name from [`policies::policies`], on
//! the [`Frames`] of a machine. A [`Policy`] is a plain state machine in a file of its own.
//!
//! ```
//! use varve_access::{Fault, Pager};
//! use varve_machine::Machine;
//! use varve_pages::Placement;
//!
//! let machine = Machine::load("optane-6230-memory-mode")?;
//! let mut placement = Placement::new("static", &machine, 2 << 20)?;
//! // Twice as many pages as the 48 GiB cache holds: two in each bin.
//! for vpn in 0..96 << 9 {
//!     placement.fault(&Fault { vpn, thread: 0, socket: 0, write: true, now: 0 })?;
//! }
//! let conflicts = placement.dump().conflicts.expect("the machine has a DRAM cache");
//! // All bins of socket 0, none of socket 1.
//! assert_eq!(conflicts.bins_by_pages, [24_576, 0, 24_576]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bins;
mod bitmap;
pub mod conflicts;
mod counting;
mod dump;
mod error;
mod frames;
pub mod governor;
pub mod heat;
mod lists;
mod placement;
pub mod policies;
mod policy;
mod ties;
mod topology;
pub mod trays;

pub use conflicts::{Conflicts, Expected};
pub use counting::{Counting, InUse};
pub use dump::{Dump, NodeDump};
pub use error::Error;
pub use frames::{Frames, Remap};
pub use placement::{Counters, Placement};
pub use policies::Meter;
pub use policies::policies;
pub use policy::Policy;
pub use topology::{NodeFrames, Topology, TopologyError};
