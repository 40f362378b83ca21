//! Lines of commands, but for retrievals, whose keys come one by one.

use crate::request::{Mode, Request, Verb};
use crate::store::MOST_KEY;
use crate::words::{signed, unsigned, words};
use std::ops::Range;

pub(crate) const FORMAT: &str = "CLIENT_ERROR bad command line format";
pub(crate) const UNKNOWN: &str = "ERROR";

/// A command that waits for its value. Places are in `Parser::line`.
#[derive(Debug)]
pub(crate) struct Pending {
    pub bytes: usize,
    pub key: Range<usize>,
    pub what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Store {
        mode: Mode,
        flags: u32,
        expiry: i64,
        cas: Option<u64>,
        quiet: bool,
    },
    Meta {
        flags: Range<usize>,
    },
}

/// What a line says.
pub(crate) enum Command<'a> {
    Request(Request<'a>),
    Value(Pending),
    /// The value that follows, if it is known how long it is, is of no use.
    Refused {
        answer: &'static str,
        swallow: Option<u64>,
    },
    TooLarge {
        key: &'a [u8],
        quiet: bool,
        bytes: u64,
    },
}

fn refused<'a>(answer: &'static str) -> Command<'a> {
    Command::Refused {
        answer,
        swallow: None,
    }
}

/// Understands a line that is no retrieval.
pub(crate) fn command(line: &[u8], most_value: usize) -> Command<'_> {
    let mut rest = words(line);
    let Some(name) = rest.next() else {
        return refused(UNKNOWN);
    };
    let mode = match name {
        b"set" | b"cas" => Mode::Set,
        b"add" => Mode::Add,
        b"replace" => Mode::Replace,
        b"append" => Mode::Append,
        b"prepend" => Mode::Prepend,
        b"mg" | b"ms" | b"md" | b"ma" | b"me" => return meta(line, name, most_value),
        _ => return short(name, rest),
    };
    store(line, mode, name == b"cas", rest, most_value)
}

fn store<'a>(
    line: &'a [u8],
    mode: Mode,
    with_cas: bool,
    mut rest: impl Iterator<Item = &'a [u8]>,
    most_value: usize,
) -> Command<'a> {
    let (Some(key), Some(flags), Some(expiry), Some(bytes)) =
        (rest.next(), rest.next(), rest.next(), rest.next())
    else {
        return refused(UNKNOWN);
    };
    let cas = rest.next();
    let (cas, quiet) = match with_cas {
        true if cas.is_none() => return refused(UNKNOWN),
        true => (cas, rest.next()),
        false => (None, cas),
    };
    let quiet = quiet == Some(b"noreply");
    let bytes = unsigned(bytes).filter(|n| *n <= i32::MAX as u64 - 2);
    let flags = unsigned(flags).and_then(|f| u32::try_from(f).ok());
    let (cas, no_number) = match cas.map(unsigned) {
        Some(None) => (None, true),
        Some(number) => (number, false),
        None => (None, false),
    };
    let (Some(flags), Some(expiry), Some(bytes)) = (flags, signed(expiry), bytes) else {
        return Command::Refused {
            answer: FORMAT,
            swallow: bytes,
        };
    };
    if key.len() > MOST_KEY || no_number {
        return Command::Refused {
            answer: FORMAT,
            swallow: Some(bytes),
        };
    }
    if bytes > most_value as u64 {
        return Command::TooLarge { key, quiet, bytes };
    }
    Command::Value(Pending {
        bytes: bytes as usize,
        key: place(line, key),
        what: What::Store {
            mode,
            flags,
            expiry,
            cas,
            quiet,
        },
    })
}

/// Where a part of a line is in it.
fn place(line: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - line.as_ptr() as usize;
    start..start + part.len()
}

fn meta<'a>(line: &'a [u8], name: &[u8], most_value: usize) -> Command<'a> {
    let mut rest = words(line).skip(1);
    let Some(key) = rest.next() else {
        return refused(UNKNOWN);
    };
    let verb = match name {
        b"mg" => Verb::Get,
        b"ms" => Verb::Set,
        b"md" => Verb::Delete,
        b"ma" => Verb::Arithmetic,
        _ => Verb::Debug,
    };
    let mut flags = place(line, key).end..line.len();
    if verb != Verb::Set {
        if key.len() > MOST_KEY {
            return refused(FORMAT);
        }
        return Command::Request(Request::Meta {
            verb,
            key,
            flags: &line[flags],
            value: &[],
        });
    }
    let Some(length) = rest.next() else {
        return refused(FORMAT);
    };
    flags.start = place(line, length).end;
    let Some(bytes) = unsigned(length).filter(|n| *n <= i32::MAX as u64 - 2) else {
        return refused(FORMAT);
    };
    if key.len() > MOST_KEY {
        return Command::Refused {
            answer: FORMAT,
            swallow: Some(bytes),
        };
    }
    if bytes > most_value as u64 {
        return Command::TooLarge {
            key,
            quiet: false,
            bytes,
        };
    }
    Command::Value(Pending {
        bytes: bytes as usize,
        key: place(line, key),
        what: What::Meta { flags },
    })
}

/// Commands without a value.
fn short<'a>(name: &'a [u8], rest: impl Iterator<Item = &'a [u8]>) -> Command<'a> {
    let mut all: Vec<&[u8]> = rest.take(8).collect();
    let quiet = all.last() == Some(&&b"noreply"[..]);
    if quiet {
        all.pop();
    }
    let long = || all[0].len() > MOST_KEY;
    let request = match (name, all.as_slice()) {
        (b"delete", [_] | [_, b"0"]) if long() => return refused(FORMAT),
        (b"delete", [key] | [key, b"0"]) => Request::Delete { key, quiet },
        (b"delete", [_, _]) => {
            return refused("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
        }
        (b"incr" | b"decr" | b"touch", [_, _]) if long() => return refused(FORMAT),
        (b"incr" | b"decr", [key, delta]) => match unsigned(delta) {
            Some(delta) => Request::Count {
                up: name == b"incr",
                key,
                delta,
                quiet,
            },
            None => return refused("CLIENT_ERROR invalid numeric delta argument"),
        },
        (b"touch", [key, expiry]) => match signed(expiry) {
            Some(expiry) => Request::Touch { key, expiry, quiet },
            None => return refused("CLIENT_ERROR invalid exptime argument"),
        },
        (b"flush_all", []) => Request::FlushAll { delay: 0, quiet },
        (b"flush_all", [delay]) => match signed(delay) {
            Some(delay) => Request::FlushAll { delay, quiet },
            None => return refused("CLIENT_ERROR invalid exptime argument"),
        },
        (b"stats", []) if !quiet => Request::Stats { what: &[] },
        (b"stats", [what]) if !quiet => Request::Stats { what },
        (b"version", _) => Request::Version,
        (b"verbosity", []) if quiet => Request::Verbosity { quiet },
        (b"verbosity", [level]) => match unsigned(level) {
            Some(_) => Request::Verbosity { quiet },
            None if quiet => Request::Verbosity { quiet },
            None => return refused(FORMAT),
        },
        (b"quit", _) => Request::Quit,
        (b"mn", _) => Request::MetaNoop,
        _ => return refused(UNKNOWN),
    };
    Command::Request(request)
}
