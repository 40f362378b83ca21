//! Requests of the classic commands to answers.

use crate::binary;
use crate::cache::{Cache, Counted, Stored};
use crate::changes::{NOT_NUMBER, Put, count, store, text};
use crate::meta;
use crate::request::{Mode, Request, Retrieve, Unread};
use crate::store::{Meta, Result, Store, StoreError};
use crate::words::put_number;

/// The level of the protocol that is spoken, as clients query it, and whose server this is.
pub const VERSION: &str = concat!("1.6.18-varve-", env!("CARGO_PKG_VERSION"));

/// The next step after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// The next request.
    Next,
    /// The end of the connection, once the answer is sent.
    Close,
    /// Numbers about the server belong here, which only the server has: those that this word asks for.
    Stats(Stats),
    /// A part of a list of keys; whether it was the last one.
    Listed(bool),
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
/// [`StoreError::Failed`]: after that the store cannot go on.
pub fn answer<S: Store>(
    cache: &mut Cache<S>,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Result<After> {
    let begin = out.len();
    match carry_out(cache, request, out) {
        // Something besides a value found no room: it was not done.
        Err(StoreError::Full) => {
            out.truncate(begin);
            out.extend_from_slice(text(Stored::NoMemory).as_bytes());
            out.extend_from_slice(b"\r\n");
            Ok(After::Next)
        }
        done => done,
    }
}

fn carry_out<S: Store>(
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
            let how = Put {
                mode,
                cas,
                ..Put::default()
            };
            let (stored, _, _) = store(cache, key, meta, value, how)?;
            // An old value in place of a new one would be taken for it.
            if no_room(stored) && mode == Mode::Set && cas.is_none() {
                cache.remove(key)?;
            }
            line(out, quiet, text(stored));
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
            b"items" => items(cache, out)?,
            b"slabs" => slabs(cache, out)?,
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
        Request::Unread {
            key,
            why,
            forget,
            quiet,
        } => {
            if forget {
                cache.remove(key)?;
            }
            let said = match why {
                Unread::TooLarge => {
                    cache.counters.too_large += 1;
                    text(Stored::TooLarge)
                }
                Unread::NoBuffer => "SERVER_ERROR out of memory reading request",
            };
            line(out, quiet, said);
        }
        Request::MemoryLimit { megabytes, quiet } => {
            line(out, quiet, memory_limit(cache, megabytes))
        }
        // The server, which knows all shards, begins a list.
        Request::List { .. } => {}
        Request::ListPart { part } => return Ok(After::Listed(cache.list_some(part, out)?)),
        Request::Binary { opcode, opaque } => {
            binary::refuse(opcode, opaque, out);
            return Ok(After::Close);
        }
        Request::Lost { answer } => {
            line(out, false, answer);
            return Ok(After::Close);
        }
    }
    Ok(After::Next)
}

/// Whether nothing was stored since it finds no room, now or ever.
pub(crate) fn no_room(stored: Stored) -> bool {
    matches!(stored, Stored::NoMemory | Stored::TooLarge)
}

/// Sets the limit of all values, in words of the protocol.
fn memory_limit<S: Store>(cache: &mut Cache<S>, megabytes: u64) -> &'static str {
    match megabytes {
        ..8 => "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
        1_000_000_001.. => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
        _ if cache.set_memory(megabytes << 20) => "OK",
        _ => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
    }
}

/// All values are of one class, number 1: there are no slabs.
fn items<S: Store>(cache: &mut Cache<S>, out: &mut Vec<u8>) -> Result<()> {
    let count = cache.count()? as u64;
    let c = cache.counters.clone();
    let numbers = [
        ("items:1:number", count),
        ("items:1:evicted", c.evictions),
        ("items:1:outofmemory", c.no_memory),
        ("items:1:reclaimed", c.reclaimed),
    ];
    put_stats(out, if count > 0 { &numbers } else { &[] });
    Ok(())
}

fn slabs<S: Store>(cache: &mut Cache<S>, out: &mut Vec<u8>) -> Result<()> {
    let count = cache.count()? as u64;
    let numbers = [
        ("1:used_chunks", count),
        ("1:mem_requested", cache.bytes()),
        ("active_slabs", 1),
        ("total_malloced", cache.bytes()),
    ];
    put_stats(out, if count > 0 { &numbers } else { &numbers[2..] });
    Ok(())
}

fn put_stats(out: &mut Vec<u8>, numbers: &[(&str, u64)]) {
    for (name, number) in numbers {
        out.extend_from_slice(format!("STAT {name} {number}\r\n").as_bytes());
    }
    out.extend_from_slice(b"END\r\n");
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
    if found.is_some() {
        cache.fetched(key);
    }
    cache.counters.asked(how.touch.is_some(), found.is_some());
    if let (Some(expiry), Some(meta)) = (how.touch, found) {
        let expiry = cache.expiry(expiry);
        cache.mark(key, Meta { expiry, ..meta })?;
    }
    Ok(())
}

fn touch<S: Store>(cache: &mut Cache<S>, key: &[u8], expiry: i64) -> Result<bool> {
    let found = cache.find(key)?;
    cache.counters.asked(true, found.is_some());
    if let Some((meta, _)) = found {
        cache.fetched(key);
        let expiry = cache.expiry(expiry);
        cache.mark(key, Meta { expiry, ..meta })?;
    }
    Ok(found.is_some())
}
