//! Answers wait for commits: no client gets an answer about a change that a loss of power could roll back.

mod common;

use common::running::{Client, start_with};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use varve_runtime::Error as EngineError;
use varve_serve::{Cache, Cursor, Host, Limits, Meta, Reference, Settings, Store, StoreError};

type Values = BTreeMap<Vec<u8>, (Meta, Vec<u8>)>;
type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The contents of each shard's medium, and the time of the power failure.
#[derive(Default)]
struct Media {
    committed: Vec<Mutex<Values>>,
    /// Steps of all stores until the power fails; each failure takes all that is not committed.
    left: AtomicU64,
    failures: AtomicU64,
    writes: AtomicU64,
    commits: AtomicU64,
}

impl Media {
    fn new(shards: usize, steps: u64) -> Arc<Media> {
        Arc::new(Media {
            committed: (0..shards).map(|_| Mutex::default()).collect(),
            left: AtomicU64::new(steps),
            ..Media::default()
        })
    }

    /// One step less is left; the error if it was the last one.
    fn step(&self) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let failure = EngineError::Host("the power failed".into());
            return Err(StoreError::Failed(failure));
        }
        Ok(())
    }
}

/// A map whose changes are in the medium when they are committed.
struct Volatile {
    media: Arc<Media>,
    shard: usize,
    now: Reference,
    changed: bool,
    /// Changes since the last commit; none for a value that is gone.
    changes: BTreeMap<Vec<u8>, Option<(Meta, Vec<u8>)>>,
}

impl Store for Volatile {
    fn get(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>> {
        self.media.step()?;
        self.now.get(key)
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        self.media.step()?;
        self.now.find(key)
    }

    fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<Option<usize>> {
        self.media.step()?;
        self.media.writes.fetch_add(1, Ordering::Relaxed);
        self.changed = true;
        let change = Some((meta, value.to_vec()));
        self.changes.insert(key.to_vec(), change);
        self.now.put(key, meta, value)
    }

    fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        self.now.mark(key, meta)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<usize>> {
        self.media.step()?;
        self.changed = true;
        self.changes.insert(key.to_vec(), None);
        self.now.remove(key)
    }

    fn clear(&mut self) -> Result<()> {
        unreachable!("no test flushes here")
    }

    fn count(&mut self) -> Result<usize> {
        self.now.count()
    }

    fn scan(&mut self, cursor: Cursor) -> Result<()> {
        self.now.scan(cursor)
    }

    fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Result<Option<(Meta, usize)>> {
        self.now.next(cursor, key)
    }

    fn flush_at(&mut self) -> Result<i64> {
        self.now.flush_at()
    }

    fn set_flush_at(&mut self, at: i64) -> Result<()> {
        self.now.set_flush_at(at)
    }

    fn uncommitted(&self) -> bool {
        self.changed
    }

    fn commit(&mut self) -> Result<()> {
        // The power may fail before a commit, or when a part of it is in the medium.
        self.media.step()?;
        for (key, change) in std::mem::take(&mut self.changes) {
            let mut committed = self.media.committed[self.shard].lock().unwrap();
            match change {
                Some(value) => committed.insert(key, value),
                None => committed.remove(&key),
            };
            drop(committed);
            self.media.step()?;
        }
        self.changed = false;
        self.media.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

struct Machine(Arc<Media>);

impl Host for Machine {
    type Store = Volatile;

    fn open(&self, shard: usize) -> Result<Cache<Volatile>> {
        let mut now = Reference::default();
        for (key, (meta, value)) in &*self.0.committed[shard].lock().unwrap() {
            now.put(key, *meta, value)?;
        }
        let store = Volatile {
            media: Arc::clone(&self.0),
            shard,
            now,
            changed: false,
            changes: BTreeMap::new(),
        };
        Cache::new(store, Limits::default(), varve_serve::seconds())
    }
}

/// Writes rising numbers of keys of its own, some at a time, and reads those of the next writer; returns the numbers that must be kept at least.
fn client(mut client: Client, number: usize, clients: usize, rounds: u64) -> BTreeMap<String, u64> {
    let mut known = BTreeMap::new();
    for round in 1..=rounds {
        let (mut requests, mut asked) = (String::new(), Vec::new());
        for key in 0..3 {
            let mine = format!("c{number}-{key}");
            requests += &format!("set {mine} 0 0 6\r\n{round:06}\r\n");
            asked.push((mine, true));
            let other = format!("c{}-{key}", (number + 1) % clients);
            requests += &format!("get {other}\r\n");
            asked.push((other, false));
        }
        client.send(&requests);
        for (key, written) in asked {
            let line = client.line();
            if line.is_empty() {
                // Answers of several shards of which one failed: the connection ends.
                return known;
            }
            let number = match (written, line.as_str()) {
                (true, "STORED") => round,
                (false, line) if line.starts_with("VALUE ") => {
                    let number = client.line().parse().unwrap();
                    // An error in the place of the end says that the value must not be believed.
                    match client.line().as_str() {
                        "END" => number,
                        error if error.starts_with("SERVER_ERROR") => continue,
                        other => panic!("{other}"),
                    }
                }
                (false, "END") => {
                    assert_eq!(known.get(&key), None, "{key} was there before");
                    continue;
                }
                (_, error) if error.starts_with("SERVER_ERROR") => continue,
                (_, other) => panic!("{other}"),
            };
            let kept = known.entry(key).or_insert(0);
            assert!(*kept <= number, "{kept} was there before {number}");
            *kept = number;
        }
    }
    known
}

#[test]
fn whatever_a_client_was_told_is_there_after_a_loss_of_power_at_any_point() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 30,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let failures = AtomicU64::new(0);
    let cases = (1usize..4, 1usize..6, 1u64..400);
    runner
        .run(&cases, |(shards, clients, steps)| {
            let media = Media::new(shards, steps);
            let settings = Settings {
                shards,
                ..Settings::default()
            };
            let server = start_with(settings, Machine(Arc::clone(&media)));
            let running: Vec<_> = (0..clients)
                .map(|number| {
                    let connection = server.connect();
                    std::thread::spawn(move || client(connection, number, clients, 12))
                })
                .collect();
            let known: Vec<_> = running.into_iter().map(|c| c.join().unwrap()).collect();
            server.end();
            failures.fetch_add(media.failures.load(Ordering::Relaxed), Ordering::Relaxed);
            for (key, number) in known.into_iter().flatten() {
                let shard = match shards {
                    1 => 0,
                    n => varve_serve::shard_of(key.as_bytes(), n),
                };
                let committed = media.committed[shard].lock().unwrap();
                let found = committed.get(key.as_bytes());
                let found: u64 = found.map_or(0, |(_, value)| {
                    std::str::from_utf8(value).unwrap().parse().unwrap()
                });
                prop_assert!(
                    found >= number,
                    "{} is {}, {} was acknowledged",
                    key,
                    found,
                    number
                );
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    let failures = failures.into_inner();
    assert!(failures > 10, "the power failed {failures} times only");
}

/// Requests of many clients share a commit. How many do depends on how they meet, so this has them wait for each other.
#[test]
fn of_128_requests_under_way_many_share_a_commit() {
    let media = Media::new(1, u64::MAX);
    let server = start_with(Settings::default(), Machine(Arc::clone(&media)));
    let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for round in 0..20 {
        for client in &mut clients {
            let requests: String = (0..16)
                .map(|i| format!("set k{i} 0 0 6\r\n{round:06}\r\n"))
                .collect();
            client.send(&requests);
        }
        for client in &mut clients {
            for _ in 0..16 {
                assert_eq!(client.line(), "STORED");
            }
        }
    }
    let traffic = server.end();
    let writes = media.writes.load(Ordering::Relaxed);
    let commits = media.commits.load(Ordering::Relaxed);
    assert_eq!(writes, 20 * 128);
    assert_eq!(traffic.commits, commits);
    // A client's 16 requests come in one piece, or nearly so.
    assert!(
        commits <= writes / 8,
        "{commits} commits of {writes} writes"
    );
}

#[test]
fn a_reader_alone_waits_for_no_commit() {
    let media = Media::new(2, u64::MAX);
    let settings = Settings {
        shards: 2,
        ..Settings::default()
    };
    let server = start_with(settings, Machine(Arc::clone(&media)));
    let mut client = server.connect();
    client.ask(
        "set a 0 0 1\r\nA\r\nset b 0 0 1\r\nB\r\n",
        "STORED\r\nSTORED\r\n",
    );
    let commits = media.commits.load(Ordering::Relaxed);
    for _ in 0..50 {
        client.ask(
            "get b a\r\n",
            "VALUE b 0 1\r\nB\r\nVALUE a 0 1\r\nA\r\nEND\r\n",
        );
    }
    assert_eq!(media.commits.load(Ordering::Relaxed), commits);
    server.end();
}

/// Answers that wait count as buffers: when they have become many, a commit comes before the end of the turn, and no client is closed for it.
#[test]
fn answers_that_wait_for_a_commit_are_bounded() {
    let media = Media::new(1, u64::MAX);
    let settings = Settings {
        buffers: 1 << 20,
        ..Settings::default()
    };
    let server = start_with(settings, Machine(Arc::clone(&media)));
    let value = "v".repeat(200_000);
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    clients[0].send(&format!("set big 0 0 200000\r\n{value}\r\n"));
    assert_eq!(clients[0].line(), "STORED");
    for client in &mut clients {
        client.send("set small 0 0 1\r\ns\r\nget big\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.line(), "STORED");
        assert_eq!(client.line(), "VALUE big 0 200000");
        assert_eq!(client.line(), value);
        assert_eq!(client.line(), "END");
    }
    assert_eq!(server.end().overrun, 0);
}
