//! The server: one thread, which waits for all connections at once and owns the store.

use crate::cache::Cache;
use crate::connection::{Connection, Got};
use crate::session::Pause;
use crate::stats::{self, Traffic};
use crate::store::{Store, StoreError};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LISTENER: Token = Token(usize::MAX);
/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// Bytes that every connection may wait for.
const SMALL: usize = 4 << 10;
/// Times that a connection is read before others have their turn.
const TURNS: usize = 4;
/// Time between looks for expired values, and how many are looked at.
const SWEEP: (Duration, usize) = (Duration::from_millis(100), 1000);
/// Longest wait: after it the clock and the flag are looked at.
const TICK: Duration = Duration::from_millis(500);
/// Longest time that answers are sent for after the server was asked to stop.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a server is like.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Most connections.
    pub connections: usize,
    /// Most bytes of requests and answers that wait, of all connections together.
    pub buffers: u64,
}

/// Why a server ended, or did not begin.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// It cannot listen there.
    #[error("{address}: cannot listen: {error}; choose another address or port with --listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The system does not let it wait.
    #[error("waiting for connections failed: {0}")]
    Wait(io::Error),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// A server that listens.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    address: SocketAddr,
    /// By token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that go on without being told by the system.
    queue: VecDeque<usize>,
    /// There may be connections to accept.
    accepting: bool,
    traffic: Traffic,
    /// What is read and answered right now.
    read: Vec<u8>,
    answers: Vec<u8>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// An address that is taken or not this machine's.
    pub fn bind(settings: Settings) -> Result<Server, Error> {
        let listen = |error| Error::Listen {
            address: settings.listen,
            error,
        };
        let poll = Poll::new().map_err(Error::Wait)?;
        let mut listener = TcpListener::bind(settings.listen).map_err(listen)?;
        let registry = poll.registry();
        let registered = registry.register(&mut listener, LISTENER, Interest::READABLE);
        registered.map_err(Error::Wait)?;
        Ok(Server {
            address: listener.local_addr().map_err(listen)?,
            poll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            accepting: false,
            traffic: Traffic {
                since: Instant::now(),
                connections: 0,
                total_connections: 0,
                rejected: 0,
                overrun: 0,
                read: 0,
                written: 0,
                buffered: 0,
                most_connections: settings.connections as u64,
                most_buffered: settings.buffers,
            },
            read: vec![0; READ],
            answers: Vec::new(),
        })
    }

    /// Where it listens: the port that the system chose, if it was asked to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What went over the connections so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn run<S: Store>(&mut self, cache: &mut Cache<S>, stop: &AtomicBool) -> Result<(), Error> {
        let mut events = Events::with_capacity(1024);
        let mut swept = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let wait = if self.queue.is_empty() {
                TICK
            } else {
                Duration::ZERO
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(Error::Wait(e)),
                _ => {}
            }
            cache.set_now(seconds())?;
            for _ in 0..self.queue.len() {
                let Some(token) = self.queue.pop_front() else {
                    break;
                };
                if let Some(connection) = self.connections[token].as_mut() {
                    connection.queued = false;
                    self.serve(token, cache)?;
                }
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accepting = true;
                    continue;
                }
                let token = event.token().0;
                // Closed since the event was noted.
                let Some(connection) = self.connections.get_mut(token).and_then(Option::as_mut)
                else {
                    continue;
                };
                connection.readable |= event.is_readable();
                connection.ending |= event.is_read_closed() || event.is_error();
                self.serve(token, cache)?;
            }
            self.accept(cache.limits().value);
            if swept.elapsed() >= SWEEP.0 {
                swept = Instant::now();
                cache.sweep(SWEEP.1)?;
            }
        }
        self.finish();
        Ok(())
    }

    fn accept(&mut self, most_value: usize) {
        while self.accepting {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.accepting = false;
                    return;
                }
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                // No descriptors are left, or so: again at the next turn.
                Err(_) => return,
            };
            if self.traffic.connections >= self.traffic.most_connections {
                self.traffic.rejected += 1;
                // Whether it is taken does not matter.
                let _ = stream.write(b"ERROR Too many open connections\r\n");
                continue;
            }
            // Answers are whole when they are sent.
            let _ = stream.set_nodelay(true);
            let token = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            if registry
                .register(&mut stream, Token(token), interest)
                .is_err()
            {
                self.free.push(token);
                continue;
            }
            self.traffic.connections += 1;
            self.traffic.total_connections += 1;
            self.connections[token] = Some(Connection::new(stream, most_value));
        }
    }

    fn close(&mut self, token: usize) {
        if let Some(mut connection) = self.connections[token].take() {
            // It is closed right after, which deregisters it too.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.traffic.connections -= 1;
            self.traffic.buffered -= connection.held();
            self.free.push(token);
        }
    }

    /// Goes on with a connection as far as it goes now.
    fn serve<S: Store>(&mut self, token: usize, cache: &mut Cache<S>) -> Result<(), StoreError> {
        let Some(mut connection) = self.connections[token].take() else {
            return Ok(());
        };
        self.traffic.buffered -= connection.held();
        let outcome = self.turns(&mut connection, cache);
        let goes_on = match outcome {
            Ok(goes_on) => goes_on,
            Err(Failure::Store(e)) => return Err(e),
            // The client is gone.
            Err(Failure::Client) => false,
        };
        let buffered = self.traffic.buffered + connection.held();
        let overrun = buffered > self.traffic.most_buffered && connection.owes();
        self.traffic.overrun += u64::from(overrun && goes_on);
        let more = connection.readable || connection.pause == Pause::Output;
        let again = goes_on && !connection.owes() && more;
        if again && !std::mem::replace(&mut connection.queued, true) {
            self.queue.push_back(token);
        }
        self.traffic.buffered = buffered;
        self.connections[token] = Some(connection);
        if !goes_on || overrun {
            self.close(token);
        }
        Ok(())
    }

    /// Some turns of a connection; whether it goes on.
    fn turns<S: Store>(
        &mut self,
        connection: &mut Connection,
        cache: &mut Cache<S>,
    ) -> Result<bool, Failure> {
        for _ in 0..TURNS {
            if connection.owes() {
                self.traffic.written += connection.flush()? as u64;
                if connection.owes() {
                    return Ok(true);
                }
            }
            match connection.pause {
                Pause::End => return Ok(false),
                Pause::Output => self.converse(connection, cache, 0)?,
                Pause::Input(_) if connection.ended => return Ok(false),
                Pause::Input(_) if !connection.readable && !connection.ending => return Ok(true),
                Pause::Input(more) => {
                    let waiting = connection.unread().len() as u64;
                    let needed = self.traffic.buffered + waiting + more as u64;
                    if more > SMALL && needed > self.traffic.most_buffered {
                        connection.session.refuse_value();
                        connection.pause = Pause::Output;
                        continue;
                    }
                    match connection.read(&mut self.read)? {
                        Got::Bytes(n) => {
                            self.traffic.read += n as u64;
                            self.converse(connection, cache, n)?;
                        }
                        Got::Nothing => return Ok(true),
                        Got::End => return Ok(false),
                    }
                }
            }
        }
        Ok(true)
    }

    /// Answers what waits, or else the first `fresh` bytes of what was just read.
    fn converse<S: Store>(
        &mut self,
        connection: &mut Connection,
        cache: &mut Cache<S>,
        fresh: usize,
    ) -> Result<(), Failure> {
        let Server {
            traffic,
            read,
            answers,
            ..
        } = self;
        answers.clear();
        let mut stats =
            |which, cache: &mut Cache<S>, out: &mut Vec<u8>| stats::put(which, traffic, cache, out);
        if connection.unread().is_empty() {
            let fresh = &read[..fresh];
            let session = &mut connection.session;
            let (used, pause) = session.converse(cache, fresh, answers, &mut stats)?;
            connection.pause = pause;
            connection.keep(&fresh[used..]);
        } else {
            let (session, input) = connection.parts();
            let (used, pause) = session.converse(cache, input, answers, &mut stats)?;
            connection.pause = pause;
            connection.done_with(used);
        }
        self.traffic.written += connection.send(&self.answers)? as u64;
        if self.answers.capacity() > 4 * READ {
            self.answers = Vec::new();
        }
        Ok(())
    }

    /// Sends what was answered, for a little while.
    fn finish(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while Instant::now() < until {
            let mut owing = false;
            for connection in self.connections.iter_mut().flatten() {
                if connection.owes() && connection.flush().is_ok() {
                    owing |= connection.owes();
                }
            }
            if !owing {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Why a connection ends.
enum Failure {
    Store(StoreError),
    Client,
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Failure::Client
    }
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        Failure::Store(e)
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
