//! Tiers running programs: a policy promotes hot pages to fast memory and demotes cold ones to slow memory.
//!
//! ```text
//! decide.rs   observations for a policy, and its decisions: the policies of `pages` are joined in `varve-tier`
//! steer.rs    the control loop's interval, within budgets; without any system call
//! nodes.rs    steering on nodes of fast and slow memory
//! frames/     steering on chosen frames
//! observe/    ways to observe accesses
//! memory.rs   a process's pages and their nodes; migration
//! mapped.rs   which mappings of a process are tiered, and which of these it may share
//! forks.rs    which processes share their own memory since a fork
//! shared.rs   what processes share: each page once
//! room.rs     the nodes, and the free memory of each
//! who.rs      the tiered processes: given ones with their descendants, or a control group's
//! rivals.rs   other mechanisms that migrate pages
//! members.rs  processes of a run, and what is reported of them
//! options.rs  options; error.rs: reasons for not tiering
//! sizes.rs    the page size, and the limit of pages in fast memory
//! run.rs      the control loop, and its CPU budget
//! report.rs   observations and migrations
//! state.rs    the same during the run, for `varve top`
//! heat.rs     what was hot, for the next run
//! ```
//!
//! No setting outlives a run: pages stay where they are at the end, and the kernel's monitor is turned off even if we are
//! killed.

mod decide;
mod error;
mod forks;
mod frames;
mod heat;
mod mapped;
mod members;
mod memory;
mod nodes;
mod observe;
mod options;
mod report;
mod rivals;
mod room;
mod run;
mod shared;
mod sizes;
mod state;
mod steer;
mod who;

pub use decide::{FrameState, Page, PageHasher, Pages, Remap, TierPolicy};
pub use error::TierError;
pub use frames::{
    DimmFrames, DimmRange, Energy, FrameOptions, FrameReport, Kind, Span, Spans, Unplaced,
};
pub use mapped::{SharedKind, SharedObject};
pub use memory::{Memory, MoveOutcome, Refusal, SharedRun, by_node};
pub use nodes::{Nodes, OnNodes};
pub use observe::{Observer, Use, Way, first as first_way};
pub use options::{Begun, Room, Target, TierOptions};
pub use report::{TierCounts, TierReport, TieredObject, TieredProcess};
pub use rivals::{Rival, rivals};
pub use run::{tier, tier_frames};
pub use sizes::fast_bytes;
pub use state::{HeatOf, Part, TierState, folder as state_folder, states};
pub use steer::{Allowance, MoveLimits, SharedPages, Steering, Tiered};
pub use who::{group, members};
