//! Bytes of a client to requests: a state machine that sees each byte once, in whatever pieces they come.

use crate::binary;
use crate::command::{Command, Pending, UNKNOWN, What, command};
use crate::flags::stored_key;
use crate::request::{Mode, Request, Retrieve, Unread, Verb};
use crate::store::MOST_KEY;
use crate::words::{FORMAT, signed, words};
use std::borrow::Cow;

/// Most bytes of a line, but for the keys of retrievals, of which there may be any number.
pub const MOST_LINE: usize = 2048;

const CHUNK: &str = "CLIENT_ERROR bad data chunk";
const EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";

/// The input that the parser waits for.
#[derive(Debug)]
enum State {
    /// The beginning of a line.
    Line,
    /// The expiry of a retrieval that sets one.
    Expiry { cas: bool },
    /// The next key of a retrieval, or its end; whether there was one.
    Keys { how: Retrieve, some: bool },
    /// A value, and the end of its line, for the command in `Parser::line`.
    Value(Pending),
    /// The same, once there is no room to wait in.
    Refused(Pending),
    /// The rest of an unwanted value and its line, and the answer after it.
    Swallow {
        bytes: u64,
        then: Option<&'static str>,
    },
    /// The end of an unwanted line, and the answer after it.
    Skip { then: Option<&'static str> },
}

/// The result of parsing the input.
#[derive(PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A request.
    Request(Request<'a>),
    /// More input is needed: at least this number of bytes beyond those that were not consumed.
    More(usize),
}

/// The parser of one connection.
#[derive(Debug)]
pub struct Parser {
    state: State,
    line: Vec<u8>,
    most_value: usize,
}

impl Parser {
    /// A parser that accepts values of at most `most_value` bytes.
    pub fn new(most_value: usize) -> Parser {
        Parser {
            state: State::Line,
            line: Vec::new(),
            most_value,
        }
    }

    /// Whether the next byte begins a request.
    pub fn between_requests(&self) -> bool {
        matches!(self.state, State::Line)
    }

    /// The next request in `input`, and the number of bytes consumed: the caller passes the rest again, with more input after it.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> (usize, Parsed<'a>) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.state {
                State::Line => {
                    if rest.first() == Some(&binary::REQUEST) {
                        return match binary::request(rest) {
                            Some(request) => (used, Parsed::Request(request)),
                            None => (used, Parsed::More(binary::HEADER - rest.len())),
                        };
                    }
                    let end = memchr::memchr(b'\n', &rest[..rest.len().min(MOST_LINE)]);
                    if end.is_none() && rest.len() < MOST_LINE {
                        return (used, Parsed::More(1));
                    }
                    if let Some((words, state)) = retrieval(rest) {
                        used += words;
                        self.state = state;
                        // No key is answered if a later one is wrong, as memcached has it.
                        if let Some(end) = end
                            && self.has_long_key(&rest[words..end])
                        {
                            return self.skip(used, FORMAT);
                        }
                        continue;
                    }
                    let Some(end) = end else {
                        // As memcached has it, a line that never ends is not worth a word.
                        return (used, Parsed::Request(Request::Quit));
                    };
                    used += end + 1;
                    match command(without_return(&rest[..end]), self.most_value) {
                        Command::Request(request) => return (used, Parsed::Request(request)),
                        Command::Value(pending) => {
                            self.line.clear();
                            self.line.extend_from_slice(without_return(&rest[..end]));
                            self.state = State::Value(pending);
                        }
                        Command::Refused {
                            answer,
                            quiet,
                            swallow,
                        } => {
                            if let Some(bytes) = swallow {
                                self.state = State::Swallow { bytes, then: None };
                            }
                            if !quiet {
                                return (used, Parsed::Request(Request::Refused { answer }));
                            }
                        }
                        Command::Missing { bytes } => {
                            let then = Some(UNKNOWN);
                            self.state = State::Swallow { bytes, then };
                            let request = Request::Refused { answer: UNKNOWN };
                            return (used, Parsed::Request(request));
                        }
                        Command::TooLarge {
                            key,
                            forget,
                            quiet,
                            bytes,
                        } => {
                            self.state = State::Swallow { bytes, then: None };
                            self.line.clear();
                            self.line.extend_from_slice(&key);
                            let request = Request::Unread {
                                key: &self.line,
                                why: Unread::TooLarge,
                                forget,
                                quiet,
                            };
                            return (used, Parsed::Request(request));
                        }
                    }
                }
                State::Expiry { cas } => {
                    let Some((word, after)) = word(rest) else {
                        return match missing_word(rest) {
                            Some(blanks) => (used + blanks, Parsed::More(1)),
                            None => self.skip(used, EXPIRY),
                        };
                    };
                    // A number as long as no key may be is refused whole too, as it is when it comes in pieces.
                    let Some(expiry) = signed(word).filter(|_| word.len() <= MOST_KEY) else {
                        return self.skip(used, EXPIRY);
                    };
                    self.state = State::Keys {
                        how: Retrieve {
                            cas,
                            touch: Some(expiry),
                        },
                        some: false,
                    };
                    used += after;
                }
                State::Keys { how, some } => {
                    let Some((key, after)) = word(rest) else {
                        return match missing_word(rest) {
                            Some(blanks) => (used + blanks, Parsed::More(1)),
                            None => (used, too_late()),
                        };
                    };
                    if key.is_empty() {
                        // The end of the line is all that is left of it.
                        self.state = State::Line;
                        let request = match some {
                            // As memcached has it: a time alone is no mistake.
                            _ if how.touch.is_some() => Request::GetEnd,
                            true => Request::GetEnd,
                            false => Request::Refused { answer: UNKNOWN },
                        };
                        return (used + after + 1, Parsed::Request(request));
                    }
                    if key.len() > MOST_KEY {
                        return (used, too_late());
                    }
                    self.state = State::Keys { how, some: true };
                    return (used + after, Parsed::Request(Request::Get { how, key }));
                }
                State::Value(Pending {
                    bytes, ref what, ..
                }) => {
                    if let Some(missing) = missing(rest, bytes) {
                        return (used, Parsed::More(missing));
                    }
                    if rest[bytes..].starts_with(b"\r\n") {
                        return self.value(used, input);
                    }
                    let quiet = matches!(what, What::Store { quiet: true, .. });
                    self.state = State::Skip { then: None };
                    used += bytes;
                    if !quiet {
                        return (used, Parsed::Request(Request::Refused { answer: CHUNK }));
                    }
                }
                State::Refused(_) => return (used, Parsed::Request(self.unread())),
                State::Swallow { bytes, then } => {
                    let now = (rest.len() as u64).min(bytes);
                    used += now as usize;
                    self.state = match bytes - now {
                        0 => State::Skip { then },
                        bytes => State::Swallow { bytes, then },
                    };
                    if now < bytes {
                        return (used, Parsed::More(1));
                    }
                }
                State::Skip { then } => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        used += end + 1;
                        self.state = State::Line;
                        if let Some(answer) = then {
                            return (used, Parsed::Request(Request::Refused { answer }));
                        }
                    }
                    None => return (input.len(), Parsed::More(1)),
                },
            }
        }
    }

    /// Discards the expected value when it comes: the refusal is the next request.
    pub fn refuse_value(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Line) {
            State::Value(pending) => State::Refused(pending),
            other => other,
        };
    }

    /// The request that stands for a refused value.
    fn unread(&mut self) -> Request<'_> {
        let State::Refused(pending) = std::mem::replace(&mut self.state, State::Line) else {
            unreachable!("the state was looked at")
        };
        self.state = State::Swallow {
            bytes: pending.bytes as u64,
            then: None,
        };
        let (key, forget, quiet) = match pending.what {
            What::Store {
                mode, cas, quiet, ..
            } => {
                let forget = mode == Mode::Set && cas.is_none();
                (Some(self.line[pending.key].to_vec()), forget, quiet)
            }
            What::Meta { flags } => {
                let key = stored_key(&self.line[pending.key], &self.line[flags]);
                (key.ok().map(Cow::into_owned), true, false)
            }
        };
        // One that cannot be decoded stands for nothing.
        let forget = forget && key.is_some();
        self.line = key.unwrap_or_default();
        Request::Unread {
            key: &self.line,
            why: Unread::NoBuffer,
            forget,
            quiet,
        }
    }

    /// Whether a retrieval's words have a key that is too long. The expiry before the keys is parsed later.
    fn has_long_key(&self, all: &[u8]) -> bool {
        if all.len() <= MOST_KEY {
            return false;
        }
        let mut keys = words(without_return(all));
        if matches!(self.state, State::Expiry { .. })
            && keys.next().is_none_or(|expiry| signed(expiry).is_none())
        {
            return false;
        }
        keys.any(|key| key.len() > MOST_KEY)
    }

    /// Refuses, and goes on with the next line.
    fn skip<'a>(&mut self, used: usize, answer: &'static str) -> (usize, Parsed<'a>) {
        self.state = State::Skip { then: None };
        (used, Parsed::Request(Request::Refused { answer }))
    }

    /// A value is there, with the end of its line.
    fn value<'a>(&'a mut self, used: usize, input: &'a [u8]) -> (usize, Parsed<'a>) {
        let State::Value(pending) = std::mem::replace(&mut self.state, State::Line) else {
            unreachable!("the state was looked at")
        };
        let value = &input[used..][..pending.bytes];
        let key = &self.line[pending.key];
        let request = match pending.what {
            What::Store {
                mode,
                flags,
                expiry,
                cas,
                quiet,
            } => Request::Store {
                mode,
                key,
                flags,
                expiry,
                cas,
                value,
                quiet,
            },
            What::Meta { flags } => Request::Meta {
                verb: Verb::Set,
                key,
                flags: &self.line[flags],
                value,
            },
        };
        (used + pending.bytes + 2, Parsed::Request(request))
    }
}

/// How many bytes are missing until a value and the end of its line can be judged; none if they are there.
fn missing(rest: &[u8], value: usize) -> Option<usize> {
    let whole = value + 2;
    match rest.get(value) {
        // The byte after the value does not end a line: no need to wait for a second byte.
        Some(&after) if after != b'\r' => None,
        _ => whole.checked_sub(rest.len()).filter(|&n| n > 0),
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// How many blanks precede a word whose end is not there yet; none if it is longer than any may be.
fn missing_word(rest: &[u8]) -> Option<usize> {
    let blanks = rest.iter().take_while(|&&b| b == b' ').count();
    // A key, and the first half of the line's end.
    (rest.len() - blanks <= MOST_KEY + 1).then_some(blanks)
}

/// A key that is too long, in a line so long that keys before it were answered. A client that reads on would misinterpret the next answers.
fn too_late() -> Parsed<'static> {
    Parsed::Request(Request::Lost { answer: FORMAT })
}

/// The beginning of a retrieval's line: its bytes, and the next step.
fn retrieval(rest: &[u8]) -> Option<(usize, State)> {
    let keys = |cas| State::Keys {
        how: Retrieve { cas, touch: None },
        some: false,
    };
    if rest.starts_with(b"get ") {
        Some((4, keys(false)))
    } else if rest.starts_with(b"gets ") {
        Some((5, keys(true)))
    } else if rest.starts_with(b"gat ") {
        Some((4, State::Expiry { cas: false }))
    } else if rest.starts_with(b"gats ") {
        Some((5, State::Expiry { cas: true }))
    } else {
        None
    }
}

/// The next word of a line and the offset of its end, a blank or the line's end; an empty word before the line's end; none if the end is
/// not there yet.
fn word(rest: &[u8]) -> Option<(&[u8], usize)> {
    let start = rest.iter().take_while(|&&b| b == b' ').count();
    let end = start + memchr::memchr2(b' ', b'\n', &rest[start..])?;
    let word = &rest[start..end];
    Some(match rest[end] {
        b'\n' => (without_return(word), end),
        _ => (word, end),
    })
}
