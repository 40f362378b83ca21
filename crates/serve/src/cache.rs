//! What the commands mean: values that expire, are compared, counted and limited, above a store that knows nothing of it.

use crate::counters::Counters;
use crate::store::{Meta, Result, Store, StoreError};
use crate::words::{put_number, unsigned};

/// Longest time, in seconds, that is counted from now; a greater number is a date.
const RELATIVE: i64 = 60 * 60 * 24 * 30;
/// Bytes that a value takes besides its own and those of its key: objects, references, and its part of the nodes above it.
pub const OVERHEAD: u64 = 160;
/// A time that is over, for values that are gone as they come.
const GONE: i64 = 1;
/// Values looked at for room, when there is none.
const SWEEP_FOR_ROOM: usize = 4096;

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of a value.
    pub value: usize,
    /// Most bytes of all values with their keys and what they take besides.
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
    store: S,
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
    /// What was done so far.
    pub counters: Counters,
}

impl<S: Store> Cache<S> {
    /// A cache above a store, which may have values already: they are measured.
    ///
    /// # Errors
    /// What the store says.
    pub fn new(mut store: S, limits: Limits, now: i64) -> Result<Cache<S>> {
        let there = store.measure()?;
        let last_unique = match there.count {
            0 => 0,
            // Clients may know greater numbers, of values that were there and are not any more.
            _ => there.last_unique.max(now as u64 * 1_000_000),
        };
        Ok(Cache {
            store,
            limits,
            now,
            last_unique,
            bytes: there.bytes + OVERHEAD * there.count,
            flush_at: None,
            expiring: there.expiring,
            sweeping: false,
            scratch: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// All that was done so far is in the store's medium when this returns.
    ///
    /// # Errors
    /// What the store says.
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

    /// The number of values, expired ones that nobody met yet among them.
    ///
    /// # Errors
    /// What the store says.
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
    /// What the store says.
    pub fn set_now(&mut self, now: i64) -> Result<()> {
        self.now = self.now.max(now);
        if self.flush_at.is_some_and(|at| at <= self.now) {
            self.flush_at = None;
            self.clear()?;
        }
        Ok(())
    }

    /// When a value is gone, by what a client says.
    pub fn expiry(&mut self, said: i64) -> i64 {
        let at = match said {
            0 => return 0,
            ..0 => GONE,
            1..=RELATIVE => self.now + said,
            _ => said,
        };
        self.expiring = true;
        at
    }

    /// Calls `with` with the value of a key, if there is one.
    ///
    /// # Errors
    /// What the store says.
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

    /// What is kept with a value that is there.
    ///
    /// # Errors
    /// What the store says.
    pub fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        let found = self.store.find(key)?;
        if found.is_some_and(|(meta, _)| meta.expired(self.now)) {
            self.drop_value(key)?;
            return Ok(None);
        }
        Ok(found)
    }

    /// Replaces what is kept with a value that is there.
    ///
    /// # Errors
    /// What the store says.
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
    /// What the store says.
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
        Ok(())
    }

    /// Keeps a value in any case; its unique number is given to it here, and comes back with it.
    ///
    /// # Errors
    /// What the store says.
    pub fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<(Stored, u64)> {
        if value.len() > self.limits.value {
            return Ok((Stored::TooLarge, 0));
        }
        let more = size(key, value.len());
        if self.bytes + more > self.limits.memory && !self.make_room(key, more)? {
            self.counters.no_memory += 1;
            return Ok((Stored::NoMemory, 0));
        }
        let cas = self.next_unique();
        match self.store.put(key, Meta { cas, ..meta }, value) {
            Ok(before) => {
                self.bytes += more;
                self.bytes -= before.map_or(0, |before| size(key, before));
                self.counters.total_items += 1;
                Ok((Stored::Stored, cas))
            }
            Err(StoreError::Full) => {
                self.counters.no_memory += 1;
                Ok((Stored::NoMemory, 0))
            }
            Err(e) => Err(e),
        }
    }

    /// A number that no value has yet.
    pub fn next_unique(&mut self) -> u64 {
        self.last_unique += 1;
        self.last_unique
    }

    /// Whether there is room for so many bytes, once the key's value and some that have expired are gone.
    fn make_room(&mut self, key: &[u8], more: u64) -> Result<bool> {
        let before = self
            .store
            .find(key)?
            .map_or(0, |(_, value)| size(key, value));
        let fits = |bytes: u64| bytes - before + more <= self.limits.memory;
        if fits(self.bytes) {
            return Ok(true);
        }
        self.sweep(SWEEP_FOR_ROOM)?;
        let before = self
            .store
            .find(key)?
            .map_or(0, |(_, value)| size(key, value));
        Ok(self.bytes - before + more <= self.limits.memory)
    }

    /// Keeps a value before or after the bytes of the one that is there.
    ///
    /// # Errors
    /// What the store says.
    pub fn join(&mut self, key: &[u8], after: bool, more: &[u8]) -> Result<(Stored, u64)> {
        let mut joined = std::mem::take(&mut self.scratch);
        joined.clear();
        let meta = self.get(key, |meta, value| {
            let (first, second) = if after { (value, more) } else { (more, value) };
            joined.extend_from_slice(first);
            joined.extend_from_slice(second);
            meta
        })?;
        let outcome = match meta {
            Some(meta) => self.put(key, meta, &joined),
            None => Ok((Stored::NotStored, 0)),
        };
        self.keep_scratch(joined);
        outcome
    }

    fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(64 << 10);
        self.scratch = scratch;
    }

    /// Adds to a value that is a number, or takes from it: beyond the greatest number it begins again at 0, and below 0 it stays there. A number
    /// with fewer digits than before has blanks behind it, as memcached has it. `change` may change what is kept with the value.
    ///
    /// # Errors
    /// What the store says.
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
        change(&mut meta);
        Ok(match self.put(key, meta, &digits)? {
            (Stored::Stored, cas) => (Counted::Now(number), cas),
            _ => (Counted::NoMemory, 0),
        })
    }

    /// Forgets everything, at once or in so many seconds.
    ///
    /// # Errors
    /// What the store says.
    pub fn flush(&mut self, delay: i64) -> Result<()> {
        match delay {
            ..=0 => self.clear(),
            delay => {
                self.flush_at = Some(if delay > RELATIVE {
                    delay
                } else {
                    self.now + delay
                });
                Ok(())
            }
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.store.clear()?;
        self.bytes = 0;
        self.sweeping = false;
        Ok(())
    }

    /// Looks at so many values and forgets those that have expired.
    ///
    /// # Errors
    /// What the store says.
    pub fn sweep(&mut self, most: usize) -> Result<()> {
        if !self.expiring {
            return Ok(());
        }
        if !self.sweeping {
            self.store.scan()?;
            self.sweeping = true;
        }
        let mut key = Vec::new();
        for _ in 0..most {
            let Some((meta, _)) = self.store.next(&mut key)? else {
                self.sweeping = false;
                break;
            };
            // What the scan has seen may be old.
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

/// The number that a value begins with, up to a blank: as memcached has it.
fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_start();
    unsigned(digits.split(u8::is_ascii_whitespace).next()?)
}

fn size(key: &[u8], value: usize) -> u64 {
    key.len() as u64 + value as u64 + OVERHEAD
}
