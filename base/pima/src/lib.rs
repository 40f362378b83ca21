//! The decision of PIMA (Akram, TACO 2021): which memory old objects are to be in. Heaps and Java virtual machines share it.
//!
//! | file | job |
//! |---|---|
//! | `pima` | [`Pima`]: the state machine; [`Coordinator`]: several that sample at the same time |
//! | `interval` | [`Interval`]: what a program reports of its work |
//! | `tier` | [`Tier`]: a kind of memory |
//! | [`params`] | what a user may set |

mod interval;
pub mod params;
mod pima;
mod tier;

pub use interval::{Interval, ReportError};
pub use pima::{Coordinator, Entry, Note, Phase, Pima, PimaError, PimaSettings, Room};
pub use tier::{MAX_TIERS, Tier};
