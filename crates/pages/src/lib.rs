//! Page placement: the frames of a machine, the bins of a DRAM cache, and the policies that decide which frame
//! backs which page.
//!
//! [`Placement`] is what the model and live Linux use: a policy, made by name from [`policies::policies`], on the
//! [`Frames`] of a machine. A [`Policy`] is a plain state machine in a file of its own.

pub mod bins;
mod bitmap;
pub mod conflicts;
mod dump;
mod frames;
pub mod heat;
mod lists;
pub mod params;
mod placement;
pub mod policies;
mod policy;
mod rng;
mod topology;

pub use conflicts::{Conflicts, Expected};
pub use dump::{Dump, NodeDump};
pub use frames::Frames;
pub use params::Error;
pub use placement::{Counters, Placement};
pub use policies::policies;
pub use policy::{Policy, Remap};
pub use topology::{NodeFrames, Topology, TopologyError};
