//! A memcached server whose store is a managed program, and the workloads of YCSB.
//!
//! Bytes go down and answers come up:
//!
//! ```text
//! server       listens, starts shards
//! shard        one thread: its connections, epoll, time; bounded buffers; its part of the keys
//! desk         executes requests, or passes them to the shard that has the key
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
mod binary;
mod cache;
mod changes;
mod command;
mod connection;
mod counters;
mod desk;
mod exchange;
mod flags;
mod hash;
mod keeper;
mod list;
mod managed;
mod meta;
mod outside;
mod parser;
mod passwords;
mod reference;
mod request;
mod round;
mod route;
mod server;
mod session;
mod settings;
mod shard;
mod shared;
mod stats;
mod store;
mod stream;
mod words;
pub mod ycsb;

pub use access::Seen;
pub use answer::{After, Stats, VERSION, answer};
pub use cache::{Cache, Counted, Limits, OVERHEAD, Stored};
pub use counters::Counters;
pub use list::{ENOUGH, List, Listed, Lists};
pub use managed::{Kind, Managed, served};
pub use parser::{MOST_LINE, Parsed, Parser};
pub use passwords::Passwords;
pub use reference::Reference;
pub use request::{Listing, Mode, Part, Request, Retrieve, Unread, Verb};
pub use route::{HASH, shard_of};
pub use server::Server;
pub use session::{Next, Pause, Session, answer_alone};
pub use settings::{Error, Host, MOST_SHARDS, Settings, Socket};
pub use shared::seconds;
pub use stats::Traffic;
pub use store::{Cursor, MOST_KEY, Meta, Store, StoreError};
