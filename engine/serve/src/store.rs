//! The store of values: the interface between the protocol and the managed program.

use std::fmt;
use varve_runtime::Error as EngineError;

/// Most bytes of a key, as memcached has it.
pub const MOST_KEY: usize = 250;

/// The metadata of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// The client's own.
    pub flags: u32,
    /// Seconds since 1970 from which on the value is gone; 0 for never.
    pub expiry: i64,
    /// A number that no two values share.
    pub cas: u64,
    /// A client has said that the value is out of date.
    pub stale: bool,
    /// One client has won the right to replace the value.
    pub claimed: bool,
}

impl Meta {
    /// Whether the value is gone at a time, in seconds since 1970.
    pub fn expired(&self, now: i64) -> bool {
        self.expiry != 0 && self.expiry <= now
    }

    /// Expiry and marks in one number, for stores that keep it opaque.
    pub(crate) fn packed_expiry(&self) -> i64 {
        self.expiry << 2 | i64::from(self.stale) << 1 | i64::from(self.claimed)
    }

    pub(crate) fn unpacked(flags: u32, packed: i64, cas: u64) -> Meta {
        Meta {
            flags,
            expiry: packed >> 2,
            cas,
            stale: packed & 2 != 0,
            claimed: packed & 1 != 0,
        }
    }
}

/// The reason why an operation of a store failed.
#[derive(Debug)]
pub enum StoreError {
    /// No room for a value: nothing was changed.
    Full,
    /// The program or its engine failed; the store is not to be used any more.
    Failed(EngineError),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full => f.write_str("no room for the value"),
            StoreError::Failed(e) => write!(f, "the store's program failed: {e}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// The result of a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Totals over all values of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Values.
    pub count: u64,
    /// Bytes of values and keys.
    pub bytes: u64,
    /// The greatest unique number.
    pub last_unique: u64,
    /// Whether any expires.
    pub expiring: bool,
}

/// The purpose of a scan over all values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cursor {
    /// The server, which scans for values to remove.
    Sweep,
    /// A client that lists keys.
    List,
}

/// Values by key. It knows no time: whether a value has expired is for others to say.
pub trait Store {
    /// A value with its bytes.
    ///
    /// # Errors
    /// [`StoreError::Failed`]; so for all methods.
    fn get(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>>;

    /// The metadata of a value, and its size in bytes.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>>;

    /// Keeps a value; the bytes of the one that was there.
    ///
    /// # Errors
    /// As [`Store::get`], and [`StoreError::Full`].
    fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<Option<usize>>;

    /// Replaces the metadata of a value that is there.
    ///
    /// # Errors
    /// As [`Store::put`].
    fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()>;

    /// Forgets a value; the bytes that it had.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn remove(&mut self, key: &[u8]) -> Result<Option<usize>>;

    /// Forgets all.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn clear(&mut self) -> Result<()>;

    /// The number of values.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn count(&mut self) -> Result<usize>;

    /// Has a cursor begin to go over all values anew.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn scan(&mut self, cursor: Cursor) -> Result<()>;

    /// A cursor's next key, the metadata of its value, and the bytes of the value; none after the last one. Values that are put or removed
    /// between calls may be met or not, others are met at least once.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Result<Option<(Meta, usize)>>;

    /// When all values are to be forgotten, seconds since 1970; 0 if they are not. It survives as values do.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn flush_at(&mut self) -> Result<i64>;

    /// Keeps that time.
    ///
    /// # Errors
    /// As [`Store::put`].
    fn set_flush_at(&mut self, at: i64) -> Result<()>;

    /// The totals over all values.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn measure(&mut self) -> Result<Totals> {
        measure_one_by_one(self)
    }

    /// Whether a loss of power may still roll back a change. Answers about the change, or that depend on it, wait for [`Store::commit`].
    fn uncommitted(&self) -> bool {
        false
    }

    /// All that was done so far is in the medium when this returns.
    ///
    /// # Errors
    /// [`StoreError::Failed`]: uncommitted changes may be lost.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Names and values for `stats`.
    fn describe(&self) -> Vec<(&'static str, String)>;
}

/// Measures a store by going over all of its values.
pub(crate) fn measure_one_by_one<S: Store + ?Sized>(store: &mut S) -> Result<Totals> {
    let (mut totals, mut key) = (Totals::default(), Vec::new());
    store.scan(Cursor::Sweep)?;
    while let Some((meta, value)) = store.next(Cursor::Sweep, &mut key)? {
        totals.count += 1;
        totals.bytes += (key.len() + value) as u64;
        totals.last_unique = totals.last_unique.max(meta.cas);
        totals.expiring |= meta.expiry != 0;
    }
    Ok(totals)
}
