//! The trace format, its readers and writers, importers, and the recorder of native programs.

mod arch;
mod error;
mod footprint;
pub mod format;
pub mod host;
pub mod import;
mod info;
mod intervals;
mod java;
mod listener;
mod packer;
mod parts;
mod phases;
mod program;
mod reader;
mod schedule;
mod shared;
mod sites;
mod spaces;
mod stream;
mod writer;

pub use error::TraceError;
pub use footprint::{Footprint, PAGE_BYTES};
pub use format::{Collector, Event, EventAt, FileHeader, Part, Use};
pub use info::{SiteInfo, ThreadInfo, TraceInfo};
pub use intervals::{Interval, RunIntervals};
pub use java::{HeapRange, JavaMachine};
pub use listener::{Listener, unmaps};
pub use parts::Block;
pub use program::{RunPlace, TraceProgram};
pub use reader::{Cut, TraceReader};
pub use shared::SharedTrace;
pub use spaces::space_of;
pub use stream::TraceStream;
pub use writer::{
    BLOCK_OPS, BlockPlace, CallSite, ColoredBytes, End, LoadedModule, StackRange, TraceWriter,
};
