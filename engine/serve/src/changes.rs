//! Changes of values, which classic and meta commands have in common.

use crate::cache::{Cache, Counted, Stored};
use crate::request::Mode;
use crate::store::{Meta, Result, Store};

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

/// How a command stores.
pub(crate) struct Put {
    pub mode: Mode,
    /// To be compared with; no value has 0.
    pub cas: Option<u64>,
    /// A value with an older number than the one that is there takes its place, and is out of date as that is.
    pub stale: bool,
    /// When a value expires that is put where there was none to append to.
    pub vivify: Option<i64>,
}

impl Default for Put {
    fn default() -> Put {
        Put {
            mode: Mode::Set,
            cas: None,
            stale: false,
            vivify: None,
        }
    }
}

/// Stores as a command says. Returns the unique number of the stored value, and its bytes.
pub(crate) fn store<S: Store>(
    cache: &mut Cache<S>,
    key: &[u8],
    meta: Meta,
    value: &[u8],
    how: Put,
) -> Result<(Stored, u64, usize)> {
    cache.counters.cmd_set += 1;
    let there = cache.find(key)?.map(|(meta, _)| meta);
    let replaces = matches!(how.mode, Mode::Set | Mode::Replace);
    let mut meta = meta;
    let stored = match (how.mode, there, how.cas) {
        (_, Some(there), Some(cas)) if replaces => {
            let older = how.stale && cas != 0 && cas < there.cas;
            if older {
                meta.expiry = there.expiry;
                (meta.stale, meta.claimed) = (true, there.claimed);
            }
            match cas != 0 && cas == there.cas || older {
                true => {
                    cache.counters.cas_hits += 1;
                    None
                }
                false => {
                    cache.counters.cas_badval += 1;
                    Some(Stored::Exists)
                }
            }
        }
        (_, None, Some(_)) if replaces => {
            cache.counters.cas_misses += 1;
            Some(Stored::NotFound)
        }
        (Mode::Set, _, _) | (Mode::Add, None, _) | (Mode::Replace, Some(_), _) => None,
        (Mode::Add, Some(_), _) | (Mode::Replace, None, _) => Some(Stored::NotStored),
        (Mode::Append | Mode::Prepend, Some(there), cas) => match cas {
            Some(cas) if cas != 0 && cas != there.cas => Some(Stored::Exists),
            _ => return cache.join(key, how.mode == Mode::Append, value, meta.cas),
        },
        (Mode::Append | Mode::Prepend, None, _) => match how.vivify {
            Some(expiry) => {
                meta.expiry = expiry;
                None
            }
            None => Some(Stored::NotStored),
        },
    };
    if let Some(refused) = stored {
        return Ok((refused, 0, value.len()));
    }
    let (stored, unique) = cache.put(key, meta, value)?;
    Ok((stored, unique, value.len()))
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
