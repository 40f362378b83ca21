//! The bytes of a trace file; `docs/trace-format.md` describes them for readers in other languages.

mod block;
mod difference;
mod event;
mod heap;
mod ops;
mod runs;

pub use block::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FileHeader, MAGIC, Part, TRAILER_BYTES,
    TRAILER_MAGIC, VERSION, checksum_matches,
};
pub use difference::BadOps;
pub(crate) use event::put;
pub use event::{BadEvents, Event, EventAt, decode_events, encode_events};
pub use heap::{Collector, Use};
pub use ops::{OpDecoder, OpEncoder, PADDING};
pub use runs::{
    ABSOLUTE, CodeAt, MAX_ADDRESSES, MAX_TEMPLATE_OPS, Template, TemplateOp, Templates,
};
pub(crate) use runs::{
    CONTEXTS, Columns, LONG, NUMBER, NUMBER_AND_MORE, Run, RunEncoder, SHORT, next_context,
};
