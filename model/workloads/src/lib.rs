//! Native kernels that run on the model: real loops over real data whose memory accesses are handed to the
//! model one [`Op`](varve_access::Op) at a time.
//!
//! A workload is a [`Program`](varve_access::Program). Its simulated threads are not host threads: the model
//! asks for the next few ops of a thread when that thread's virtual time has come, and the workload does the next
//! small step of that thread on data that it holds, a vertex, a row, a transaction, and appends the accesses that
//! the step would have made in the program that it stands for. So the answers are real (and tests check them),
//! while sizes, layout and cost are those of the modelled machine.
//!
//! [`registry::list`] names every workload with its parameters; [`registry::build`] makes one from a line of text
//! such as `gups:bytes=96GiB,hot=10%,threads=16`.
//!
//! Instructions per op are estimates: each kernel states them as constants with the reasoning beside them.

pub mod apps;
mod entry;
pub mod graph;
pub mod gups;
pub mod harness;
pub mod host;
pub mod hpc;
pub mod init;
pub mod kv;
pub mod layout;
pub mod limit;
pub mod loops;
pub mod nas;
pub mod node;
pub mod olap;
pub mod registry;
pub mod splash;
pub mod steady;
pub mod streams;
pub mod tpcc;

pub use registry::{WorkloadEntry, build, list};
