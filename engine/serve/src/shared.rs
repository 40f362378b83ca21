//! The state shared by all shards of a server, and their clock.

use crate::exchange::Mailbox;
use crate::list::Lists;
use crate::settings::Settings;
use crate::stats::World;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The state shared by all shards of a server.
pub(crate) struct Shared<'a> {
    pub settings: &'a Settings,
    /// By shard.
    pub mailboxes: Vec<Mailbox>,
    /// Shards whose stores are open.
    pub open: AtomicUsize,
    pub stop: &'a AtomicBool,
    /// A shard has ended, so all do.
    pub ended: AtomicBool,
    pub since: Instant,
    /// Connections now.
    pub connections: AtomicU64,
    /// Bytes of requests and answers that wait.
    pub buffered: AtomicU64,
    /// Whether the system lets connections be accepted.
    pub accepting: AtomicBool,
    pub most_value: AtomicUsize,
    pub lists: Mutex<Lists>,
    /// Where the server listens, as `stats conns` has it: in the network, in the file system.
    pub places: [Option<String>; 2],
}

impl Shared<'_> {
    /// Whether the server ends.
    pub fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }

    /// The state of lists of keys.
    pub fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all shards.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    /// Most bytes of a value.
    pub fn most_value(&self) -> usize {
        self.most_value.load(Ordering::Relaxed)
    }

    /// A number for a client of a shard that no other one has.
    pub fn client_number(&self, shard: usize, token: usize) -> usize {
        // Listeners have the first ones.
        self.places.len() + token * self.settings.shards + shard
    }

    /// Seconds from one time to another by a clock that ticks once a second, as memcached's does: so a client that waited for a second was idle for
    /// one.
    pub fn seconds_between(&self, from: Instant, to: Instant) -> u64 {
        let tick = |at: Instant| at.saturating_duration_since(self.since).as_secs();
        tick(to).saturating_sub(tick(from))
    }

    pub fn world(&self) -> World<'_> {
        World {
            settings: self.settings,
            since: self.since,
            now: seconds(),
            connections: self.connections.load(Ordering::Relaxed),
            buffered: self.buffered.load(Ordering::Relaxed),
            accepting: self.accepting.load(Ordering::Relaxed),
            most_value: self.most_value(),
            places: &self.places,
        }
    }
}

/// Seconds since 1970, as they go on since the first call: a clock that is set meanwhile lets no value expire, and none live for ever.
pub fn seconds() -> i64 {
    static BEGAN: LazyLock<(i64, Instant)> = LazyLock::new(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        (since_1970.map_or(0, |d| d.as_secs() as i64), Instant::now())
    });
    BEGAN.0 + BEGAN.1.elapsed().as_secs() as i64
}
