//! Answers to a client of which other shards give some: they are sent when all are there, in the order of the requests.

use crate::answer::Stats;
use crate::exchange::Extra;
use crate::stats::{Sums, World, put};

/// An answer that is waited for.
pub(crate) struct Wait {
    /// Where it belongs in the text of the round.
    at: usize,
    text: Vec<u8>,
    /// Numbers about the server, which are added up.
    sums: Option<(Stats, Box<Sums>)>,
    /// Shards that have not answered yet.
    missing: usize,
}

impl Wait {
    /// Another shard's answer.
    pub fn one(at: usize) -> Wait {
        Wait {
            at,
            text: Vec::new(),
            sums: None,
            missing: 1,
        }
    }

    /// What all shards do: this one has done its part, which says `text`, or gave numbers.
    pub fn all(at: usize, others: usize, text: Vec<u8>, sums: Option<(Stats, Box<Sums>)>) -> Wait {
        Wait {
            at,
            text,
            sums,
            missing: others,
        }
    }
}

/// The answers of a part of a conversation.
pub(crate) struct Round {
    /// This shard's own answers.
    text: Vec<u8>,
    waits: Vec<Wait>,
    missing: usize,
    /// The turn of the event loop that it began in: until that is over, the own answers are not committed.
    pub turn: u64,
    /// The answers are not to be had: the connection ends.
    pub broken: bool,
    /// So that it ends since too much waits.
    pub overrun: bool,
}

impl Round {
    pub fn new(text: Vec<u8>, waits: Vec<Wait>, turn: u64) -> Round {
        Round {
            text,
            missing: waits.iter().map(|w| w.missing).sum(),
            waits,
            turn,
            broken: false,
            overrun: false,
        }
    }

    /// Bytes that this holds.
    pub fn holds(&self) -> usize {
        self.text.capacity() + self.waits.iter().map(|w| w.text.capacity()).sum::<usize>()
    }

    /// Takes an answer; whether all are there now.
    pub fn answered(&mut self, which: usize, text: Vec<u8>, extra: Extra) -> bool {
        let wait = &mut self.waits[which];
        match (extra, &mut wait.sums) {
            (Extra::Sums(part), Some((_, sums))) => sums.add(*part),
            (Extra::TooMuch, _) => {
                self.broken = true;
                self.overrun = true;
            }
            // Of shards that all do the same, one that fails has the word.
            _ => {
                if wait.missing == 1 && wait.text.is_empty() || text.starts_with(b"SERVER_ERROR") {
                    wait.text = text;
                }
            }
        }
        wait.missing -= 1;
        self.missing -= 1;
        self.missing == 0
    }

    /// All answers in their order.
    pub fn finish(self, world: &World<'_>) -> Vec<u8> {
        let (mut out, mut from) = (Vec::with_capacity(self.holds()), 0);
        for wait in self.waits {
            out.extend_from_slice(&self.text[from..wait.at]);
            from = wait.at;
            match wait.sums {
                Some((which, sums)) if wait.text.is_empty() => put(which, &sums, world, &mut out),
                _ => out.extend_from_slice(&wait.text),
            }
        }
        out.extend_from_slice(&self.text[from..]);
        out
    }
}
