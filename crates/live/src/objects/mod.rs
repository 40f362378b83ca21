//! Live placement of a native program's objects by allocation site.
//!
//! ```text
//! map.rs      sites, their tiers and worth -> the file that the shim reads
//! format.rs   that file; the shim includes this module too
//! rules.rs    from .eh_frame: how to get from a return address to the caller's
//! modules.rs  the files of a program's modules
//! run.rs      running a program with its objects placed
//! report.rs   what came of it
//! ```
//!
//! The shim (`objects/`, a package of its own) is mimalloc with an arena for each tier.

#[allow(
    dead_code,
    reason = "the shim includes it too, and reads what is written here"
)]
mod format;
mod map;
mod modules;
mod report;
mod rules;
mod run;

pub use map::{FrameRef, Group, Site, SiteMap, Tier, Variable};
pub use report::{GroupReport, ObjectProcess, ObjectReport};
pub(crate) use rules::Rules;
pub use run::{ObjectOptions, run, why_not_placeable};
