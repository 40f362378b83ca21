//! User requests, as the runs that answer them: which machine is meant, which policies and plans a list names, which
//! defaults apply. The command line and the Python package ask here, so that the same question has the same answer.
//!
//! | file | job |
//! |---|---|
//! | `pages` | a workload, a trace or a command under page policies |
//! | `native` | a recorded native program under plans for its sites and pages |
//! | `java` | a recorded Java virtual machine under plans for its generations and pages |
//! | `options` | the user's options, for the command line and Python |
//! | `fast`, `budgets` | how much fast memory runs may have |
//! | `so_far` | how far runs are |

mod budgets;
mod fast;
mod java;
mod native;
pub mod options;
mod pages;
mod so_far;

pub use budgets::{BASE, Budgets, Limited, PlannedRun, SHARE};
pub use fast::Fast;
pub use java::{JavaRequest, JavaRuns, recorded};
pub use native::{NATIVE_MACHINE, NativeRequest, NativeRuns, native_profile};
pub use pages::{PageRuns, PagesRequest};
pub use so_far::SoFar;

/// The machine of pages where none is named.
pub const DEFAULT_MACHINE: &str = "optane-6230-memory-mode";
