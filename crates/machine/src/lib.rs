//! The ground floor: machine descriptions, the model of a machine, and the live Linux machine.

mod op;
mod program;

pub use op::{Kind, Op};
pub use program::{Program, Region};
