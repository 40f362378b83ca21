//! Generations of a stock Java virtual machine on the memory nodes of this machine.
//!
//! ```text
//! run.rs       starts the program with the agent inside, and memory policies that it inherits
//! report.rs    what the agent says of its machine when that ends
//! sites/       allocation sites, by an agent of its own
//! ```
//!
//! The agent of placement is that of recordings (`crates/trace/probe/agent`): it asks the machine where its generations are, binds and moves
//! them, and binds what a growing heap maps anew.

mod report;
mod run;
pub mod sites;

pub use report::{JavaPart, JavaProcess, JavaReport};
pub use run::{Placing, run};
