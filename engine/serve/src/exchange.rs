//! Messages between shards: requests, answers, and clients.

use crate::list::Listed;
use crate::request::Request;
use crate::route::{parts, with_parts};
use crate::stats::Sums;
use crate::stream::Stream;
use mio::Waker;
use std::sync::Mutex;

/// The place of an answer: a client of the shard that asks, and which of the answers that it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub client: usize,
    pub answer: usize,
}

/// Requests, with their bytes one after the other.
#[derive(Default)]
pub(crate) struct Asks {
    bytes: Vec<u8>,
    list: Vec<(Place, Request<'static>, [u32; 3])>,
}

impl Asks {
    pub fn push(&mut self, place: Place, request: &Request<'_>) {
        let lengths = parts(request).map(|part| {
            self.bytes.extend_from_slice(part);
            part.len() as u32
        });
        self.list
            .push((place, with_parts(request, [&[]; 3]), lengths));
    }

    /// The requests in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Request<'_>)> {
        let mut rest = &self.bytes[..];
        self.list.iter().map(move |(place, request, lengths)| {
            let parts = lengths.map(|length| {
                let (part, after) = rest.split_at(length as usize);
                rest = after;
                part
            });
            (*place, with_parts(request, parts))
        })
    }
}

/// The part of a shard's answer besides bytes.
pub(crate) enum Extra {
    /// Nothing.
    None,
    /// Its part of numbers about the server.
    Sums(Box<Sums>),
    /// The result of a part of a list.
    Listed(Listed),
    /// That too much waits already; it has done nothing.
    TooMuch,
}

/// Answers, with their bytes one after the other.
#[derive(Default)]
pub(crate) struct Answers {
    pub bytes: Vec<u8>,
    /// With the places where their bytes end.
    list: Vec<(Place, usize, Extra)>,
}

impl Answers {
    /// Ends an answer: the bytes appended since the last one.
    pub fn push(&mut self, place: Place, extra: Extra) {
        self.list.push((place, self.bytes.len(), extra));
    }

    /// Replaces all of them, but those that say nothing.
    pub fn replace_all(&mut self, with: &[u8]) {
        let old = std::mem::take(self);
        for (place, bytes, extra) in old.into_iter() {
            if !bytes.is_empty() || matches!(extra, Extra::Sums(_)) {
                self.bytes.extend_from_slice(with);
            }
            let extra = match extra {
                // The error ends the list.
                Extra::Listed(_) => Extra::Listed(Listed::All),
                _ => Extra::None,
            };
            self.push(place, extra);
        }
    }

    /// The answers in their order.
    pub fn into_iter(self) -> impl Iterator<Item = (Place, Vec<u8>, Extra)> {
        let Answers { bytes, list } = self;
        let mut begin = 0;
        list.into_iter().map(move |(place, end, extra)| {
            let text = bytes[begin..end].to_vec();
            begin = end;
            (place, text, extra)
        })
    }
}

/// The message from one shard to another at the end of a turn.
#[derive(Default)]
pub(crate) struct Letter {
    pub from: usize,
    pub asks: Asks,
    pub answers: Answers,
    pub clients: Vec<Stream>,
}

impl Letter {
    pub fn is_empty(&self) -> bool {
        self.asks.list.is_empty() && self.answers.list.is_empty() && self.clients.is_empty()
    }

    /// Bytes of requests and answers that it has.
    pub fn held(&self) -> u64 {
        (self.asks.bytes.len() + self.answers.bytes.len()) as u64
    }
}

/// Where a shard's letters wait.
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    waker: Waker,
}

impl Mailbox {
    pub fn new(waker: Waker) -> Mailbox {
        Mailbox {
            letters: Mutex::default(),
            waker,
        }
    }

    pub fn post(&self, letter: Letter) {
        let mut letters = self.lock();
        // Letters that wait have their wake under way.
        let first = letters.is_empty();
        letters.push(letter);
        drop(letters);
        if first {
            self.wake();
        }
    }

    pub fn take(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.lock())
    }

    /// Wakes the shard.
    pub fn wake(&self) {
        // It fails if the kernel has no memory: the shard checks for messages at its next turn then.
        let _ = self.waker.wake();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Letter>> {
        self.letters.lock().unwrap_or_else(|e| e.into_inner())
    }
}
