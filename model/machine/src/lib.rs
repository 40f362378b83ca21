//! Descriptions of machines, and the model of one.

mod arch;
pub mod calibrate;
pub mod describe;
pub mod energy;
pub mod load;
pub mod model;
pub mod rules;

pub use describe::{Machine, Mode};
pub use load::{LoadError, MachineSummary, NodeKind, NumaNode, Problem};
