//! Options of a run: one structure for each concern, read by the command line and by the Python package alike. A field
//! is an option, its documentation is its help, and the request has the structure as it is: a new option is a field
//! here, and its use.

mod instances;
mod model;
mod pages;
mod plans;

pub use instances::{Instances, JavaInstances};
pub use model::OnModel;
pub use pages::{PageSize, Pages};
pub use plans::{Generations, Plans, Stale, Trays};

/// The heading of the options that most runs want.
pub const MAIN: &str = "Main options";
