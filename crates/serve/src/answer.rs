//! Requests of the classic commands to answers.

use crate::cache::{Cache, Counted, Stored};
use crate::meta;
use crate::request::{Mode, Request, Retrieve};
use crate::store::{Meta, Result, Store};
use crate::words::put_number;

/// The level of the protocol that is spoken, as clients look for it, and whose server this is.
pub const VERSION: &str = concat!("1.6.18-varve-", env!("CARGO_PKG_VERSION"));

/// What comes after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// The next request.
    Next,
    /// The end of the connection, once the answer is sent.
    Close,
    /// Numbers about the server belong here, which only the server has: those that this word asks for.
    Stats(Stats),
}

/// Numbers to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stats {
    /// All counts.
    General,
    /// How the server was set up.
    Settings,
    /// The connections, one by one.
    Connections,
}

/// Answers a request: appends to `out`.
///
/// # Errors
/// What the store says: after that the server cannot go on.
pub fn answer<S: Store>(
    cache: &mut Cache<S>,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Result<After> {
    let line = |out: &mut Vec<u8>, quiet: bool, text: &str| {
        if !quiet {
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    };
    match request {
        Request::Get { how, key } => get(cache, how, key, out)?,
        Request::GetEnd => line(out, false, "END"),
        Request::Store {
            mode,
            key,
            flags,
            expiry,
            cas,
            value,
            quiet,
        } => {
            let expiry = cache.expiry(expiry);
            let meta = Meta {
                flags,
                expiry,
                ..Meta::default()
            };
            let (stored, _) = store(cache, mode, key, meta, cas, value)?;
            // Whoever wants no answers wants to know of this.
            let fails = matches!(stored, Stored::NoMemory | Stored::TooLarge);
            line(out, quiet && !fails, text(stored));
        }
        Request::Delete { key, quiet } => {
            let there = cache.remove(key)?;
            cache.counters.delete_hits += u64::from(there);
            cache.counters.delete_misses += u64::from(!there);
            line(out, quiet, if there { "DELETED" } else { "NOT_FOUND" });
        }
        Request::Count {
            up,
            key,
            delta,
            quiet,
        } => match count(cache, key, up, delta, |_| {})?.0 {
            Counted::Now(number) if !quiet => {
                put_number(out, number);
                out.extend_from_slice(b"\r\n");
            }
            Counted::Now(_) => {}
            Counted::NotFound => line(out, quiet, "NOT_FOUND"),
            Counted::NotNumber => line(out, quiet, NOT_NUMBER),
            Counted::NoMemory => line(out, quiet, text(Stored::NoMemory)),
        },
        Request::Touch { key, expiry, quiet } => {
            let there = touch(cache, key, expiry)?;
            line(out, quiet, if there { "TOUCHED" } else { "NOT_FOUND" });
        }
        Request::FlushAll { delay, quiet } => {
            cache.counters.cmd_flush += 1;
            cache.flush(delay)?;
            line(out, quiet, "OK");
        }
        Request::Stats { what } => match what {
            b"" => return Ok(After::Stats(Stats::General)),
            b"settings" => return Ok(After::Stats(Stats::Settings)),
            b"conns" => return Ok(After::Stats(Stats::Connections)),
            b"reset" => {
                cache.counters = Default::default();
                line(out, false, "RESET");
            }
            // There are no slabs and no classes of items.
            b"items" | b"slabs" => line(out, false, "END"),
            _ => line(out, false, "ERROR"),
        },
        Request::Version => line(out, false, &format!("VERSION {VERSION}")),
        Request::Verbosity { quiet } => line(out, quiet, "OK"),
        Request::Quit => return Ok(After::Close),
        Request::Meta {
            verb,
            key,
            flags,
            value,
        } => meta::answer(cache, verb, key, flags, value, out)?,
        Request::MetaNoop => line(out, false, "MN"),
        Request::Refused { answer } => line(out, false, answer),
        Request::TooLarge { key, quiet: _ } => {
            // An old value in place of a new one would be taken for it.
            cache.remove(key)?;
            line(out, false, text(Stored::TooLarge));
        }
        Request::Lost { answer } => {
            line(out, false, answer);
            return Ok(After::Close);
        }
    }
    Ok(After::Next)
}

pub(crate) const NOT_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// How storing ended, in words of the protocol.
pub(crate) fn text(stored: Stored) -> &'static str {
    match stored {
        Stored::Stored => "STORED",
        Stored::NotStored => "NOT_STORED",
        Stored::Exists => "EXISTS",
        Stored::NotFound => "NOT_FOUND",
        Stored::NoMemory => "SERVER_ERROR out of memory storing object",
        Stored::TooLarge => "SERVER_ERROR object too large for cache",
    }
}

fn get<S: Store>(cache: &mut Cache<S>, how: Retrieve, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let found = cache.get(key, |meta, value| {
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(key);
        out.push(b' ');
        put_number(out, u64::from(meta.flags));
        out.push(b' ');
        put_number(out, value.len() as u64);
        if how.cas {
            out.push(b' ');
            put_number(out, meta.cas);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        meta
    })?;
    cache.counters.cmd_get += 1;
    cache.counters.get_hits += u64::from(found.is_some());
    cache.counters.get_misses += u64::from(found.is_none());
    if let Some(expiry) = how.touch {
        cache.counters.cmd_touch += 1;
        cache.counters.touch_hits += u64::from(found.is_some());
        cache.counters.touch_misses += u64::from(found.is_none());
        if let Some(meta) = found {
            let expiry = cache.expiry(expiry);
            cache.mark(key, Meta { expiry, ..meta })?;
        }
    }
    Ok(())
}

fn touch<S: Store>(cache: &mut Cache<S>, key: &[u8], expiry: i64) -> Result<bool> {
    let found = cache.find(key)?;
    cache.counters.cmd_touch += 1;
    cache.counters.touch_hits += u64::from(found.is_some());
    cache.counters.touch_misses += u64::from(found.is_none());
    if let Some((meta, _)) = found {
        let expiry = cache.expiry(expiry);
        cache.mark(key, Meta { expiry, ..meta })?;
    }
    Ok(found.is_some())
}

/// Stores as a command says; the unique number of what is stored.
pub(crate) fn store<S: Store>(
    cache: &mut Cache<S>,
    mode: Mode,
    key: &[u8],
    meta: Meta,
    cas: Option<u64>,
    value: &[u8],
) -> Result<(Stored, u64)> {
    cache.counters.cmd_set += 1;
    if let Some(cas) = cas {
        let Some((there, _)) = cache.find(key)? else {
            cache.counters.cas_misses += 1;
            return Ok((Stored::NotFound, 0));
        };
        if there.cas != cas {
            cache.counters.cas_badval += 1;
            return Ok((Stored::Exists, 0));
        }
        cache.counters.cas_hits += 1;
    }
    let there = match mode {
        Mode::Set => return cache.put(key, meta, value),
        Mode::Append => return cache.join(key, true, value),
        Mode::Prepend => return cache.join(key, false, value),
        Mode::Add | Mode::Replace => cache.find(key)?.is_some(),
    };
    match there == (mode == Mode::Replace) {
        true => cache.put(key, meta, value),
        false => Ok((Stored::NotStored, 0)),
    }
}

pub(crate) fn count<S: Store>(
    cache: &mut Cache<S>,
    key: &[u8],
    up: bool,
    delta: u64,
    change: impl FnOnce(&mut Meta),
) -> Result<(Counted, u64)> {
    let counted = cache.count_by(key, up, delta, change)?;
    let c = &mut cache.counters;
    match (counted.0, up) {
        (Counted::NotFound, true) => c.incr_misses += 1,
        (Counted::NotFound, false) => c.decr_misses += 1,
        (Counted::Now(_), true) => c.incr_hits += 1,
        (Counted::Now(_), false) => c.decr_hits += 1,
        _ => {}
    }
    Ok(counted)
}
