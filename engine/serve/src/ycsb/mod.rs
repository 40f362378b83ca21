//! The core workloads of YCSB (Cooper et al., SoCC 2010), and drivers for them. A record is one value, written as a whole.

mod remote;
mod report;
mod run;
mod workload;

pub use remote::Remote;
pub use report::Report;
pub use run::{Local, Spec, Target, load, run};
pub use workload::{Operation, Operations, Workload, key, value};
