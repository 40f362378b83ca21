//! Pages in chosen frames: conflicts of hot pages in a DRAM cache are parted, and pages are put on chosen DIMMs, by exchanging the
//! frame of a page for one of a reserve.
//!
//! ```text
//! spans.rs     the frames of each node, as numbers without gaps between nodes
//! pages.rs     which pages of a process are there, in which frames, of which kind
//! ready.rs     what there is to be before anything is exchanged
//! held.rs      the reserve: frames that are ours
//! exchange.rs  a page goes to another node and comes back into a frame of the reserve
//! steer.rs     what steering is of frames, without any system call
//! energy.rs    what the DRAM took, by RAPL
//! report.rs    what was seen and done
//! ```
//!
//! The kernel moves each page, twice, with `move_pages`. So a program is never stopped and loses no write, whatever it does
//! meanwhile, and memory that several processes share is moved like any other.

mod energy;
mod exchange;
mod held;
mod pages;
mod ready;
mod report;
mod spans;
mod steer;

pub use energy::{Energy, Power};
pub use pages::{Kind, LiveFrames, Unplaced};
pub use ready::{FrameOptions, frame_bytes, ready};
pub use report::FrameReport;
pub use spans::{DimmFrames, DimmRange, Span, Spans};
pub use steer::InFrames;
