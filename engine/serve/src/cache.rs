//! The semantics of the commands: values that expire, are compared, counted and limited, above a store that knows nothing of it.

use crate::access::{Access, Seen};
use crate::counters::Counters;
use crate::store::{Cursor, Meta, Result, Store, StoreError};
use crate::words::{put_number, unsigned};

/// Longest time, in seconds, that is counted from now; a greater number is a date.
const RELATIVE: i64 = 60 * 60 * 24 * 30;
/// Bytes that a value takes besides its own and those of its key: objects, references, and its part of the nodes above it.
pub const OVERHEAD: u64 = 160;
/// A time that is over, for values that are gone as they come.
const GONE: i64 = 1;
/// Values that are scanned for expired ones, when there is no room.
const SWEEP_FOR_ROOM: usize = 4096;
/// Most values that are scanned for one that is to be evicted.
const LOOK: usize = 64;
/// Room in the store's own memory that is made when it has none left, besides that for a value, and how often at most.
const STORE_ROOM: (u64, u32) = (4 << 20, 4);
/// A time so far ahead that it never comes.
const NEVER: i64 = 1 << 48;

/// Limits of keys, values and memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of a value.
    pub value: usize,
    /// Most bytes of all values with their keys and overhead.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            value: 1 << 20,
            memory: 1 << 30,
        }
    }
}

/// How storing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// It is kept.
    Stored,
    /// A condition did not hold.
    NotStored,
    /// The value that is there has another unique number.
    Exists,
    /// There is no value whose unique number could be compared.
    NotFound,
    /// No room.
    NoMemory,
    /// It would be larger than values may be.
    TooLarge,
}

/// How counting ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// The new number.
    Now(u64),
    /// There is no value.
    NotFound,
    /// The value is no number.
    NotNumber,
    /// No room.
    NoMemory,
}

/// The values of a server, and the time.
pub struct Cache<S> {
    pub(crate) store: S,
    limits: Limits,
    /// Seconds since 1970.
    now: i64,
    /// The last unique number that was given to a value.
    last_unique: u64,
    /// Bytes of all values, by [`OVERHEAD`]'s count.
    bytes: u64,
    /// When everything is to be forgotten.
    flush_at: Option<i64>,
    /// Some value expires.
    expiring: bool,
    /// A scan for expired values is under way.
    sweeping: bool,
    /// A value in the making.
    scratch: Vec<u8>,
    access: Access,
    /// Values that were not requested are evicted for new ones.
    evicts: bool,
    /// Most that the memory limit may become.
    ceiling: u64,
    /// The number of the list that is under way, or of the last one.
    pub(crate) list: u64,
    /// The number of caches that share the limit of `cache_memlimit`.
    shards: u64,
    /// Counters so far.
    pub counters: Counters,
}

impl<S: Store> Cache<S> {
    /// A cache above a store, which may have values already: they are measured.
    ///
    /// # Errors
    /// The store's error.
    pub fn new(mut store: S, limits: Limits, now: i64) -> Result<Cache<S>> {
        let there = store.measure()?;
        let flush_at = store.flush_at()?;
        let last_unique = match there.count {
            0 => 0,
            // Clients may know greater numbers, of values that were there and are not any more. One that a client gave may be as great as it likes.
            _ => (there.last_unique.min(u64::MAX / 2)).max(now as u64 * 1_000_000),
        };
        let mut cache = Cache {
            store,
            limits,
            now,
            last_unique,
            bytes: there.bytes + OVERHEAD * there.count,
            flush_at: (flush_at != 0).then_some(flush_at),
            expiring: there.expiring,
            sweeping: false,
            scratch: Vec::new(),
            access: Access::new(now),
            evicts: false,
            ceiling: u64::MAX,
            list: 0,
            shards: 1,
            counters: Counters::default(),
        };
        // Values that expired while the server was not running.
        cache.set_now(now)?;
        Ok(cache)
    }

    /// Has values that were not asked for lately make room when there is none: otherwise new ones are refused.
    pub fn evict(mut self) -> Cache<S> {
        self.evicts = true;
        self
    }

    /// The memory limit may be raised to `ceiling` bytes later, and no further.
    pub fn up_to(mut self, ceiling: u64) -> Cache<S> {
        self.ceiling = ceiling;
        self
    }

    /// Whether values make room for new ones.
    pub fn evicts(&self) -> bool {
        self.evicts
    }

    /// The same as one of `shards` caches that share the limit of `cache_memlimit`.
    pub fn one_of(mut self, shards: usize) -> Cache<S> {
        self.shards = shards as u64;
        self
    }

    /// Sets the memory limit of this cache and those that share it; whether that is possible. Values beyond the new limit are evicted when a value is
    /// stored, if eviction is enabled.
    pub fn set_memory(&mut self, bytes: u64) -> bool {
        let bytes = bytes / self.shards;
        let possible = bytes <= self.ceiling;
        if possible {
            self.limits.memory = bytes;
        }
        possible
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// All that was done so far is in the store's medium when this returns.
    ///
    /// # Errors
    /// The store's error.
    pub fn commit(&mut self) -> Result<()> {
        self.store.commit()
    }

    /// The store, without the cache.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of values, including expired ones that were not found yet.
    ///
    /// # Errors
    /// The store's error.
    pub fn count(&mut self) -> Result<usize> {
        self.store.count()
    }

    /// Seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Sets the time. It does not go back.
    ///
    /// # Errors
    /// The store's error.
    pub fn set_now(&mut self, now: i64) -> Result<()> {
        self.now = self.now.max(now);
        if self.flush_at.is_some_and(|at| at <= self.now) {
            self.clear()?;
            self.promise_flush(0)?;
        }
        Ok(())
    }

    /// The expiry of a value, from the client's number.
    pub fn expiry(&mut self, said: i64) -> i64 {
        let at = match said {
            0 => return 0,
            ..0 => GONE,
            1..=RELATIVE => self.now + said,
            _ => said.min(NEVER),
        };
        self.expiring = true;
        at
    }

    /// Calls `with` with the value of a key, if there is one.
    ///
    /// # Errors
    /// The store's error.
    pub fn get<T>(&mut self, key: &[u8], with: impl FnOnce(Meta, &[u8]) -> T) -> Result<Option<T>> {
        match self.store.get(key)? {
            None => return Ok(None),
            Some((meta, value)) if !meta.expired(self.now) => return Ok(Some(with(meta, value))),
            Some(_) => {}
        }
        self.counters.get_expired += 1;
        self.drop_value(key)?;
        Ok(None)
    }

    /// The metadata of a value that is there, and its size in bytes.
    ///
    /// # Errors
    /// The store's error.
    pub fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        let found = self.store.find(key)?;
        if found.is_some_and(|(meta, _)| meta.expired(self.now)) {
            self.drop_value(key)?;
            return Ok(None);
        }
        Ok(found)
    }

    /// Replaces the metadata of a value that is there.
    ///
    /// # Errors
    /// The store's error.
    pub fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        match self.store.mark(key, meta) {
            // A new expiry is not worth an error: the value stays as it is.
            Err(StoreError::Full) => Ok(()),
            other => other,
        }
    }

    /// Forgets a value; whether it was there.
    ///
    /// # Errors
    /// The store's error.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.find(key)?.is_some();
        if there {
            self.drop_value(key)?;
        }
        Ok(there)
    }

    fn drop_value(&mut self, key: &[u8]) -> Result<()> {
        if let Some(value) = self.store.remove(key)? {
            self.bytes -= size(key, value);
        }
        self.access.forget(key);
        Ok(())
    }

    /// Takes note that a value was asked for.
    pub fn fetched(&mut self, key: &[u8]) {
        self.access.fetched(key, self.now);
    }

    /// When a value that is there was last asked for.
    pub fn seen(&self, key: &[u8]) -> Seen {
        self.access.seen(key)
    }

    /// Keeps a value in any case. Its unique number is given to it here if it is 0, and comes back.
    ///
    /// # Errors
    /// The store's error.
    pub fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<(Stored, u64)> {
        let outcome = self.place(key, meta, value)?;
        match outcome.0 {
            Stored::TooLarge => self.counters.too_large += 1,
            Stored::NoMemory => self.counters.no_memory += 1,
            _ => self.access.stored(key, self.now),
        }
        Ok(outcome)
    }

    fn place(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<(Stored, u64)> {
        if value.len() > self.limits.value {
            return Ok((Stored::TooLarge, 0));
        }
        let more = size(key, value.len());
        if self.bytes + more > self.limits.memory && !self.make_room(key, more)? {
            return Ok((Stored::NoMemory, 0));
        }
        let cas = match meta.cas {
            0 => self.next_unique(),
            given => given,
        };
        for attempt in 0.. {
            match self.store.put(key, Meta { cas, ..meta }, value) {
                Ok(before) => {
                    self.bytes += more;
                    self.bytes -= before.map_or(0, |before| size(key, before));
                    self.counters.total_items += 1;
                    break;
                }
                Err(StoreError::Full) if self.evicts && attempt < STORE_ROOM.1 => {
                    // A cursor may hold values that are gone: it begins anew.
                    self.store.scan(Cursor::Sweep)?;
                    self.sweeping = true;
                    let room = (STORE_ROOM.0 + 2 * more) << attempt;
                    let target = self.bytes.saturating_sub(room);
                    while self.bytes > target && self.evict_one(key)? {}
                }
                Err(StoreError::Full) => return Ok((Stored::NoMemory, 0)),
                Err(e) => return Err(e),
            }
        }
        Ok((Stored::Stored, cas))
    }

    /// A number that no value has yet.
    pub fn next_unique(&mut self) -> u64 {
        self.last_unique += 1;
        self.last_unique
    }

    /// Makes room for `more` bytes beyond the key's old value: removes expired values, and evicts others if allowed. Returns whether there is room.
    fn make_room(&mut self, key: &[u8], more: u64) -> Result<bool> {
        if self.has_room(key, more)? {
            return Ok(true);
        }
        if !self.evicts {
            self.sweep(SWEEP_FOR_ROOM)?;
            return self.has_room(key, more);
        }
        while self.evict_one(key)? {
            if self.has_room(key, more)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_room(&mut self, key: &[u8], more: u64) -> Result<bool> {
        let there = self.store.find(key)?;
        let before = there.map_or(0, |(_, value)| size(key, value));
        Ok(self.bytes - before + more <= self.limits.memory)
    }

    /// Forgets one value that was not asked for lately, but not that of this key; whether there was any.
    ///
    /// A hand goes over all values, round and round. One that was not asked for since the hand came by last goes. Of a few that all were, the one
    /// goes that was not for the longest time: so a store of a value never takes long.
    fn evict_one(&mut self, but: &[u8]) -> Result<bool> {
        let (mut key, mut oldest) = (Vec::new(), None::<(i64, Vec<u8>)>);
        let (mut ends, mut looked) = (0, 0);
        while looked < LOOK {
            if !self.sweeping {
                self.store.scan(Cursor::Sweep)?;
                self.sweeping = true;
            }
            if self.store.next(Cursor::Sweep, &mut key)?.is_none() {
                self.sweeping = false;
                ends += 1;
                if ends == 2 {
                    break;
                }
                continue;
            }
            // The value under the clock hand may be gone.
            let Some((meta, _)) = self.store.find(&key)?.filter(|_| key != but) else {
                continue;
            };
            looked += 1;
            if meta.expired(self.now) {
                self.drop_value(&key)?;
                self.counters.reclaimed += 1;
                return Ok(true);
            }
            match self.access.pass(&key) {
                None => {
                    oldest = Some((0, key));
                    break;
                }
                Some(last) if oldest.as_ref().is_none_or(|(first, _)| last < *first) => {
                    oldest = Some((last, key.clone()));
                }
                Some(_) => {}
            }
        }
        let Some((_, key)) = oldest else {
            return Ok(false);
        };
        self.drop_value(&key)?;
        self.counters.evictions += 1;
        Ok(true)
    }

    /// Keeps a value before or after the bytes of the one that is there, with a unique number or one that is given here; that, and the bytes of both.
    ///
    /// # Errors
    /// The store's error.
    pub fn join(
        &mut self,
        key: &[u8],
        after: bool,
        more: &[u8],
        unique: u64,
    ) -> Result<(Stored, u64, usize)> {
        let mut joined = std::mem::take(&mut self.scratch);
        joined.clear();
        let meta = self.get(key, |meta, value| {
            let (first, second) = if after { (value, more) } else { (more, value) };
            joined.extend_from_slice(first);
            joined.extend_from_slice(second);
            meta
        })?;
        let outcome = match meta {
            // Marks that clients got for the old value do not hold for this one.
            Some(meta) => {
                let fresh = Meta {
                    cas: unique,
                    stale: false,
                    claimed: false,
                    ..meta
                };
                self.put(key, fresh, &joined)
            }
            None => Ok((Stored::NotStored, 0)),
        };
        let length = joined.len();
        self.keep_scratch(joined);
        outcome.map(|(stored, cas)| (stored, cas, length))
    }

    fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(64 << 10);
        self.scratch = scratch;
    }

    /// Adds to a value that is a number, or takes from it: beyond the greatest number it begins again at 0, and below 0 it stays there. A number
    /// with fewer digits than before has blanks after it, as memcached has it. `change` may change the value's metadata.
    ///
    /// # Errors
    /// The store's error.
    pub fn count_by(
        &mut self,
        key: &[u8],
        up: bool,
        delta: u64,
        change: impl FnOnce(&mut Meta),
    ) -> Result<(Counted, u64)> {
        let mut digits = Vec::with_capacity(24);
        let found = self.get(key, |meta, value| {
            let number = decimal(value)?;
            Some((meta, number, value.len()))
        })?;
        let (mut meta, number, length) = match found {
            None => return Ok((Counted::NotFound, 0)),
            Some(None) => return Ok((Counted::NotNumber, 0)),
            Some(Some(found)) => found,
        };
        let number = match up {
            true => number.wrapping_add(delta),
            false => number.saturating_sub(delta),
        };
        put_number(&mut digits, number);
        digits.resize(digits.len().max(length), b' ');
        meta.cas = 0;
        // The same value, as memcached has it, if it has as many bytes.
        let same = digits.len() == length;
        meta.stale &= same;
        meta.claimed &= same;
        change(&mut meta);
        let seen = self.seen(key);
        let outcome = self.put(key, meta, &digits)?;
        if seen.fetched && same {
            self.access.fetched(key, self.now);
        }
        Ok(match outcome {
            (Stored::Stored, cas) => (Counted::Now(number), cas),
            _ => (Counted::NoMemory, 0),
        })
    }

    /// Removes all values, at once or in `delay` seconds. An earlier delayed flush is cancelled.
    ///
    /// # Errors
    /// The store's error.
    pub fn flush(&mut self, delay: i64) -> Result<()> {
        let at = match delay {
            ..=0 => {
                self.clear()?;
                0
            }
            1..=RELATIVE => self.now + delay,
            date => date,
        };
        self.promise_flush(at)?;
        // It may be a date that is over.
        self.set_now(self.now)
    }

    /// Keeps when all values are to be forgotten, so that a crash does not forget it; 0 for never.
    fn promise_flush(&mut self, at: i64) -> Result<()> {
        let before = self.flush_at.unwrap_or(0);
        self.flush_at = (at != 0).then_some(at);
        match at == before {
            true => Ok(()),
            false => self.store.set_flush_at(at),
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.store.clear()?;
        self.bytes = 0;
        self.sweeping = false;
        self.access.clear();
        Ok(())
    }

    /// Scans at most `most` values and removes those that have expired.
    ///
    /// # Errors
    /// The store's error.
    pub fn sweep(&mut self, most: usize) -> Result<()> {
        if !self.expiring {
            return Ok(());
        }
        if !self.sweeping {
            self.store.scan(Cursor::Sweep)?;
            self.sweeping = true;
        }
        let mut key = Vec::new();
        for _ in 0..most {
            let Some((meta, _)) = self.store.next(Cursor::Sweep, &mut key)? else {
                self.sweeping = false;
                break;
            };
            // The scan's result may be out of date.
            if meta.expired(self.now)
                && self
                    .store
                    .find(&key)?
                    .is_some_and(|(meta, _)| meta.expired(self.now))
            {
                self.drop_value(&key)?;
                self.counters.reclaimed += 1;
            }
        }
        Ok(())
    }
}

/// The number that a value begins with, up to a blank or a zero byte: as memcached has it, where blanks are those of C.
fn decimal(value: &[u8]) -> Option<u64> {
    let is_blank = |b: &u8| b.is_ascii_whitespace() || *b == 0x0b;
    let start = value.iter().position(|b| !is_blank(b))?;
    unsigned(value[start..].split(|b| is_blank(b) || *b == 0).next()?)
}

fn size(key: &[u8], value: usize) -> u64 {
    key.len() as u64 + value as u64 + OVERHEAD
}
