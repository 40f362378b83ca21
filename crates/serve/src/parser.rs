//! Bytes of a client to requests: a state machine that sees each byte once, in whatever pieces they come.

use crate::command::{Command, FORMAT, Pending, UNKNOWN, What, command};
use crate::request::{Request, Retrieve, Verb};
use crate::store::MOST_KEY;
use crate::words::signed;

/// Most bytes of a line, but for the keys of retrievals, of which there may be any number.
pub const MOST_LINE: usize = 2048;

const CHUNK: &str = "CLIENT_ERROR bad data chunk";
const EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";

/// What the parser waits for.
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
    /// The rest of a value that nobody wants, and of its line.
    Swallow { bytes: u64 },
    /// The end of a line that nobody wants.
    Skip,
}

/// What came of looking at the input.
#[derive(PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A request.
    Request(Request<'a>),
    /// More input is needed: at least so many bytes beyond those that were not used.
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
    /// A parser that takes values of at most so many bytes.
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

    /// The next request in `input`, and how many of its bytes are done with: what is left is to be given again, with more behind it.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> (usize, Parsed<'a>) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.state {
                State::Line => {
                    if rest.first() == Some(&0x80) {
                        return (used, lost(rest));
                    }
                    if let Some((words, state)) = retrieval(rest) {
                        self.state = state;
                        used += words;
                        continue;
                    }
                    let Some(end) = memchr::memchr(b'\n', &rest[..rest.len().min(MOST_LINE)])
                    else {
                        return match rest.len() < MOST_LINE {
                            true => (used, Parsed::More(1)),
                            false => (used, lost(rest)),
                        };
                    };
                    used += end + 1;
                    match command(without_return(&rest[..end]), self.most_value) {
                        Command::Request(request) => return (used, Parsed::Request(request)),
                        Command::Value(pending) => {
                            self.line.clear();
                            self.line.extend_from_slice(without_return(&rest[..end]));
                            self.state = State::Value(pending);
                        }
                        Command::Refused { answer, swallow } => {
                            if let Some(bytes) = swallow {
                                self.state = State::Swallow { bytes };
                            }
                            return (used, Parsed::Request(Request::Refused { answer }));
                        }
                        Command::TooLarge { key, quiet, bytes } => {
                            self.state = State::Swallow { bytes };
                            return (used, Parsed::Request(Request::TooLarge { key, quiet }));
                        }
                    }
                }
                State::Expiry { cas } => {
                    let Some((word, after)) = word(rest) else {
                        return self.incomplete(used, rest, EXPIRY);
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
                        return self.incomplete(used, rest, FORMAT);
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
                        return self.skip(used, FORMAT);
                    }
                    self.state = State::Keys { how, some: true };
                    return (used + after, Parsed::Request(Request::Get { how, key }));
                }
                State::Value(Pending { bytes, .. }) => {
                    let Some(missing) = missing(rest, bytes) else {
                        return self.value(used, input);
                    };
                    return (used, Parsed::More(missing));
                }
                State::Swallow { bytes } => {
                    let now = (rest.len() as u64).min(bytes);
                    used += now as usize;
                    self.state = match bytes - now {
                        0 => State::Skip,
                        bytes => State::Swallow { bytes },
                    };
                    if now < bytes {
                        return (used, Parsed::More(1));
                    }
                }
                State::Skip => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        used += end + 1;
                        self.state = State::Line;
                    }
                    None => return (input.len(), Parsed::More(1)),
                },
            }
        }
    }

    /// Has a value that is waited for thrown away when it comes; whether there is one.
    pub fn refuse_value(&mut self) -> bool {
        let State::Value(Pending { bytes, .. }) = self.state else {
            return false;
        };
        self.state = State::Swallow {
            bytes: bytes as u64,
        };
        true
    }

    /// A word of a retrieval whose end is not there yet; what to answer if it is longer than any may be.
    fn incomplete<'a>(
        &mut self,
        used: usize,
        rest: &'a [u8],
        too_long: &'static str,
    ) -> (usize, Parsed<'a>) {
        let blanks = rest.iter().take_while(|&&b| b == b' ').count();
        // A key, and the first half of the line's end.
        match rest.len() - blanks <= MOST_KEY + 1 {
            true => (used + blanks, Parsed::More(1)),
            false => self.skip(used + blanks, too_long),
        }
    }

    /// Refuses, and goes on with the next line.
    fn skip<'a>(&mut self, used: usize, answer: &'static str) -> (usize, Parsed<'a>) {
        self.state = State::Skip;
        (used, Parsed::Request(Request::Refused { answer }))
    }

    /// A value is there, with what should be the end of its line.
    fn value<'a>(&'a mut self, used: usize, input: &'a [u8]) -> (usize, Parsed<'a>) {
        let State::Value(pending) = std::mem::replace(&mut self.state, State::Line) else {
            unreachable!("the state was looked at")
        };
        let (value, end) = input[used..].split_at(pending.bytes);
        if !end.starts_with(b"\r\n") {
            return self.skip(used + pending.bytes, CHUNK);
        }
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
        // What follows the value is no end of a line: no need to wait for a second byte.
        Some(&after) if after != b'\r' => None,
        _ => whole.checked_sub(rest.len()).filter(|&n| n > 0),
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line that is too long, or another protocol.
fn lost(rest: &[u8]) -> Parsed<'static> {
    let answer = match rest[0] {
        0x80 => "CLIENT_ERROR the binary protocol is not spoken here, use text",
        _ => "CLIENT_ERROR line too long",
    };
    Parsed::Request(Request::Lost { answer })
}

/// The beginning of a retrieval's line: its bytes, and what comes next.
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

/// The next word of a line and the offset of what ends it, a blank or the line's end; an empty word before the line's end; none if the end is
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
