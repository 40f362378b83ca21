//! A user's request for a WebAssembly program, as the runs that answer it.
//!
//! | file | job |
//! |---|---|
//! | `objects` | a program under heap plans |
//! | `heap` | how a program is started: its heap and compilers |
//! | `plans` | which plans a list names |

mod heap;
mod objects;
mod plans;

pub use heap::{Heap, limit_heap};
pub use objects::{ObjectRuns, ObjectsRequest};
pub use plans::{memories, plans, usual_plans};
