//! A memcached server whose store is a managed program, and the workloads of YCSB.
//!
//! Bytes go down and answers come up:
//!
//! ```text
//! server       connections, epoll, time; bounded buffers
//! session      one conversation: bytes in, bytes out
//! parser       bytes -> requests, a state machine without I/O
//! answer meta  requests -> answers
//! cache        expiry, unique numbers, limits, eviction
//! access       when values were last asked for
//! store        values by key: the managed program, or a map to compare it with
//! outside      values outside of the program's heap, behind serialization
//! ```

mod access;
mod answer;
mod cache;
mod command;
mod connection;
mod counters;
mod flags;
mod list;
mod managed;
mod meta;
mod outside;
mod parser;
mod reference;
mod request;
mod server;
mod session;
mod stats;
mod store;
mod words;
pub mod ycsb;

pub use access::Seen;
pub use answer::{After, Stats, VERSION, answer};
pub use cache::{Cache, Counted, Limits, OVERHEAD, Stored};
pub use counters::Counters;
pub use list::List;
pub use managed::{Kind, Managed};
pub use parser::{MOST_LINE, Parsed, Parser};
pub use reference::Reference;
pub use request::{Listing, Mode, Request, Retrieve, Unread, Verb};
pub use server::{Error, Server, Settings, seconds};
pub use session::{ENOUGH, Pause, Session};
pub use stats::Traffic;
pub use store::{Cursor, MOST_KEY, Meta, Store, StoreError};
