//! How a machine with several memories is set up: what is wrong, why it matters, and what changes it.
//!
//! ```text
//! seen.rs     the files of /sys and /proc -> plain data
//! judge.rs    plain data -> findings, without any I/O
//! weights.rs  bandwidths -> weights of interleaving
//! record.rs   what was changed, in a file that outlives us
//! change.rs   carries steps out, and takes them back
//! ```

mod change;
mod judge;
mod record;
mod seen;
mod weights;

pub use change::{Changed, Files, Root, change, undo};
pub use judge::judge;
pub use record::Record;
pub use seen::{Block, Dax, Setup};
pub use weights::{Measured, MeasuredError};

use serde::{Deserialize, Serialize};

/// Something that is set up wrongly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A short name.
    pub name: &'static str,
    /// The problem, with the value found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// Commands that change it.
    pub commands: Vec<String>,
    /// The same as writes into files; none if it is not for us to change.
    pub steps: Vec<Step>,
    /// Why there are no steps; empty if there are some.
    pub by_hand: String,
}

/// A write into a file of the kernel. Paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The file.
    pub file: String,
    /// The value to write.
    pub value: String,
    /// Where it shows: a file, or a link, of which the last part of its target counts.
    pub shows: String,
    /// The value before it.
    pub was: String,
    /// The value after it.
    pub then: String,
    /// Steps that revert it, in this order.
    pub back: Vec<Back>,
}

/// A write that is part of taking a step back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// The file.
    pub file: String,
    /// The value to write.
    pub value: String,
    /// The file need not be there.
    pub may_be_missing: bool,
}

/// The value that stands for a missing link.
pub const NOTHING: &str = "-";

impl Step {
    /// A file that shows what was written into it.
    fn plain(file: &str, was: &str, value: &str) -> Step {
        Step {
            file: file.into(),
            value: value.into(),
            shows: file.into(),
            was: was.into(),
            then: value.into(),
            back: vec![Back::to(file, was)],
        }
    }
}

impl Back {
    fn to(file: &str, value: &str) -> Back {
        Back {
            file: file.into(),
            value: value.into(),
            may_be_missing: false,
        }
    }
}
