//! Meta commands: one letter per wish.

use crate::answer::{NOT_NUMBER, count, store, text};
use crate::cache::{Cache, Counted, Stored};
use crate::flags::{Call, TOKEN};
use crate::request::{Mode, Verb};
use crate::store::{Meta, Result, Store};
use crate::words::put_number;

/// Answers a meta command.
///
/// # Errors
/// What the store says.
pub(crate) fn answer<S: Store>(
    cache: &mut Cache<S>,
    verb: Verb,
    key: &[u8],
    flags: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let known: &[u8] = match verb {
        Verb::Get => b"bcfkOqstvNRT",
        Verb::Set => b"bcCFIkOqsTM",
        Verb::Delete => b"bCIkOqT",
        Verb::Arithmetic => b"bcCDJkMNOqtTv",
        Verb::Debug => b"b",
    };
    let refused = match Call::new(key, flags, known) {
        Err(refused) => Err(refused),
        Ok(call) => match verb {
            Verb::Get => get(cache, &call, out)?,
            Verb::Set => set(cache, &call, value, out)?,
            Verb::Delete => delete(cache, &call, out)?,
            Verb::Arithmetic => arithmetic(cache, &call, out)?,
            Verb::Debug => debug(cache, &call, out)?,
        },
    };
    if let Err(refused) = refused {
        out.extend_from_slice(refused.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// An answer, or the line that refuses the command.
type Answer = Result<(), &'static str>;

/// The token of a flag, or the refusal of the command.
macro_rules! given {
    ($e:expr) => {
        match $e {
            Ok(v) => v,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}

fn put_field(out: &mut Vec<u8>, letter: u8, number: u64) {
    out.extend_from_slice(&[b' ', letter]);
    put_number(out, number);
}

fn put_ttl(out: &mut Vec<u8>, meta: Meta, now: i64) {
    match meta.expiry {
        0 => out.extend_from_slice(b" t-1"),
        at => put_field(out, b't', (at - now).max(0) as u64),
    }
}

fn get<S: Store>(cache: &mut Cache<S>, call: &Call<'_>, out: &mut Vec<u8>) -> Result<Answer> {
    let recache = given!(call.flags.signed(b'R'));
    let wants_value = call.flags.has(b'v');
    let mut bytes = Vec::new();
    let found = match wants_value {
        true => cache.get(&call.key, |meta, value| {
            bytes.extend_from_slice(value);
            (meta, value.len())
        })?,
        false => cache.find(&call.key)?,
    };
    cache.counters.cmd_get += 1;
    cache.counters.get_hits += u64::from(found.is_some());
    cache.counters.get_misses += u64::from(found.is_none());
    let (mut meta, length, mut won) = match (found, call.vivify) {
        (Some((meta, length)), _) => (meta, length, false),
        (None, None) => {
            if !call.quiet() {
                call.code("EN", out);
            }
            return Ok(Ok(()));
        }
        (None, Some(ttl)) => {
            let meta = Meta {
                expiry: cache.expiry(ttl),
                claimed: true,
                ..Meta::default()
            };
            match cache.put(&call.key, meta, &[])? {
                (Stored::Stored, cas) => (Meta { cas, ..meta }, 0, true),
                (other, _) => return Ok(Err(text(other))),
            }
        }
    };
    let (before, was_claimed) = (meta, meta.claimed && !won);
    let soon = recache.is_some_and(|within| meta.expiry != 0 && meta.expiry - cache.now() < within);
    won |= (soon || meta.stale) && !meta.claimed;
    meta.claimed |= won;
    if let Some(ttl) = call.ttl {
        cache.counters.cmd_touch += 1;
        cache.counters.touch_hits += 1;
        meta.expiry = cache.expiry(ttl);
    }
    if meta != before {
        cache.mark(&call.key, meta)?;
    }
    if wants_value {
        out.extend_from_slice(b"VA ");
        put_number(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    for &(letter, token) in &call.flags.all {
        match letter {
            b'c' => put_field(out, b'c', meta.cas),
            b'f' => put_field(out, b'f', u64::from(meta.flags)),
            b's' => put_field(out, b's', length as u64),
            b't' => put_ttl(out, meta, cache.now()),
            _ => call.echo(letter, token, out),
        }
    }
    for (letter, holds) in [(b'Z', was_claimed), (b'X', meta.stale), (b'W', won)] {
        if holds {
            out.extend_from_slice(&[b' ', letter]);
        }
    }
    out.extend_from_slice(b"\r\n");
    if wants_value {
        out.extend_from_slice(&bytes);
        out.extend_from_slice(b"\r\n");
    }
    Ok(Ok(()))
}

fn set<S: Store>(
    cache: &mut Cache<S>,
    call: &Call<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<Answer> {
    let flags = given!(call.flags.unsigned(b'F')).unwrap_or(0);
    let Ok(flags) = u32::try_from(flags) else {
        return Ok(Err(TOKEN));
    };
    let mode = match call.flags.token(b'M') {
        None | Some(b"S" | b"s" | b"") => Mode::Set,
        Some(b"E" | b"e") => Mode::Add,
        Some(b"A" | b"a") => Mode::Append,
        Some(b"P" | b"p") => Mode::Prepend,
        Some(b"R" | b"r") => Mode::Replace,
        Some(_) => return Ok(Err("CLIENT_ERROR invalid mode for ms M token")),
    };
    let mut cas = call.cas;
    let mut stale = false;
    if let (true, Some(wanted)) = (call.flags.has(b'I'), cas)
        && let Some((there, _)) = cache.find(&call.key)?
        && there.cas > wanted
    {
        // A value from before somebody invalidated the key: better than none, and out of date.
        (cas, stale) = (None, true);
    }
    let meta = Meta {
        flags,
        expiry: cache.expiry(call.ttl.unwrap_or(0)),
        stale,
        ..Meta::default()
    };
    let (stored, unique) = store(cache, mode, &call.key, meta, cas, value)?;
    let code = match stored {
        Stored::Stored if call.quiet() => return Ok(Ok(())),
        Stored::Stored => "HD",
        Stored::NotStored => "NS",
        Stored::Exists => "EX",
        Stored::NotFound => "NF",
        other => return Ok(Err(text(other))),
    };
    out.extend_from_slice(code.as_bytes());
    for &(letter, token) in &call.flags.all {
        match letter {
            b'c' => put_field(out, b'c', unique),
            b's' => put_field(out, b's', value.len() as u64),
            _ => call.echo(letter, token, out),
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(Ok(()))
}

fn delete<S: Store>(cache: &mut Cache<S>, call: &Call<'_>, out: &mut Vec<u8>) -> Result<Answer> {
    let found = cache.find(&call.key)?;
    let code = match found {
        None => "NF",
        Some((there, _)) if call.cas.is_some_and(|cas| cas != there.cas) => "EX",
        Some((there, _)) if call.flags.has(b'I') => {
            let expiry = match call.ttl {
                Some(ttl) => cache.expiry(ttl),
                None => there.expiry,
            };
            let meta = Meta {
                expiry,
                stale: true,
                claimed: false,
                cas: cache.next_unique(),
                ..there
            };
            cache.mark(&call.key, meta)?;
            "HD"
        }
        Some(_) => {
            cache.remove(&call.key)?;
            "HD"
        }
    };
    cache.counters.delete_hits += u64::from(code == "HD");
    cache.counters.delete_misses += u64::from(code == "NF");
    if !call.quiet() || code != "HD" {
        call.code(code, out);
    }
    Ok(Ok(()))
}

fn arithmetic<S: Store>(
    cache: &mut Cache<S>,
    call: &Call<'_>,
    out: &mut Vec<u8>,
) -> Result<Answer> {
    let number = "CLIENT_ERROR invalid or duplicate flag";
    let delta = given!(call.flags.unsigned(b'D').map_err(|_| number)).unwrap_or(1);
    let first = given!(call.flags.unsigned(b'J').map_err(|_| number)).unwrap_or(0);
    let up = match call.flags.token(b'M') {
        None | Some(b"I" | b"i" | b"+" | b"") => true,
        Some(b"D" | b"d" | b"-") => false,
        Some(_) => return Ok(Err("CLIENT_ERROR invalid mode for ma M token")),
    };
    let found = cache.find(&call.key)?;
    if let (Some(cas), Some((there, _))) = (call.cas, found)
        && there.cas != cas
    {
        call.code("EX", out);
        return Ok(Ok(()));
    }
    let ttl = call.ttl.map(|ttl| cache.expiry(ttl));
    let change = |meta: &mut Meta| meta.expiry = ttl.unwrap_or(meta.expiry);
    let (now, unique) = match (count(cache, &call.key, up, delta, change)?, call.vivify) {
        ((Counted::Now(number), cas), _) => (number, cas),
        ((Counted::NotNumber, _), _) => return Ok(Err(NOT_NUMBER)),
        ((Counted::NoMemory, _), _) => return Ok(Err(text(Stored::NoMemory))),
        ((Counted::NotFound, _), None) => {
            call.code("NF", out);
            return Ok(Ok(()));
        }
        ((Counted::NotFound, _), Some(ttl)) => {
            let mut digits = Vec::new();
            put_number(&mut digits, first);
            let meta = Meta {
                expiry: cache.expiry(ttl),
                ..Meta::default()
            };
            match cache.put(&call.key, meta, &digits)? {
                (Stored::Stored, cas) => (first, cas),
                (other, _) => return Ok(Err(text(other))),
            }
        }
    };
    // A number that was not there is told of, as memcached has it.
    if call.quiet() && found.is_some() {
        return Ok(Ok(()));
    }
    let mut digits = Vec::new();
    put_number(&mut digits, now);
    if call.flags.has(b'v') {
        out.extend_from_slice(b"VA ");
        put_number(out, digits.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    let expiry = cache.find(&call.key)?.map_or(0, |(meta, _)| meta.expiry);
    for &(letter, token) in &call.flags.all {
        match letter {
            b'c' => put_field(out, b'c', unique),
            b't' => {
                let meta = Meta {
                    expiry,
                    ..Meta::default()
                };
                put_ttl(out, meta, cache.now());
            }
            _ => call.echo(letter, token, out),
        }
    }
    out.extend_from_slice(b"\r\n");
    if call.flags.has(b'v') {
        out.extend_from_slice(&digits);
        out.extend_from_slice(b"\r\n");
    }
    Ok(Ok(()))
}

fn debug<S: Store>(cache: &mut Cache<S>, call: &Call<'_>, out: &mut Vec<u8>) -> Result<Answer> {
    let Some((meta, length)) = cache.find(&call.key)? else {
        out.extend_from_slice(b"EN\r\n");
        return Ok(Ok(()));
    };
    let left = match meta.expiry {
        0 => -1,
        at => at - cache.now(),
    };
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(call.written);
    out.extend_from_slice(format!(" exp={left} cas={} size={length}\r\n", meta.cas).as_bytes());
    Ok(Ok(()))
}
