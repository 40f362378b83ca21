//! The server: it listens, and starts a thread for each shard.

use crate::cache::Cache;
use crate::exchange::Mailbox;
use crate::keeper::Keeper;
use crate::list::Lists;
use crate::passwords::Passwords;
use crate::shard::{LETTERS, Shard};
use crate::stats::{Traffic, World};
use crate::store::{Store, StoreError};
use crate::stream::{Listener, Name, listen_at};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most shards.
pub const MOST_SHARDS: usize = 256;

/// A socket in the file system.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Where it is.
    pub path: PathBuf,
    /// Who may use it: a file's mode.
    pub mode: u32,
}

/// What a server is like.
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
    /// Who may use it.
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

/// Who runs a server: it opens the stores and is told what goes on.
pub trait Host: Sync {
    /// What keeps the values.
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
        /// What to do.
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

/// What all shards of a server share.
pub(crate) struct Shared<'a> {
    pub settings: &'a Settings,
    /// By shard.
    pub mailboxes: Vec<Mailbox>,
    /// Shards whose stores are open.
    open: AtomicUsize,
    stop: &'a AtomicBool,
    /// A shard has ended, so all do.
    ended: AtomicBool,
    since: Instant,
    /// Connections now.
    pub connections: AtomicU64,
    /// Bytes of requests and answers that wait.
    pub buffered: AtomicU64,
    /// Whether the system lets connections be accepted.
    pub accepting: AtomicBool,
    most_value: AtomicUsize,
    lists: Mutex<Lists>,
    /// Where the server listens, as `stats conns` has it: in the network, in the file system.
    pub places: [Option<String>; 2],
}

impl Shared<'_> {
    /// Whether the server ends.
    pub fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }

    /// What is known of lists of keys.
    pub fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    /// Most bytes of a value.
    pub fn most_value(&self) -> usize {
        self.most_value.load(Ordering::Relaxed)
    }

    /// A number for a client of a shard that no other one has.
    pub fn client_number(&self, shard: usize, token: usize) -> usize {
        // Listeners have the first ones.
        self.places.len() + token * self.settings.shards + shard
    }

    pub fn world(&self) -> World<'_> {
        World {
            settings: self.settings,
            since: self.since,
            now: seconds(),
            connections: self.connections.load(Ordering::Relaxed),
            buffered: self.buffered.load(Ordering::Relaxed),
            accepting: self.accepting.load(Ordering::Relaxed),
            most_value: self.most_value(),
            places: &self.places,
        }
    }
}

/// A server that listens.
pub struct Server {
    settings: Settings,
    listeners: Vec<Listener>,
    address: Option<SocketAddr>,
    /// The socket in the file system goes with the server.
    _name: Option<Name>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// An address that is taken or not this machine's; a socket that is in use or cannot be made.
    pub fn bind(settings: Settings) -> Result<Server, Error> {
        assert!((1..=MOST_SHARDS).contains(&settings.shards), "shards");
        let (mut listeners, mut address, mut name) = (Vec::new(), None, None);
        if let Some(asked) = settings.listen {
            let listen = |error| Error::Listen {
                place: asked.to_string(),
                error,
                remedy: "choose another address or port with --listen",
            };
            let listener = TcpListener::bind(asked).map_err(listen)?;
            address = Some(listener.local_addr().map_err(listen)?);
            listeners.push(Listener::Tcp(listener));
        }
        if let Some(Socket { path, mode }) = &settings.socket {
            let (listener, made) = listen_at(path, *mode).map_err(|error| Error::Listen {
                place: path.display().to_string(),
                error,
                remedy: "choose another --socket",
            })?;
            listeners.push(Listener::Unix(listener));
            name = Some(made);
        }
        Ok(Server {
            settings,
            listeners,
            address,
            _name: name,
        })
    }

    /// Where it listens in the network: with the port that the system chose, if it was asked to.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Serves until `stop` is set; what went over the connections. The first shard runs on the caller's thread.
    ///
    /// # Errors
    /// What a store or the system says.
    pub fn run<H: Host>(self, host: &H, stop: &AtomicBool) -> Result<Traffic, Error> {
        let mut polls = Vec::new();
        let mut mailboxes = Vec::new();
        for _ in 0..self.settings.shards {
            let poll = Poll::new().map_err(Error::Wait)?;
            let waker = Waker::new(poll.registry(), LETTERS).map_err(Error::Wait)?;
            polls.push(poll);
            mailboxes.push(Mailbox::new(waker));
        }
        let socket = self.settings.socket.as_ref();
        let shared = Shared {
            settings: &self.settings,
            mailboxes,
            open: AtomicUsize::new(0),
            stop,
            ended: AtomicBool::new(false),
            since: Instant::now(),
            connections: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
            accepting: AtomicBool::new(true),
            most_value: AtomicUsize::new(0),
            lists: Mutex::default(),
            places: [
                self.address.map(|a| format!("tcp:{a}")),
                socket.map(|s| format!("unix:{}", s.path.display())),
            ],
        };
        let mut polls = polls.into_iter().enumerate();
        let first = polls.next();
        std::thread::scope(|scope| {
            let others: Vec<_> = polls
                .map(|(number, poll)| {
                    let shared = &shared;
                    scope.spawn(move || serve(number, shared, poll, Vec::new(), host))
                })
                .collect();
            let mut outcome = Ok(Traffic::default());
            if let Some((number, poll)) = first {
                outcome = serve(number, &shared, poll, self.listeners, host);
            }
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                outcome = match (outcome, other) {
                    (Ok(mut sum), Ok(more)) => {
                        sum.add(&more);
                        Ok(sum)
                    }
                    (Err(e), _) | (_, Err(e)) => Err(e),
                };
            }
            outcome
        })
    }
}

/// A shard's thread, from the opening of its store on.
fn serve<H: Host>(
    number: usize,
    shared: &Shared<'_>,
    poll: Poll,
    listeners: Vec<Listener>,
    host: &H,
) -> Result<Traffic, Error> {
    // When one ends, all do, also by a panic.
    let _ends = Ends(shared);
    let keeper = Keeper::open(host, number)?;
    let most_value = keeper.most_value();
    shared.most_value.store(most_value, Ordering::Relaxed);
    // Nobody is served before all stores are open.
    shared.open.fetch_add(1, Ordering::Relaxed);
    while shared.open.load(Ordering::Relaxed) < shared.settings.shards {
        if shared.ends() {
            return Ok(Traffic::default());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if number == 0 {
        host.ready();
    }
    Shard::new(number, shared, poll, keeper, listeners)?.run()
}

struct Ends<'a>(&'a Shared<'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Seconds since 1970, as they go on since the first call: a clock that is set meanwhile lets no value expire, and none live for ever.
pub fn seconds() -> i64 {
    static BEGAN: LazyLock<(i64, Instant)> = LazyLock::new(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        (since_1970.map_or(0, |d| d.as_secs() as i64), Instant::now())
    });
    BEGAN.0 + BEGAN.1.elapsed().as_secs() as i64
}
