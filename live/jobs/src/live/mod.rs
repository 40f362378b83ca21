//! A group on this machine.
//!
//! ```text
//! host.rs       what there is: nodes of fast and slow memory, processors
//! start.rs      starting a program with its memory, processors, variables and log
//! inside.rs     a program that is in fast memory in part, and places its own memory
//! family.rs     a program and all that it starts: control groups, or process trees
//! watch.rs      what a running process uses, as /proc tells
//! run.rs        a group by a plan
//! profile.rs    demands, from each program alone
//! exercise.rs   a modelled workload on real memory
//! words.rs      what a program is started with, in words
//! sys.rs        the system calls
//! ```

pub mod exercise;
mod family;
mod host;
pub mod inside;
mod profile;
mod run;
mod start;
mod sys;
mod watch;
pub mod words;

pub use host::LiveHost;
pub use profile::profile;
pub use run::{Running, run};
pub use start::check;

/// How programs are run on this machine.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Folder for the programs' output; a file `NAME.log` for each.
    pub logs: std::path::PathBuf,
    /// Divisor of the sizes of workloads that are carried out.
    pub scale: u32,
    /// Seed of workloads.
    pub seed: u64,
    /// This program, which carries out workloads and runs managed programs.
    pub varve: std::path::PathBuf,
}
