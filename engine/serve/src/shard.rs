//! A shard: one thread, which waits for all of its connections at once and owns a store with its part of the keys.
//!
//! A turn of its loop executes all requests that are ready, then commits once, then sends answers: no client gets an answer about a change that a
//! loss of power could roll back.

use crate::connection::{Connection, Got, Retrieval};
use crate::desk::Desk;
use crate::exchange::{Extra, Place};
use crate::keeper::Keeper;
use crate::request::Request;
use crate::round::Round;
use crate::session::{Next, Pause, Session};
use crate::settings::{Error, Host};
use crate::shared::{Shared, seconds};
use crate::stats::{Traffic, put_client};
use crate::stream::{Listener, Stream};
use crate::words::FAILED;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The token of letters from other shards.
pub(crate) const LETTERS: Token = Token(usize::MAX);
/// The token of the first listener; others have smaller ones.
const LISTENERS: usize = usize::MAX - 1;
/// Most listeners.
const MOST_LISTENERS: usize = 8;
/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// Bytes that every connection may wait for, and that count as getting on.
const SMALL: usize = 4 << 10;
/// Times that a connection is read before others have their turn.
const TURNS: usize = 4;
/// Time between scans for expired values, and the number of values of a scan.
const SWEEP: (Duration, usize) = (Duration::from_millis(100), 1000);
/// Longest wait: after it the clock and the flag are checked.
const TICK: Duration = Duration::from_millis(500);
/// Longest time that answers are sent for after the server was asked to stop, and that input is read after a client was refused with an error.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(crate) struct Shard<'a, H: Host> {
    number: usize,
    shared: &'a Shared<'a>,
    poll: Poll,
    /// The first shard accepts connections for all.
    listeners: Vec<Listener>,
    /// There may be connections to accept.
    accepting: bool,
    /// Since when the system has no descriptors for more.
    stopped_accepting: Option<Instant>,
    /// The shard that the next connection goes to.
    next: usize,
    /// By token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that continue without an event of the system.
    queue: VecDeque<usize>,
    /// Connections whose answers wait for a commit.
    held: Vec<usize>,
    desk: Desk<'a, H>,
    /// Losses that were handled: see `Keeper::losses`.
    losses: u64,
    turn: u64,
    now: Instant,
    /// When connections were last checked for being idle.
    looked: Instant,
    /// Buffers for current input and answers.
    read: Vec<u8>,
    answers: Vec<u8>,
}

impl<'a, H: Host> Shard<'a, H> {
    pub fn new(
        number: usize,
        shared: &'a Shared<'a>,
        poll: Poll,
        keeper: Keeper<'a, H>,
        mut listeners: Vec<Listener>,
    ) -> Result<Self, Error> {
        debug_assert!(listeners.len() <= MOST_LISTENERS);
        for (i, listener) in listeners.iter_mut().enumerate() {
            let registered = listener.register(poll.registry(), Token(LISTENERS - i));
            registered.map_err(Error::Wait)?;
        }
        let now = Instant::now();
        Ok(Shard {
            number,
            shared,
            poll,
            listeners,
            accepting: false,
            stopped_accepting: None,
            next: 0,
            connections: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            held: Vec::new(),
            desk: Desk::new(number, shared, keeper),
            losses: 0,
            turn: 0,
            now,
            looked: now,
            read: vec![0; READ],
            answers: Vec::new(),
        })
    }

    /// Serves until the server ends; returns its counts.
    ///
    /// # Errors
    /// The error of the store or the system.
    pub fn run(mut self) -> Result<Traffic, Error> {
        let mut events = Events::with_capacity(1024);
        let (mut swept, tick) = (self.now, self.tick());
        while !self.shared.ends() {
            let wait = match self.queue.is_empty() {
                true => tick,
                false => Duration::ZERO,
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(Error::Wait(e)),
                _ => {}
            }
            self.turn += 1;
            self.now = Instant::now();
            self.desk.keeper.with(|cache| cache.set_now(seconds()))?;
            self.letters()?;
            for _ in 0..self.queue.len() {
                let Some(token) = self.queue.pop_front() else {
                    break;
                };
                if let Some(connection) = self.connections[token].as_mut() {
                    connection.queued = false;
                    self.serve(token)?;
                }
            }
            for event in &events {
                let token = event.token().0;
                if token > LISTENERS - MOST_LISTENERS {
                    self.accepting |= event.token() != LETTERS;
                    continue;
                }
                // Closed since the event was recorded.
                let Some(connection) = self.connections.get_mut(token).and_then(Option::as_mut)
                else {
                    continue;
                };
                connection.readable |= event.is_readable();
                connection.ending |= event.is_read_closed() || event.is_error();
                self.serve(token)?;
            }
            self.accept();
            if self.now - swept >= SWEEP.0 {
                swept = self.now;
                self.desk.keeper.with(|cache| cache.sweep(SWEEP.1))?;
            }
            if self.now - self.looked >= tick {
                self.look_for_idle();
            }
            self.settle()?;
        }
        self.finish();
        self.desk.traffic.restarts = self.desk.keeper.failed;
        Ok(self.desk.traffic)
    }

    /// The longest wait: a part of the time that clients have.
    fn tick(&self) -> Duration {
        let settings = self.shared.settings;
        let times = [settings.idle, settings.stall].into_iter().flatten();
        times.map(|time| time / 4).fold(TICK, Duration::min)
    }

    fn accept(&mut self) {
        while self.accepting {
            let mut accepted = None;
            for listener in &self.listeners {
                match listener.accept() {
                    Ok(stream) => {
                        accepted = Some(stream);
                        break;
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    // No descriptors are left, or a client went away while it waited: again at the next turn.
                    Err(e) => {
                        if e.kind() != io::ErrorKind::ConnectionAborted {
                            self.accepts(false);
                        }
                        return;
                    }
                }
            }
            self.accepts(true);
            let Some(mut stream) = accepted else {
                self.accepting = false;
                return;
            };
            let most = self.shared.settings.connections as u64;
            if self.shared.connections.load(Ordering::Relaxed) >= most {
                self.desk.traffic.rejected += 1;
                // Whether it is taken does not matter.
                let _ = stream.write(b"ERROR Too many open connections\r\n");
                continue;
            }
            self.shared.connections.fetch_add(1, Ordering::Relaxed);
            self.desk.traffic.total_connections += 1;
            let shard = self.next;
            self.next = (shard + 1) % self.shared.settings.shards;
            match shard == self.number {
                true => self.adopt(stream),
                false => self.desk.letters[shard].clients.push(stream),
            }
        }
    }

    /// Records whether the system lets connections be accepted.
    fn accepts(&mut self, yes: bool) {
        match (yes, self.stopped_accepting) {
            (true, Some(since)) => {
                self.stopped_accepting = None;
                self.desk.traffic.unaccepted_us += since.elapsed().as_micros() as u64;
            }
            (false, None) => {
                self.stopped_accepting = Some(self.now);
                self.desk.traffic.unaccepted += 1;
            }
            _ => return,
        }
        self.shared.accepting.store(yes, Ordering::Relaxed);
    }

    /// Takes a client on.
    fn adopt(&mut self, mut stream: Stream) {
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
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let most_value = self.shared.most_value();
        let session = match &self.shared.settings.passwords {
            None => Session::new(most_value),
            Some(door) => Session::behind_door(most_value, Arc::clone(door)),
        };
        self.connections[token] = Some(Connection::new(stream, session, self.now));
    }

    fn close(&mut self, token: usize) {
        if let Some(mut connection) = self.connections[token].take() {
            // It is closed right after, which deregisters it too.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.shared
                .buffered
                .fetch_sub(connection.holds(), Ordering::Relaxed);
            self.free.push(token);
        }
    }

    /// Executes the messages of other shards.
    fn letters(&mut self) -> Result<(), Error> {
        for letter in self.shared.mailboxes[self.number].take() {
            let held = letter.held();
            for stream in letter.clients {
                self.adopt(stream);
            }
            for (place, text, extra) in letter.answers.into_iter() {
                self.answered(place, text, extra)?;
            }
            let Shard {
                number,
                desk,
                connections,
                shared,
                now,
                ..
            } = self;
            let list = |out: &mut Vec<u8>| put_clients(connections, shared, *now, *number, out);
            desk.carry_out_all(letter.from, &letter.asks, &list)?;
            self.shared.buffered.fetch_sub(held, Ordering::Relaxed);
            self.notice_losses();
            self.settle_if_full()?;
        }
        Ok(())
    }

    /// Another shard's answer to one of our clients.
    fn answered(&mut self, place: Place, text: Vec<u8>, extra: Extra) -> Result<(), Error> {
        let Some(mut connection) = self.take_out(place.client) else {
            return Ok(());
        };
        let outcome = self.answered_to(place, &mut connection, text, extra);
        self.put_back(place.client, connection, outcome)
    }

    fn answered_to(
        &mut self,
        place: Place,
        connection: &mut Connection,
        text: Vec<u8>,
        extra: Extra,
    ) -> Result<bool, Failure> {
        let Some(round) = connection.round.as_mut() else {
            return Ok(true);
        };
        if let Extra::Listed(listed) = extra {
            connection.session.listed(listed);
        }
        if !round.answered(place.answer, text, extra) {
            return Ok(true);
        }
        if let Some(round) = connection.round.take() {
            self.desk.traffic.overrun += u64::from(round.overrun);
            if round.broken {
                return Ok(false);
            }
            let (text, failed) = round.finish(&self.shared.world());
            if failed {
                connection.retrieval = Retrieval::Failed;
            }
            self.desk.traffic.written += connection.send(&text)? as u64;
        }
        self.turns(place.client, connection)
    }

    /// Takes a connection out of its place, and subtracts its bytes from the sum of all.
    fn take_out(&mut self, token: usize) -> Option<Connection> {
        let connection = self.connections[token].take()?;
        match connection.holds() {
            0 => {}
            held => {
                self.shared.buffered.fetch_sub(held, Ordering::Relaxed);
            }
        }
        Some(connection)
    }

    /// Goes on with a connection as far as it goes now.
    fn serve(&mut self, token: usize) -> Result<(), Error> {
        let Some(mut connection) = self.take_out(token) else {
            return Ok(());
        };
        let fresh = !connection.under_way();
        let outcome = self.turns(token, &mut connection);
        let enough = connection.moved >= SMALL;
        if connection.moved > 0 && (fresh || enough || !connection.under_way()) {
            connection.active = self.now;
            connection.moved = 0;
        }
        self.put_back(token, connection, outcome)?;
        self.notice_losses();
        self.settle_if_full()
    }

    /// Puts a connection back where it was, to go on later or to be closed.
    fn put_back(
        &mut self,
        token: usize,
        mut connection: Connection,
        outcome: Result<bool, Failure>,
    ) -> Result<(), Error> {
        let goes_on = match outcome {
            Ok(goes_on) => goes_on,
            Err(Failure::Server(e)) => return Err(e),
            // The client is gone.
            Err(Failure::Client) => false,
        };
        let free = connection.held.is_none() && connection.round.is_none();
        let owes = connection.owes();
        let mut overrun = false;
        match connection.holds() {
            0 => {}
            held => {
                let others = self.shared.buffered.fetch_add(held, Ordering::Relaxed);
                overrun = others + held > self.shared.settings.buffers && owes && free;
                self.desk.traffic.overrun += u64::from(overrun && goes_on);
            }
        }
        let more = match connection.pause {
            Pause::Input(_) => connection.readable || connection.ended,
            Pause::Output => true,
            Pause::End => connection.draining.is_none() || connection.readable,
        };
        let again = goes_on && free && !owes && more;
        if again && !std::mem::replace(&mut connection.queued, true) {
            self.queue.push_back(token);
        }
        self.connections[token] = Some(connection);
        if !goes_on || overrun {
            self.close(token);
        }
        Ok(())
    }

    /// Some turns of a connection; whether it goes on.
    fn turns(&mut self, token: usize, connection: &mut Connection) -> Result<bool, Failure> {
        for _ in 0..TURNS {
            if connection.held.is_some() || connection.round.is_some() {
                return Ok(true);
            }
            if connection.owes() {
                self.desk.traffic.written += connection.flush()? as u64;
                if connection.owes() {
                    return Ok(true);
                }
            }
            match connection.pause {
                Pause::End if connection.session.is_lost() => {
                    return Ok(connection.drain(&mut self.read, self.now)?);
                }
                Pause::End => return Ok(false),
                Pause::Output => self.converse(token, connection, 0)?,
                Pause::Input(_) if connection.ended => return Ok(false),
                Pause::Input(_) if !connection.readable && !connection.ending => return Ok(true),
                Pause::Input(more) => {
                    let most = self.shared.settings.buffers;
                    let waiting = connection.unread().len() as u64;
                    let others = self.shared.buffered.load(Ordering::Relaxed);
                    if more > SMALL && others + waiting + more as u64 > most {
                        connection.session.refuse_value();
                        connection.pause = Pause::Output;
                        continue;
                    }
                    match connection.read(&mut self.read)? {
                        Got::Bytes(n) => {
                            self.desk.traffic.read += n as u64;
                            self.converse(token, connection, n)?;
                        }
                        Got::Nothing => return Ok(true),
                        Got::End => return Ok(false),
                    }
                }
            }
        }
        Ok(true)
    }

    /// Answers waiting input, or else the first `fresh` bytes that were just read.
    fn converse(
        &mut self,
        token: usize,
        connection: &mut Connection,
        fresh: usize,
    ) -> Result<(), Failure> {
        let Shard {
            number,
            desk,
            connections,
            held,
            read,
            answers,
            shared,
            turn,
            now,
            ..
        } = self;
        answers.clear();
        let (mut waits, mut ends) = (Vec::new(), Vec::new());
        // Answers so far, and whether some of them are lost that stand between those of others.
        let (mut made, mut broken) = (0, false);
        let Connection {
            session,
            input,
            stream,
            active,
            retrieval,
            ..
        } = connection;
        let list = |out: &mut Vec<u8>| {
            let client = shared.client_number(*number, token);
            let idle = shared.seconds_between(*active, *now);
            put_client(client, stream, "conn_parse_cmd", idle, &shared.places, out);
            put_clients(connections, shared, *now, *number, out);
        };
        let mut answer = |request: Request<'_>, out: &mut Vec<u8>| {
            let (begin, waited) = (out.len(), waits.len());
            let (failed, losses) = (desk.keeper.failed, desk.keeper.losses);
            // The answers to the keys of a retrieval are one with its end.
            let (part, end) = (
                matches!(request, Request::Get { .. }),
                request == Request::GetEnd,
            );
            let next = desk.request(token, request, out, &mut waits, &list)?;
            let failed = desk.keeper.failed != failed;
            if part && failed || end && *retrieval == Retrieval::Failed {
                out.truncate(begin);
            }
            if end && *retrieval == Retrieval::Failed {
                out.extend_from_slice(FAILED);
            }
            if *retrieval != Retrieval::None && !part && waited > 0 {
                ends.push(begin..if end { out.len() } else { begin });
            }
            *retrieval = match (part, *retrieval) {
                (false, _) => Retrieval::None,
                (true, Retrieval::Failed) => Retrieval::Failed,
                (true, _) if failed => Retrieval::Failed,
                (true, _) => Retrieval::Open,
            };
            made += usize::from(!part && out.len() > begin);
            if desk.keeper.losses != losses {
                desk.take_back();
                broken |= waited > 0;
                *out = FAILED.repeat(made);
            }
            Ok::<Next, Error>(next)
        };
        let whole = input.is_empty();
        let bytes = if whole { &read[..fresh] } else { &input[..] };
        let (used, pause) = session.converse(bytes, answers, &mut answer)?;
        match whole {
            true => connection.keep(&read[used..fresh]),
            false => connection.done_with(used),
        }
        connection.pause = pause;
        if !waits.is_empty() {
            let mut round = Round::new(answers.clone(), waits, ends, *turn);
            round.broken = broken;
            connection.round = Some(Box::new(round));
        } else if desk.keeper.uncommitted() && !answers.is_empty() {
            connection.hold(answers, made);
            held.push(token);
        } else {
            desk.traffic.written += connection.send(answers)? as u64;
        }
        if answers.capacity() > 4 * READ {
            *answers = Vec::new();
        }
        Ok(())
    }

    /// Revokes the pending answers about changes that were not committed when the store failed.
    fn notice_losses(&mut self) {
        if self.losses == self.desk.keeper.losses {
            return;
        }
        self.losses = self.desk.keeper.losses;
        self.desk.take_back();
        let turn = self.turn;
        for connection in self.connections.iter_mut().flatten() {
            connection.take_back(FAILED);
            if let Some(round) = connection.round.as_mut().filter(|r| r.turn == turn) {
                round.broken = true;
            }
        }
    }

    fn settle_if_full(&mut self) -> Result<(), Error> {
        let full = self.shared.settings.buffers / 2;
        if !self.held.is_empty() && self.shared.buffered.load(Ordering::Relaxed) > full {
            self.settle()?;
        }
        Ok(())
    }

    /// Commits all changes, and sends the answers that waited for that.
    fn settle(&mut self) -> Result<(), Error> {
        if self.desk.keeper.uncommitted() {
            // The others work meanwhile.
            self.desk.post(false);
            self.desk.traffic.commits += 1;
            self.desk.keeper.with(|cache| cache.commit())?;
            self.notice_losses();
        }
        self.desk.post(true);
        for token in std::mem::take(&mut self.held) {
            let Some(mut connection) = self.take_out(token) else {
                continue;
            };
            connection.held = None;
            let outcome = match connection.flush() {
                Ok(sent) => {
                    self.desk.traffic.written += sent as u64;
                    Ok(true)
                }
                Err(e) => Err(e.into()),
            };
            self.put_back(token, connection, outcome)?;
        }
        Ok(())
    }

    /// Closes connections that have waited for too long.
    fn look_for_idle(&mut self) {
        self.looked = self.now;
        for token in 0..self.connections.len() {
            let Some(connection) = &self.connections[token] else {
                continue;
            };
            if let Some((since, _)) = connection.draining {
                if self.now - since >= LAST_WORDS {
                    self.close(token);
                }
                continue;
            }
            if connection.waits_for_us() {
                continue;
            }
            let under_way = connection.under_way();
            let settings = self.shared.settings;
            let most = if under_way {
                settings.stall
            } else {
                settings.idle
            };
            if most.is_some_and(|most| self.now - connection.active >= most) {
                match under_way {
                    true => self.desk.traffic.stalled += 1,
                    false => self.desk.traffic.idle += 1,
                }
                self.close(token);
            }
        }
    }

    /// Sends pending answers, for a short time.
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

/// Appends lines for all clients whose connections stand in their places.
fn put_clients(
    connections: &[Option<Connection>],
    shared: &Shared<'_>,
    now: Instant,
    shard: usize,
    out: &mut Vec<u8>,
) {
    for (token, connection) in connections.iter().enumerate() {
        if let Some(c) = connection {
            let number = shared.client_number(shard, token);
            put_client(
                number,
                &c.stream,
                c.state(),
                shared.seconds_between(c.active, now),
                &shared.places,
                out,
            );
        }
    }
}

/// Why a connection, or the server, ends.
enum Failure {
    Server(Error),
    Client,
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Failure::Client
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Server(e)
    }
}
