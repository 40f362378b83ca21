//! The ground floor: machine descriptions, the model of a machine, and the live Linux machine.

mod arch;
pub mod calibrate;
pub mod describe;
pub mod energy;
pub mod load;
pub mod model;
mod op;
mod pager;
mod program;
pub mod random;
pub mod rules;
pub mod units;
pub mod zipf;

pub use describe::{Machine, Mode};
pub use load::{LoadError, Node, NodeKind, Problem, Summary};
pub use op::{Kind, Op};
pub use pager::{Daemons, Fault, Move, OutOfFrames, Pager, Sample, Source};
pub use program::{Program, Region};
pub use units::Bytes;
