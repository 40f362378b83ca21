//! Whole programs on one machine: which memory each is in, how many threads it has, and in what order they run.
//!
//! A [`Group`] of programs is profiled (which demands does each have on memory?), scheduled (by policies that see nothing but
//! those demands), and run, on a model where the programs share caches, queues and memory, or on this machine.
//!
//! ```text
//! group/     groups and their TOML
//! demand.rs  a program's demands on memory
//! kinds.rs   kinds of memory, and classes of programs
//! inside.rs  how a program's own memory is placed, if it is
//! class.rs   the class of a program
//! policy/    the decisions: pure
//! plan/      schedules: all decisions for a group together, and in sentences
//! kept.rs    demands in a file
//! model/     on a modelled machine
//! live/      on this machine
//! emit/      a schedule as a file for Slurm or systemd
//! oracle.rs  the best of all schedules of a small group, as a bound for the policies
//! interference.rs  how programs reduce one another's bandwidth
//! compare.rs a group under several strategies on a model
//! chart.rs   pictures
//! ```

pub mod chart;
pub mod class;
pub mod compare;
pub mod demand;
pub mod emit;
mod error;
pub mod group;
pub mod inside;
pub mod interference;
pub mod kept;
mod kinds;
pub mod live;
pub mod model;
pub mod oracle;
pub mod plan;
pub mod policy;
mod result;

pub use class::Classified;
pub use demand::{Demand, Point};
pub use error::Error;
pub use group::Group;
pub use inside::Inside;
pub use kinds::{Class, Memory};
pub use plan::{Host, Plan, Strategy, explain, plan};
pub use result::{GroupResult, ProgramResult};
