//! A shard's cache, which begins again when the program below it fails.

use crate::cache::Cache;
use crate::settings::{Error, Host};
use crate::store::{Result, Store, StoreError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A program that fails more often than this number of times within this time is given up.
const FAILURES: (usize, Duration) = (10, Duration::from_secs(60));

pub(crate) struct Keeper<'a, H: Host> {
    host: &'a H,
    shard: usize,
    /// There is one but while it is replaced.
    cache: Option<Cache<H::Store>>,
    /// When the last failures were.
    failures: VecDeque<Instant>,
    /// Failures so far.
    pub failed: u64,
    /// Failures with something that was not committed: it may be gone.
    pub losses: u64,
}

impl<'a, H: Host> Keeper<'a, H> {
    pub fn open(host: &'a H, shard: usize) -> Result<Self, Error> {
        let mut keeper = Keeper {
            host,
            shard,
            cache: None,
            failures: VecDeque::new(),
            failed: 0,
            losses: 0,
        };
        keeper.reopen()?;
        Ok(keeper)
    }

    fn reopen(&mut self) -> Result<(), Error> {
        // A region has one owner at a time.
        let counters = self.cache.take().map(|cache| cache.counters);
        let shard = self.shard;
        let opened = self.host.open(shard);
        let mut cache = opened.map_err(|error| Error::Open { shard, error })?;
        cache.counters = counters.unwrap_or_default();
        self.cache = Some(cache);
        Ok(())
    }

    fn cache(&mut self) -> &mut Cache<H::Store> {
        self.cache
            .as_mut()
            .expect("only `reopen` leaves none, and its error ends the server")
    }

    /// Does something with the cache; none if the program failed, and was begun again.
    ///
    /// # Errors
    /// A program that fails too often, or cannot be begun again.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Cache<H::Store>) -> Result<T>,
    ) -> Result<Option<T>, Error> {
        match work(self.cache()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                self.begin_again(error)?;
                Ok(None)
            }
        }
    }

    fn begin_again(&mut self, error: StoreError) -> Result<(), Error> {
        self.failed += 1;
        self.losses += u64::from(self.uncommitted());
        let now = Instant::now();
        self.failures.retain(|&at| now - at < FAILURES.1);
        self.failures.push_back(now);
        if self.failures.len() > FAILURES.0 {
            let shard = self.shard;
            return Err(Error::Failing { shard, error });
        }
        self.host.failed(self.shard, &error);
        self.reopen()
    }

    /// Most bytes of a value.
    pub fn most_value(&self) -> usize {
        self.cache.as_ref().map_or(0, |c| c.limits().value)
    }

    /// Whether answers have to wait for a commit.
    pub fn uncommitted(&self) -> bool {
        self.cache.as_ref().is_some_and(|c| c.store().uncommitted())
    }
}
