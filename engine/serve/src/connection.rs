//! A connection: input that was read and not parsed yet, and answers that were not sent yet.

use crate::round::Round;
use crate::session::{Pause, Session};
use crate::stream::Stream;
use std::io::{self, Read, Write};
use std::time::Instant;

/// A client's socket with its conversation. One that waits for a request holds no buffer.
pub(crate) struct Connection {
    pub stream: Stream,
    pub session: Session,
    /// Read, and not done with.
    pub input: Vec<u8>,
    /// Answered, from `sent` on not sent.
    output: Vec<u8>,
    sent: usize,
    pub pause: Pause,
    /// There may be something to read.
    pub readable: bool,
    /// The client has closed its side, or so the system says: to be read until its end.
    pub ending: bool,
    /// The end was read.
    pub ended: bool,
    /// Is in the queue of connections that continue without an event of the system.
    pub queued: bool,
    /// The number of answers in the output, which wait for a commit.
    pub held: Option<usize>,
    /// The answers of other shards that this waits for: meanwhile nothing is read, sent or closed.
    pub round: Option<Box<Round>>,
    pub retrieval: Retrieval,
    /// The last answer was sent. Since when the client's further input is discarded, and how many bytes that were.
    pub draining: Option<(Instant, usize)>,
    /// When it last got on.
    pub active: Instant,
    /// Bytes read and sent since.
    pub moved: usize,
}

/// Most bytes that are read away at the end of a conversation.
const MOST_DRAINED: usize = 1 << 20;

/// A retrieval whose keys are answered one by one. One that failed has an error in the place of its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retrieval {
    None,
    Open,
    Failed,
}

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Got {
    Bytes(usize),
    Nothing,
    End,
}

impl Connection {
    pub fn new(stream: Stream, session: Session, now: Instant) -> Connection {
        Connection {
            stream,
            session,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            pause: Pause::Input(1),
            readable: true,
            ending: false,
            ended: false,
            queued: false,
            held: None,
            round: None,
            retrieval: Retrieval::None,
            draining: None,
            active: now,
            moved: 0,
        }
    }

    /// Bytes that this holds.
    pub fn holds(&self) -> u64 {
        let round = self.round.as_ref().map_or(0, |round| round.holds());
        (self.input.capacity() + self.output.capacity() + round) as u64
    }

    /// Whether a request has begun, or its answer is not sent yet.
    pub fn under_way(&self) -> bool {
        self.owes() || !self.input.is_empty() || !self.session.between_requests()
    }

    /// Whether the next step is the server's, not the client's.
    pub fn waits_for_us(&self) -> bool {
        self.held.is_some() || self.round.is_some() || self.queued
    }

    /// Whether answers wait to be sent.
    pub fn owes(&self) -> bool {
        self.sent < self.output.len()
    }

    pub fn unread(&self) -> &[u8] {
        &self.input
    }

    /// Reads into `buffer`, or after the first part of a large value.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        let Pause::Input(more) = self.pause else {
            return Ok(Got::Nothing);
        };
        let mut room = buffer.len();
        let result = if self.input.is_empty() {
            self.stream.read(buffer)
        } else {
            let held = self.input.len();
            room = more.max(4096);
            // The rest of a large value is known: no doubling.
            self.input.reserve_exact(room);
            self.input.resize(held + room, 0);
            let result = self.stream.read(&mut self.input[held..]);
            self.input.truncate(held + *result.as_ref().unwrap_or(&0));
            result
        };
        match result {
            Ok(0) => {
                self.ended = true;
                self.readable = false;
                Ok(Got::End)
            }
            Ok(n) => {
                // As epoll(7) says: less than there was room for means that there is no more now.
                self.readable = n == room || self.ending;
                self.moved += n;
                Ok(Got::Bytes(n))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(Got::Nothing)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(Got::Bytes(0)),
            Err(e) => Err(e),
        }
    }

    /// After the last answer: shuts down the sending side, and discards the client's further input. If the socket were closed with unread bytes, the
    /// system would reset the connection, and the client might not see the answer. Returns whether there may be more.
    pub fn drain(&mut self, buffer: &mut [u8], now: Instant) -> io::Result<bool> {
        let (since, mut bytes) = match self.draining {
            Some(draining) => draining,
            None => {
                self.input = Vec::new();
                self.readable = true;
                self.stream.end()?;
                (now, 0)
            }
        };
        while self.readable && bytes < MOST_DRAINED {
            match self.stream.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => bytes += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.draining = Some((since, bytes));
        Ok(bytes < MOST_DRAINED)
    }

    /// Its state, in memcached's words.
    pub fn state(&self) -> &'static str {
        if self.owes() {
            "conn_mwrite"
        } else if self.waits_for_us() {
            "conn_parse_cmd"
        } else if self.under_way() {
            "conn_nread"
        } else {
            "conn_read"
        }
    }

    /// Removes the first `bytes` bytes of the input, which are processed.
    pub fn done_with(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
    }

    /// Keeps input that was read and not parsed.
    pub fn keep(&mut self, rest: &[u8]) {
        debug_assert!(self.input.is_empty());
        self.input.extend_from_slice(rest);
    }

    /// Sends answers, and keeps the rest; returns the number of bytes sent.
    pub fn send(&mut self, answers: &[u8]) -> io::Result<usize> {
        if self.owes() {
            self.output.extend_from_slice(answers);
            return self.flush();
        }
        let sent = self.write(answers)?;
        if sent < answers.len() {
            self.output = answers[sent..].to_vec();
            self.sent = 0;
        }
        Ok(sent)
    }

    /// Keeps `answers` answers until they may be sent.
    pub fn hold(&mut self, bytes: &[u8], answers: usize) {
        debug_assert!(self.held.is_none() && !self.owes());
        self.held = Some(answers);
        self.output = bytes.to_vec();
        self.sent = 0;
    }

    /// Revokes held answers: replaces each by an error.
    pub fn take_back(&mut self, error: &[u8]) {
        if let Some(answers) = self.held {
            self.output = error.repeat(answers);
            if self.retrieval == Retrieval::Open {
                self.retrieval = Retrieval::Failed;
            }
        }
    }

    /// Sends pending output; returns the number of bytes sent.
    pub fn flush(&mut self) -> io::Result<usize> {
        let output = std::mem::take(&mut self.output);
        let result = self.write(&output[self.sent..]);
        self.output = output;
        let sent = result?;
        self.sent += sent;
        if !self.owes() {
            self.output = Vec::new();
            self.sent = 0;
        }
        Ok(sent)
    }

    /// Writes as many bytes as the socket takes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self.stream.write(&bytes[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    written += n;
                    self.moved += n;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(written)
    }
}
