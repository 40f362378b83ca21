//! One client's conversation: bytes in, bytes out.

use crate::answer::{After, answer};
use crate::binary;
use crate::cache::Cache;
use crate::list::{ENOUGH, List, Listed, Lists};
use crate::parser::{Parsed, Parser};
use crate::passwords::Passwords;
use crate::request::{Mode, Request};
use crate::store::{Result, Store};
use std::sync::Arc;

/// Where a conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// More input is needed: at least this number of bytes.
    Input(usize),
    /// Answers wait to be sent.
    Output,
    /// This was the end: answers are to be sent, and no more input is read.
    End,
}

/// The next step after a request.
#[derive(Debug)]
pub enum Next {
    /// The next one.
    Request,
    /// The next one, once answers were sent.
    Pause,
    /// A list of keys, part by part.
    List(List),
    /// The result of a part of a list.
    Listed(Listed),
    /// The end of the conversation.
    End,
}

impl Next {
    /// The next step after a list was requested.
    pub(crate) fn after(begun: Option<List>) -> Next {
        begun.map_or(Next::Request, Next::List)
    }
}

/// A conversation.
#[derive(Debug)]
pub struct Session {
    parser: Parser,
    most_value: usize,
    /// The passwords, until the client has authenticated.
    door: Option<Arc<Passwords>>,
    /// Keys that are being listed.
    list: Option<List>,
    /// It ended with something that cannot be understood.
    lost: bool,
}

impl Session {
    /// A conversation about values of at most `most_value` bytes.
    pub fn new(most_value: usize) -> Session {
        Session {
            parser: Parser::new(most_value),
            most_value,
            door: None,
            list: None,
            lost: false,
        }
    }

    /// The same with a client that has to give a password first.
    pub fn behind_door(most_value: usize, door: Arc<Passwords>) -> Session {
        Session {
            parser: Parser::new(Passwords::MOST),
            most_value,
            door: Some(door),
            list: None,
            lost: false,
        }
    }

    /// Whether the next byte begins a request.
    pub fn between_requests(&self) -> bool {
        self.parser.between_requests()
    }

    /// Whether it ended with something that cannot be understood, so that the client may be sending more of it.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Hands the requests in `input` to `answer`, which appends to `out`; returns the number of bytes consumed, and the next step.
    ///
    /// # Errors
    /// The error of `answer`: after that the conversation cannot go on.
    pub fn converse<E>(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        answer: &mut impl FnMut(Request<'_>, &mut Vec<u8>) -> std::result::Result<Next, E>,
    ) -> std::result::Result<(usize, Pause), E> {
        if let Some(part) = self.list.as_ref().map(List::part) {
            // A part at a time, so that others have their turn.
            let next = answer(Request::ListPart { part }, out)?;
            if let Next::Listed(listed) = next {
                self.listed(listed);
            }
            return Ok((0, Pause::Output));
        }
        let mut used = 0;
        while out.len() < ENOUGH {
            let (now, parsed) = self.parser.next(&input[used..]);
            used += now;
            let request = match parsed {
                Parsed::More(bytes) => return Ok((used, Pause::Input(bytes))),
                Parsed::Request(request) => request,
            };
            let lost = matches!(request, Request::Lost { .. } | Request::Binary { .. });
            let next = match &self.door {
                None => answer(request, out)?,
                Some(door) => {
                    let (admitted, next) = knock(door, &request, out);
                    if admitted {
                        self.door = None;
                        self.parser = Parser::new(self.most_value);
                    }
                    next
                }
            };
            match next {
                Next::Request => {}
                Next::Pause | Next::Listed(_) => return Ok((used, Pause::Output)),
                Next::List(list) => {
                    self.list = Some(list);
                    return Ok((used, Pause::Output));
                }
                Next::End => {
                    self.lost = lost;
                    return Ok((used, Pause::End));
                }
            }
        }
        Ok((used, Pause::Output))
    }

    /// Takes the result of the requested part of a list.
    pub fn listed(&mut self, listed: Listed) {
        match (listed, &mut self.list) {
            (Listed::All, _) | (_, None) => self.list = None,
            (listed, Some(list)) => list.go_on(listed == Listed::Shard),
        }
    }

    /// Gives up a value that waits for its bytes, for which there is no room. The refusal is sent when the conversation goes on.
    pub fn refuse_value(&mut self) {
        self.parser.refuse_value();
    }
}

/// Answers a client that has given no password yet, as memcached does: a `set` of any key with name and password as its value lets it in. Whether
/// it is let in, and the next step.
fn knock(door: &Passwords, request: &Request<'_>, out: &mut Vec<u8>) -> (bool, Next) {
    let (admitted, line) = match request {
        Request::Store {
            mode: Mode::Set,
            cas: None,
            value,
            ..
        } => match door.admits(value) {
            true => (true, "STORED\r\n"),
            false => (false, "CLIENT_ERROR authentication failure\r\n"),
        },
        // Each key of a retrieval is a request, and its line has one answer.
        Request::Get { .. } => (false, ""),
        Request::Binary { opcode, opaque } => {
            binary::refuse(*opcode, *opaque, out);
            return (false, Next::End);
        }
        Request::Quit | Request::Lost { .. } => return (false, Next::End),
        _ => (false, "CLIENT_ERROR unauthenticated\r\n"),
    };
    out.extend_from_slice(line.as_bytes());
    (admitted, Next::Request)
}

/// Answers for a conversation with one cache, where there is no server with numbers about itself.
///
/// # Errors
/// The store's error.
pub fn answer_alone<S: Store>(
    cache: &mut Cache<S>,
    lists: &mut Lists,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Next> {
    let part = match request {
        Request::List { listing } => return Ok(Next::after(lists.begin(listing, out))),
        Request::ListPart { part } => Some(part),
        _ => None,
    };
    Ok(match (answer(cache, request, out)?, part) {
        (After::Listed(last), Some(part)) => Next::Listed(part.over(last, 1, out)),
        (After::Close, _) => Next::End,
        (After::Stats(_), _) => {
            out.extend_from_slice(b"END\r\n");
            Next::Request
        }
        _ => Next::Request,
    })
}
