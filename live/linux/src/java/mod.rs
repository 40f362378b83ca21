//! Generations of a stock Java virtual machine on the memory nodes of this machine.
//!
//! ```text
//! run.rs       starts the program with the agent inside, and memory policies that it inherits
//! report.rs    what the agent says of its machine when that ends
//! sites/       allocation sites, by an agent of its own
//! serve.rs     answers agents that ask, again and again, where the old generation is to be
//! decide.rs    their reports, as intervals for a policy; cutter.rs makes intervals of sums
//! ```
//!
//! The agent of placement is that of recordings (`model/trace/probe/agent`): it asks the machine where its generations are, binds and moves
//! them, and binds what a growing heap maps anew.

mod cutter;
mod decide;
mod report;
mod run;
mod serve;
pub mod sites;

pub use decide::{Decided, GenerationMove, GenerationPolicy, Interval};
pub use report::{JavaPart, JavaProcess, JavaReport};
pub use run::{Job, Placing, PreparedJava, run};
pub use serve::Deciding;
