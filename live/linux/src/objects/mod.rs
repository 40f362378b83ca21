//! Live placement of a native program's objects by allocation site.
//!
//! ```text
//! map.rs      sites, their tiers and worth -> the file that the shim reads
//! format.rs   that file; the shim includes this module too
//! ledger.rs   the file that processes share: their parts of the budget, what groups have; in the shim too
//! rules.rs    from .eh_frame: how to get from a return address to the caller's
//! modules.rs  the files of a program's modules
//! run.rs      running a program with its objects placed
//! report.rs   what came of it
//! share.rs    ... and the ledger, from the outside
//! places.rs   ... and where memory was meanwhile
//! running.rs  what is so while it runs, for those who ask
//! ```
//!
//! The shim (`objects/`, a package of its own) is mimalloc with an arena for each tier.

#[allow(
    dead_code,
    reason = "the shim includes it too, and reads what is written here"
)]
mod format;
#[allow(dead_code, reason = "processes do with it what is not done here")]
mod ledger;
mod map;
mod modules;
mod places;
mod report;
mod rules;
mod run;
mod running;
mod share;

pub use crate::program::find as program_file;
pub(crate) use map::Compiled;
pub use map::{FrameRef, Group, Site, SiteMap, Tier, Variable};
pub use modules::Modules;
pub use places::ResidentBytes;
pub use report::{GroupReport, ObjectProcess, ObjectReport};
pub(crate) use rules::Rules;
pub(crate) use run::load;
pub use run::{ObjectOptions, PreparedObjects, run, why_not_placeable};
pub use running::{Running, RunningProcess};
pub use share::Lived;
