//! The settings of a server, its host, and its errors.

use crate::cache::Cache;
use crate::passwords::Passwords;
use crate::store::{Store, StoreError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most shards.
pub const MOST_SHARDS: usize = 256;

/// A socket in the file system.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Where it is.
    pub path: PathBuf,
    /// The permissions of the socket: a file's mode.
    pub mode: u32,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens in the network.
    pub listen: Option<SocketAddr>,
    /// Where it listens in the file system.
    pub socket: Option<Socket>,
    /// Threads, each with a store of its own; from 1 to [`MOST_SHARDS`].
    pub shards: usize,
    /// Most connections.
    pub connections: usize,
    /// Most bytes of requests and answers that wait, of all connections together.
    pub buffers: u64,
    /// How long a client may send nothing between two requests.
    pub idle: Option<Duration>,
    /// How long a request that has begun, or an answer that is not read, may take for a few kilobytes.
    pub stall: Option<Duration>,
    /// The passwords of authorized clients.
    pub passwords: Option<Arc<Passwords>>,
}

impl Default for Settings {
    /// One shard on a port that the system chooses.
    fn default() -> Self {
        Settings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            socket: None,
            shards: 1,
            connections: 4096,
            buffers: 64 << 20,
            idle: None,
            stall: Some(Duration::from_secs(30)),
            passwords: None,
        }
    }
}

/// The host of a server: it opens the stores and receives events.
pub trait Host: Sync {
    /// The store of the values.
    type Store: Store;

    /// Opens a shard's store, on the shard's own thread: when the server begins, and again each time when its program has failed.
    ///
    /// # Errors
    /// They end the server.
    fn open(&self, shard: usize) -> Result<Cache<Self::Store>, StoreError>;

    /// All stores are open, and clients are served from now on.
    fn ready(&self) {}

    /// A shard's program has failed and begins again.
    fn failed(&self, shard: usize, error: &StoreError) {
        let _ = (shard, error);
    }
}

/// Why a server ended, or did not begin.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// It cannot listen there.
    #[error("{place}: cannot listen: {error}; {remedy}")]
    Listen {
        /// Where.
        place: String,
        /// Why.
        error: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The system does not let it wait.
    #[error("waiting for connections failed: {0}")]
    Wait(io::Error),
    /// A store cannot be opened.
    #[error("{error}")]
    Open {
        /// The shard.
        shard: usize,
        /// Why.
        error: StoreError,
    },
    /// A store's program fails again and again.
    #[error("shard {shard} fails again and again: {error}")]
    Failing {
        /// The shard.
        shard: usize,
        /// Why it failed the last time.
        error: StoreError,
    },
}
