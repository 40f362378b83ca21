//! The server: it listens, and starts a thread for each shard.

use crate::exchange::Mailbox;
use crate::keeper::Keeper;
use crate::settings::{Error, Host, MOST_SHARDS, Settings, Socket};
use crate::shard::{LETTERS, Shard};
use crate::shared::Shared;
use crate::stats::Traffic;
use crate::stream::{Listener, Name, listen_at};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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

    /// Serves until `stop` is set; returns the traffic of all connections. The first shard runs on the caller's thread.
    ///
    /// # Errors
    /// The error of a store or the system.
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
    // No client is served before all stores are open.
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
