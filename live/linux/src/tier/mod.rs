//! Tiers programs that run already: pages that are in use go to fast memory, others to slow memory, as a policy decides.
//!
//! ```text
//! decide.rs   observations for a policy, and its decisions: the policies of `pages` are joined in `varve-tier`
//! steer.rs    one interval after the other, within budgets; without any system call
//! nodes.rs    what steering is of nodes of fast and slow memory
//! frames/     what it is of chosen frames
//! observe/    how it is seen which pages are in use
//! memory.rs   which pages of a process are there, on which nodes; moving them
//! room.rs     the nodes, and how much room each has
//! who.rs      whose memory it is: processes and what they start, control groups
//! rivals.rs   who else moves pages
//! options.rs  what is asked for; error.rs: why nothing is tiered
//! sizes.rs    how large pages are, and how many may be in fast memory
//! run.rs      the loop, and what it may take
//! report.rs   what was seen and done
//! state.rs    the same while it is at work, for others to see
//! ```
//!
//! Nothing is set that would stay set: pages stay where they are in the end, and the kernel's monitor is turned off even if we are
//! killed.

mod decide;
mod error;
mod frames;
mod memory;
mod nodes;
mod observe;
mod options;
mod report;
mod rivals;
mod room;
mod run;
mod sizes;
mod state;
mod steer;
mod who;

pub use decide::{FrameState, Page, PageHasher, Pages, Remap, TierPolicy};
pub use error::TierError;
pub use frames::{
    DimmFrames, DimmRange, Energy, FrameOptions, FrameReport, Kind, Span, Spans, Unplaced,
};
pub use memory::{Memory, MoveOutcome, Refusal, by_node};
pub use nodes::{Nodes, OnNodes};
pub use observe::{Observer, Use, Way, first as first_way};
pub use options::{Begun, Room, Target, TierOptions};
pub use report::{TierCounts, TierReport, TieredProcess};
pub use rivals::{Rival, rivals};
pub use run::{tier, tier_frames};
pub use state::{HeatOf, Part, TierState, states};
pub use steer::{Allowance, MoveLimits, Steering, Tiered};
pub use who::group;
