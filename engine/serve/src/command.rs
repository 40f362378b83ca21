//! Lines of commands, but for retrievals, whose keys come one by one.

use crate::flags::stored_key;
use crate::request::{Listing, Mode, Request, Verb};
use crate::store::MOST_KEY;
use crate::words::{FORMAT, signed, unsigned, words};
use std::borrow::Cow;
use std::ops::Range;

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

/// A parsed line.
pub(crate) enum Command<'a> {
    Request(Request<'a>),
    Value(Pending),
    /// The value that follows is skipped, if its length is known. A client that asked for no answers gets none.
    Refused {
        answer: &'static str,
        quiet: bool,
        swallow: Option<u64>,
    },
    /// A `cas` without its number, of a value of `bytes` bytes. memcached 1.6.18 parses the value as a command, and so answers with two errors. This
    /// sends two errors too, and skips the value.
    Missing {
        bytes: u64,
    },
    /// A value that is too large, and whether the one that is there is out of date with it.
    TooLarge {
        key: Cow<'a, [u8]>,
        forget: bool,
        quiet: bool,
        bytes: u64,
    },
}

fn refused<'a>(answer: &'static str) -> Command<'a> {
    refused_quietly(answer, false)
}

fn refused_quietly<'a>(answer: &'static str, quiet: bool) -> Command<'a> {
    Command::Refused {
        answer,
        quiet,
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
    rest: impl Iterator<Item = &'a [u8]>,
    most_value: usize,
) -> Command<'a> {
    let all: Vec<&[u8]> = rest.take(8).collect();
    let (&[key, flags, expiry, length], more) = match all.split_first_chunk::<4>() {
        Some((first, more)) => (first, more),
        None => return refused(UNKNOWN),
    };
    let bytes = length_of(length);
    let refused = |answer, quiet| Command::Refused {
        answer,
        quiet,
        swallow: bytes,
    };
    // A word that is neither the number nor `noreply` is let through, as memcached has it.
    let (cas, quiet) = match (with_cas, more) {
        (true, []) => {
            return match bytes {
                Some(bytes) => Command::Missing { bytes },
                None => refused(UNKNOWN, false),
            };
        }
        (true, [cas] | [cas, _]) => (Some(*cas), more.last()),
        (false, [] | [_]) => (None, more.last()),
        _ => return refused(UNKNOWN, false),
    };
    let quiet = quiet == Some(&&b"noreply"[..]);
    let flags = unsigned(flags).and_then(|f| u32::try_from(f).ok());
    let no_number = cas.is_some_and(|cas| unsigned(cas).is_none());
    let (Some(flags), Some(expiry), Some(bytes), false) = (
        flags,
        signed(expiry),
        bytes,
        no_number || key.len() > MOST_KEY,
    ) else {
        return refused(FORMAT, quiet);
    };
    if bytes > most_value as u64 {
        return Command::TooLarge {
            key: key.into(),
            forget: mode == Mode::Set && !with_cas,
            quiet,
            bytes,
        };
    }
    Command::Value(Pending {
        bytes: bytes as usize,
        key: place(line, key),
        what: What::Store {
            mode,
            flags,
            expiry,
            cas: cas.and_then(unsigned),
            quiet,
        },
    })
}

/// The length of a value, as far as memcached has any.
fn length_of(word: &[u8]) -> Option<u64> {
    unsigned(word).filter(|n| *n <= i32::MAX as u64 - 2)
}

/// Where a part of a line is in it.
fn place(line: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - line.as_ptr() as usize;
    start..start + part.len()
}

fn meta<'a>(line: &'a [u8], name: &[u8], most_value: usize) -> Command<'a> {
    let mut rest = words(line).skip(1);
    let verb = match name {
        b"mg" => Verb::Get,
        b"ms" => Verb::Set,
        b"md" => Verb::Delete,
        b"ma" => Verb::Arithmetic,
        _ => Verb::Debug,
    };
    let Some(key) = rest.next() else {
        let none = if verb == Verb::Debug { FORMAT } else { UNKNOWN };
        return refused(none);
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
    let Some(bytes) = length_of(length) else {
        return refused(FORMAT);
    };
    if key.len() > MOST_KEY {
        return Command::Refused {
            answer: FORMAT,
            quiet: false,
            swallow: Some(bytes),
        };
    }
    if bytes > most_value as u64 {
        return match stored_key(key, &line[flags]) {
            Ok(key) => Command::TooLarge {
                key,
                forget: true,
                quiet: false,
                bytes,
            },
            Err(answer) => Command::Refused {
                answer,
                quiet: false,
                swallow: Some(bytes),
            },
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
    let is_http = all.last().is_some_and(|word| word.starts_with(b"HTTP/"));
    // Alone after `delete` it is a key.
    let quiet = all.last() == Some(&&b"noreply"[..]) && (name != b"delete" || all.len() > 1);
    if quiet {
        all.pop();
    }
    let refused = |answer| refused_quietly(answer, quiet);
    // A word too many is let through where `noreply` could be, as memcached has it.
    let most = match name {
        b"incr" | b"decr" | b"touch" => 2,
        b"flush_all" | b"verbosity" | b"cache_memlimit" => 1,
        _ => all.len(),
    };
    if !quiet && all.len() == most + 1 {
        all.pop();
    }
    let long = || all[0].len() > MOST_KEY;
    let request = match (name, all.as_slice()) {
        (b"delete", [_] | [_, b"0"]) if long() => return refused(FORMAT),
        (b"delete", [key] | [key, b"0"]) => Request::Delete { key, quiet },
        (b"delete", [_, _] | [_, _, _]) if all.len() == 2 || !quiet => {
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
        (b"incr" | b"decr" | b"touch", [_]) if quiet => return refused(FORMAT),
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
        (b"cache_memlimit", [megabytes]) => match unsigned(megabytes) {
            Some(megabytes) => Request::MemoryLimit { megabytes, quiet },
            None => return refused(UNKNOWN),
        },
        (b"cache_memlimit", []) if quiet => return refused(UNKNOWN),
        (b"lru_crawler", [what @ (b"metadump" | b"mgdump"), b"all" | b"hash"]) if !quiet => {
            let listing = match *what {
                b"metadump" => Listing::Described,
                _ => Listing::Commands,
            };
            Request::List { listing }
        }
        (b"shutdown", _) => return refused("ERROR: shutdown not enabled"),
        (b"quit", _) => Request::Quit,
        (b"mn", _) => Request::MetaNoop,
        // A browser, or an attacker's page in one: the request's other lines would be taken for commands.
        _ if is_http => Request::Quit,
        // How many words a command should have is not known of one that is wrong, so `noreply` may mean something else.
        _ => return refused_quietly(UNKNOWN, false),
    };
    Command::Request(request)
}
