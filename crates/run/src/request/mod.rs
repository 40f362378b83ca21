//! What a user asks for, as the runs that answer it: which machine is meant, which policies and plans a list names, what holds
//! where nothing is said. The command line and the Python package ask here, so that the same question has the same answer.
//!
//! | file | job |
//! |---|---|
//! | `named` | the machine that a name means; `here` is the one that this runs on, by `here` |
//! | `pages` | a workload, a trace or a command under page policies |
//! | `objects` | a WebAssembly program under heap plans |
//! | `engine` | how such a program is started: its heap and compilers |
//! | `plans` | which plans a list names |
//! | `fast`, `shares` | how much fast memory objects may have |
//! | `so_far` | how far runs are |

mod engine;
mod fast;
mod here;
mod named;
mod objects;
mod pages;
mod plans;
mod shares;
mod so_far;

pub use engine::{EngineRequest, limit_heap};
pub use fast::Fast;
pub use here::machine as machine_of_probe;
pub use named::machine;
pub use objects::{ObjectRuns, ObjectsRequest, PlanResults};
pub use pages::PagesRequest;
pub use plans::{memories, plans, usual_plans};
pub use shares::{BASE, Shares};
pub use so_far::SoFar;

/// The machine of pages where none is named.
pub const DEFAULT_MACHINE: &str = "optane-6230-memory-mode";
