//! One client's conversation: bytes in, bytes out.

use crate::answer::{After, Stats, answer};
use crate::cache::Cache;
use crate::list::List;
use crate::parser::{Parsed, Parser};
use crate::store::{Result, Store};

/// Bytes of answers after which no further request is answered until some are sent.
pub const ENOUGH: usize = 64 << 10;

/// Where a conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// More input is needed: so many bytes at least.
    Input(usize),
    /// Answers wait to be sent.
    Output,
    /// This was the end: answers are to be sent, and no more input is read.
    End,
}

/// A conversation.
#[derive(Debug)]
pub struct Session {
    parser: Parser,
    /// Keys that are being listed.
    list: Option<List>,
}

impl Session {
    /// A conversation about values of at most so many bytes.
    pub fn new(most_value: usize) -> Session {
        Session {
            parser: Parser::new(most_value),
            list: None,
        }
    }

    /// Answers what is in `input`; how many bytes of it are done with, and what comes next. `stats` appends numbers about the server.
    ///
    /// # Errors
    /// What the store says: after that the server cannot go on.
    pub fn converse<S: Store>(
        &mut self,
        cache: &mut Cache<S>,
        input: &[u8],
        out: &mut Vec<u8>,
        stats: &mut impl FnMut(Stats, &mut Cache<S>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<(usize, Pause)> {
        if let Some(list) = &mut self.list {
            // A part at a time, so that others have their turn.
            if !cache.list_some(list, out)? {
                return Ok((0, Pause::Output));
            }
            self.list = None;
        }
        let mut used = 0;
        while out.len() < ENOUGH {
            let (now, parsed) = self.parser.next(&input[used..]);
            used += now;
            match parsed {
                Parsed::More(bytes) => return Ok((used, Pause::Input(bytes))),
                Parsed::Request(request) => match answer(cache, request, out)? {
                    After::Next => {}
                    After::Close => return Ok((used, Pause::End)),
                    After::Stats(which) => stats(which, cache, out)?,
                    After::List(list) => {
                        self.list = Some(list);
                        return Ok((used, Pause::Output));
                    }
                },
            }
        }
        Ok((used, Pause::Output))
    }

    /// Gives up a value that waits for its bytes, for which there is no room. What is said of it comes when the conversation goes on.
    pub fn refuse_value(&mut self) {
        self.parser.refuse_value();
    }
}
