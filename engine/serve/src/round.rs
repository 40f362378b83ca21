//! Answers to a client of which other shards give some: they are sent when all are there, in the order of the requests.

use crate::answer::Stats;
use crate::exchange::Extra;
use crate::stats::{Sums, World, put};
use crate::words::FAILED;
use std::ops::Range;

/// An answer that is waited for.
pub(crate) struct Wait {
    /// Where it belongs in the text of the round.
    at: usize,
    text: Vec<u8>,
    /// Numbers about the server, which are added up.
    sums: Option<(Stats, Box<Sums>)>,
    /// Shards that have not answered yet.
    missing: usize,
    /// It is about one key of a retrieval.
    part: bool,
}

impl Wait {
    /// Another shard's answer, to a whole request or to one key of a retrieval.
    pub fn one(at: usize, part: bool) -> Wait {
        Wait {
            at,
            part,
            text: Vec::new(),
            sums: None,
            missing: 1,
        }
    }

    /// A request to all shards: this shard has done its part, with the answer `text`, or with numbers.
    pub fn all(at: usize, others: usize, text: Vec<u8>, sums: Option<(Stats, Box<Sums>)>) -> Wait {
        Wait {
            at,
            text,
            sums,
            part: false,
            missing: others,
        }
    }
}

/// The answers of a part of a conversation.
pub(crate) struct Round {
    /// This shard's own answers.
    text: Vec<u8>,
    waits: Vec<Wait>,
    /// The ranges of retrievals' end marks in the text; one is empty if a key is refused.
    ends: Vec<Range<usize>>,
    missing: usize,
    /// The turn of the event loop that it began in: until that is over, the own answers are not committed.
    pub turn: u64,
    /// The answers are not to be had: the connection ends.
    pub broken: bool,
    /// So that it ends since too much waits.
    pub overrun: bool,
}

impl Round {
    pub fn new(text: Vec<u8>, waits: Vec<Wait>, ends: Vec<Range<usize>>, turn: u64) -> Round {
        Round {
            text,
            missing: waits.iter().map(|w| w.missing).sum(),
            waits,
            ends,
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

    /// All answers in their order; and whether a retrieval that is not over has failed.
    pub fn finish(self, world: &World<'_>) -> (Vec<u8>, bool) {
        let mut out = Vec::with_capacity(self.holds());
        let (mut from, mut failed) = (0, false);
        let mut ends = self.ends.iter().peekable();
        let mut own = |to: usize, failed: &mut bool, out: &mut Vec<u8>| {
            while let Some(end) = ends.next_if(|end| end.start < to) {
                out.extend_from_slice(&self.text[from..end.start]);
                from = end.start;
                if std::mem::take(failed) && !end.is_empty() {
                    out.extend_from_slice(FAILED);
                    from = end.end;
                }
            }
            out.extend_from_slice(&self.text[from..to]);
            from = to;
        };
        for wait in &self.waits {
            own(wait.at, &mut failed, &mut out);
            match &wait.sums {
                _ if wait.part && wait.text == FAILED => failed = true,
                Some((which, sums)) if wait.text.is_empty() => put(*which, sums, world, &mut out),
                _ => out.extend_from_slice(&wait.text),
            }
        }
        own(self.text.len(), &mut failed, &mut out);
        (out, failed)
    }
}
