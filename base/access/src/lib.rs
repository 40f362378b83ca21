//! Words that all floors share: what a program does to memory, who backs its pages, and random numbers that are the same everywhere.
//!
//! Nothing here knows a machine, a file or a clock.
//!
//! | file | job |
//! |---|---|
//! | `op` | one [`Op`]: an access, or a mark between accesses |
//! | `program` | [`Program`]: threads, each a stream of ops |
//! | `pager` | [`Pager`]: who backs virtual pages with frames |
//! | [`random`] | one generator with a seed |
//! | [`zipf`] | skewed choices |

mod op;
mod pager;
mod program;
pub mod random;
pub mod zipf;

pub use op::{Kind, Op};
pub use pager::{Daemons, Fault, Move, OutOfFrames, Pager, Sample, Source};
pub use program::{Program, Region, Stretch};
