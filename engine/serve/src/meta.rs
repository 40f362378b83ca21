//! Meta commands: one letter per wish.

use crate::cache::{Cache, Counted, Stored};
use crate::changes::{NOT_NUMBER, Put, count, store, text};
use crate::flags::{Call, stored_key};
use crate::request::{Mode, Verb};
use crate::store::{Meta, Result, Store};
use crate::words::{FORMAT, put_number};

/// Answers a meta command.
///
/// # Errors
/// The store's error.
pub(crate) fn answer<S: Store>(
    cache: &mut Cache<S>,
    verb: Verb,
    key: &[u8],
    flags: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let refused = match (Call::new(key, flags), verb) {
        (_, Verb::Debug) => debug(cache, key, flags, out)?,
        (Err(refused), _) => Err(match verb {
            // As memcached has it.
            Verb::Delete | Verb::Arithmetic => INVALID,
            _ => refused,
        }),
        (Ok(call), Verb::Get) => get(cache, &call, out)?,
        (Ok(call), Verb::Set) => set(cache, &call, value, out)?,
        (Ok(call), Verb::Delete) => delete(cache, &call, out)?,
        (Ok(call), Verb::Arithmetic) => arithmetic(cache, &call, out)?,
    };
    if let Err(refused) = refused {
        out.extend_from_slice(refused.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// An answer, or the line that refuses the command.
type Answer = Result<(), &'static str>;

const INVALID: &str = "CLIENT_ERROR invalid or duplicate flag";

fn put_field(out: &mut Vec<u8>, letter: u8, number: u64) {
    out.extend_from_slice(&[b' ', letter]);
    put_number(out, number);
}

fn put_ttl(out: &mut Vec<u8>, expiry: i64, now: i64) {
    match expiry {
        0 => out.extend_from_slice(b" t-1"),
        at => put_field(out, b't', (at - now).max(0) as u64),
    }
}

fn get<S: Store>(cache: &mut Cache<S>, call: &Call<'_>, out: &mut Vec<u8>) -> Result<Answer> {
    let mut wants_value = call.flags.has(b'v');
    let mut bytes = Vec::new();
    let found = match wants_value {
        true => cache.get(&call.key, |meta, value| {
            bytes.extend_from_slice(value);
            (meta, value.len())
        })?,
        false => cache.find(&call.key)?,
    };
    let (mut meta, length, mut won) = match (found, call.vivify) {
        (Some((meta, length)), _) => (meta, length, false),
        (None, None) => {
            cache.counters.asked(call.ttl.is_some(), false);
            if !call.quiet() {
                call.code("EN", out);
            }
            return Ok(Ok(()));
        }
        (None, Some(ttl)) => {
            let meta = Meta {
                expiry: cache.expiry(ttl),
                claimed: true,
                cas: call.unique.unwrap_or(0),
                ..Meta::default()
            };
            match cache.put(&call.key, meta, &[])? {
                (Stored::Stored, cas) => (Meta { cas, ..meta }, 0, true),
                (other, _) => return Ok(Err(text(other))),
            }
        }
    };
    cache.counters.asked(call.ttl.is_some(), true);
    let seen = cache.seen(&call.key);
    if !call.flags.has(b'u') {
        cache.fetched(&call.key);
    }
    let (before, was_claimed) = (meta, meta.claimed && !won);
    let renewed = call.ttl.map(|ttl| cache.expiry(ttl));
    // Flags mean something in their order, as memcached has it.
    let end = match renewed {
        Some(expiry) if call.flags.is_before(b'T', b'R') => expiry,
        _ => meta.expiry,
    };
    let soon = call
        .recache
        .is_some_and(|within| end != 0 && end - cache.now() < within);
    won |= (soon || meta.stale) && !meta.claimed;
    meta.claimed |= won;
    if let Some(expiry) = renewed {
        meta.expiry = expiry;
    }
    if meta != before {
        cache.mark(&call.key, meta)?;
    }
    // A client that has this version already gets an answer without the value.
    wants_value &= call.cas != Some(meta.cas);
    if wants_value {
        out.extend_from_slice(b"VA ");
        put_number(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut expiry = before.expiry;
    for &(letter, token) in &call.flags.all {
        match letter {
            b'c' => put_field(out, b'c', meta.cas),
            b'f' => put_field(out, b'f', u64::from(meta.flags)),
            b'h' => put_field(out, b'h', u64::from(seen.fetched)),
            b'l' => put_field(out, b'l', (cache.now() - seen.last).max(0) as u64),
            b's' => put_field(out, b's', length as u64),
            b'T' => expiry = meta.expiry,
            b't' => put_ttl(out, expiry, cache.now()),
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
    let mode = match call.flags.mode() {
        None | Some(b'S') => Mode::Set,
        Some(b'E') => Mode::Add,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        Some(b'R') => Mode::Replace,
        Some(_) => return Ok(Err("CLIENT_ERROR invalid mode for ms M token")),
    };
    let meta = Meta {
        // Numbers that do not fit were refused.
        flags: call.flags.unsigned(b'F').unwrap_or(0) as u32,
        expiry: cache.expiry(call.ttl.unwrap_or(0)),
        cas: call.unique.unwrap_or(0),
        ..Meta::default()
    };
    let how = Put {
        mode,
        cas: call.cas,
        stale: call.flags.has(b'I'),
        vivify: call.vivify.map(|ttl| cache.expiry(ttl)),
    };
    let (stored, unique, length) = store(cache, &call.key, meta, value, how)?;
    let code = match stored {
        Stored::Stored if call.quiet() => return Ok(Ok(())),
        Stored::Stored => "HD",
        Stored::NotStored => "NS",
        Stored::Exists => "EX",
        Stored::NotFound => "NF",
        other => {
            // An old value in place of a new one would be taken for it.
            cache.remove(&call.key)?;
            return Ok(Err(text(other)));
        }
    };
    out.extend_from_slice(code.as_bytes());
    for &(letter, token) in &call.flags.all {
        match letter {
            b'c' => put_field(out, b'c', unique),
            b's' => put_field(out, b's', length as u64),
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
        Some((there, _)) => match invalidate(cache, call, there)? {
            Stored::Stored => "HD",
            other => return Ok(Err(text(other))),
        },
    };
    cache.counters.delete_hits += u64::from(code == "HD");
    cache.counters.delete_misses += u64::from(code == "NF");
    if !call.quiet() || code != "HD" {
        call.code(code, out);
    }
    Ok(Ok(()))
}

/// Forgets a value, or its bytes alone (`x`), or says that it is out of date (`I`).
fn invalidate<S: Store>(cache: &mut Cache<S>, call: &Call<'_>, there: Meta) -> Result<Stored> {
    let (empties, stales) = (call.flags.has(b'x'), call.flags.has(b'I'));
    let mut meta = there;
    if empties {
        let ttl = call.ttl.unwrap_or(0);
        meta = Meta {
            expiry: cache.expiry(ttl),
            cas: call.unique.unwrap_or(there.cas),
            ..Meta::default()
        };
        let (stored, cas) = cache.put(&call.key, meta, &[])?;
        if stored != Stored::Stored {
            return Ok(stored);
        }
        meta.cas = cas;
    }
    match stales {
        true => {
            if let Some(ttl) = call.ttl {
                meta.expiry = cache.expiry(ttl);
            }
            (meta.stale, meta.claimed) = (true, false);
            meta.cas = match call.unique {
                Some(unique) => unique,
                None => cache.next_unique(),
            };
            cache.mark(&call.key, meta)?;
        }
        false if !empties => {
            cache.remove(&call.key)?;
        }
        false => {}
    }
    Ok(Stored::Stored)
}

fn arithmetic<S: Store>(
    cache: &mut Cache<S>,
    call: &Call<'_>,
    out: &mut Vec<u8>,
) -> Result<Answer> {
    let delta = call.flags.unsigned(b'D').unwrap_or(1);
    let first = call.flags.unsigned(b'J').unwrap_or(0);
    let up = match call.flags.mode() {
        None | Some(b'I' | b'+') => true,
        Some(b'D' | b'-') => false,
        Some(_) => return Ok(Err("CLIENT_ERROR invalid mode for ma M token")),
    };
    let found = cache.find(&call.key)?;
    if let (Some(cas), Some((there, _))) = (call.cas, found)
        && cas != 0
        && there.cas != cas
    {
        call.code("EX", out);
        return Ok(Ok(()));
    }
    let ttl = call.ttl.map(|ttl| cache.expiry(ttl));
    let change = |meta: &mut Meta| {
        meta.expiry = ttl.unwrap_or(meta.expiry);
        meta.cas = call.unique.unwrap_or(0);
    };
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
                cas: call.unique.unwrap_or(0),
                ..Meta::default()
            };
            match cache.put(&call.key, meta, &digits)? {
                (Stored::Stored, cas) => (first, cas),
                (other, _) => return Ok(Err(text(other))),
            }
        }
    };
    // A missing number is reported, as in memcached.
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
            b't' => put_ttl(out, expiry, cache.now()),
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

fn debug<S: Store>(
    cache: &mut Cache<S>,
    written: &[u8],
    flags: &[u8],
    out: &mut Vec<u8>,
) -> Result<Answer> {
    let Ok(key) = stored_key(written, flags) else {
        return Ok(Err(FORMAT));
    };
    let Some((meta, length)) = cache.find(&key)? else {
        out.extend_from_slice(b"EN\r\n");
        return Ok(Ok(()));
    };
    let left = match meta.expiry {
        0 => -1,
        at => at - cache.now(),
    };
    let seen = cache.seen(&key);
    let (last, fetched) = (
        (cache.now() - seen.last).max(0),
        if seen.fetched { "yes" } else { "no" },
    );
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(written);
    out.extend_from_slice(
        format!(
            " exp={left} la={last} cas={} fetch={fetched} cls=1 size={length}\r\n",
            meta.cas
        )
        .as_bytes(),
    );
    Ok(Ok(()))
}
