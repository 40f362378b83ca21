//! Several shards are one server for its clients, also when one of them fails.

mod common;

use common::command;
use common::running::{Client, Maps, start, start_with};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use varve_runtime::Error as EngineError;
use varve_serve::{
    Cache, Cursor, Error, Host, Limits, Meta, Reference, Server, Settings, Store, StoreError,
    shard_of,
};

type Result<T, E = StoreError> = std::result::Result<T, E>;

fn of(shards: usize) -> Settings {
    Settings {
        shards,
        ..Settings::default()
    }
}

#[test]
fn commands_at_random_are_answered_by_shards_as_by_one_store() {
    let server = start(of(3));
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&proptest::collection::vec(command(), 1..60), |commands| {
            let input = [&b"flush_all\r\n"[..], &commands.concat(), b"quit\r\n"].concat();
            let mut cache = Cache::new(Reference::default(), Limits::default(), common::NOW);
            let expected = common::one(cache.as_mut().unwrap(), &input);
            let mut stream = server.stream();
            stream.write_all(&input).unwrap();
            let mut found = Vec::new();
            stream.read_to_end(&mut found).unwrap();
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            prop_assert_eq!(text(&found), text(&expected), "after {}", text(&input));
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    let traffic = server.end();
    assert!(traffic.handed_over > 1000, "{traffic:?}");
}

#[test]
fn a_retrieval_of_many_keys_has_all_values_in_their_order() {
    let server = start(of(4));
    let mut client = server.connect();
    let (mut sets, mut stored, mut keys, mut found) =
        (String::new(), String::new(), String::new(), String::new());
    for i in 0..500 {
        sets += &format!("set key{i} {i} 0 6\r\n{i:06}\r\n");
        stored += "STORED\r\n";
        keys += &format!(" key{i} none{i}");
        found += &format!("VALUE key{i} {i} 6\r\n{i:06}\r\n");
    }
    client.ask(&sets, &stored);
    client.ask(
        &format!("get{keys}\r\nmn\r\n"),
        &format!("{found}END\r\nMN\r\n"),
    );
    assert_eq!(client.stat("curr_items"), 500);
    assert_eq!(client.stat("cmd_set"), 500);
    assert_eq!(client.stat("get_hits"), 500);
    assert_eq!(client.stat("get_misses"), 500);
    assert_eq!(client.stat("threads"), 4);
    server.end();
}

#[test]
fn what_is_for_all_goes_to_all_shards() {
    let server = start(of(3));
    let mut client = server.connect();
    let mut other = server.connect();
    other.ask("mn\r\n", "MN\r\n");
    for i in 0..30 {
        client.ask(&format!("set k{i} 0 0 1\r\nA\r\n"), "STORED\r\n");
    }
    assert_eq!(client.stat("cmd_set"), 30);
    assert_eq!(client.stat("curr_items"), 30);
    assert_eq!(client.stat("curr_connections"), 2);
    client.ask("flush_all\r\n", "OK\r\n");
    assert_eq!(client.stat("curr_items"), 0);
    client.ask("stats reset\r\n", "RESET\r\n");
    assert_eq!(client.stat("cmd_set"), 0);
    // Without an answer, and in order with what follows.
    client.ask(
        "set a 0 0 1\r\nA\r\nset b 0 0 1\r\nB\r\nset c 0 0 1\r\nC\r\nflush_all noreply\r\nget a b c\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nEND\r\n",
    );
    client.send("stats conns\r\n");
    let lines = client.lines_to("END");
    let count = |what: &str| lines.iter().filter(|l| l.contains(what)).count();
    assert_eq!(
        (count(":addr tcp:127.0.0.1:"), count(":state conn_")),
        (3, 3)
    );
    assert_eq!(count(":state conn_listening"), 1);
    assert_eq!(count(":secs_since_last_cmd "), 2);
    client.send("stats settings\r\n");
    assert!(
        client
            .lines_to("END")
            .contains(&"STAT num_threads 3".into())
    );
    server.end();
}

/// Where a test sends what it does not read, each answer is a value, and others are served.
#[test]
fn a_client_that_does_not_read_what_other_shards_answer_costs_a_bounded_amount() {
    let settings = Settings {
        buffers: 16 << 20,
        ..of(2)
    };
    let server = start(settings);
    let mut client = server.connect();
    let value = "v".repeat(1 << 20);
    let keys: Vec<String> = (0..8).map(|i| format!("big{i}")).collect();
    for key in &keys {
        client.send(&format!("set {key} 0 0 1048576\r\n{value}\r\n"));
        client.expect("STORED\r\n");
    }
    let mut lazy: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for lazy in &mut lazy {
        lazy.send(&format!(
            "get {}\r\n",
            keys.join(" ").repeat(10).replace("7b", "7 b")
        ));
    }
    for _ in 0..50 {
        // A value that is read may come on top.
        assert!(client.stat("buffered_bytes") <= 19 << 20);
        client.send("get big1\r\n");
        client.line();
        assert_eq!(client.line().len(), 1 << 20);
        client.expect("END\r\n");
    }
    server.end();
}

/// Maps of which one key ends the store.
struct Fragile(Reference);

impl Fragile {
    fn look(key: &[u8]) -> Result<()> {
        match key.starts_with(b"bomb") {
            true => Err(StoreError::Failed(EngineError::Host(
                "it threw a tantrum".into(),
            ))),
            false => Ok(()),
        }
    }
}

impl Store for Fragile {
    fn get(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>> {
        Fragile::look(key)?;
        self.0.get(key)
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        self.0.find(key)
    }

    fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<Option<usize>> {
        Fragile::look(key)?;
        self.0.put(key, meta, value)
    }

    fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        self.0.mark(key, meta)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<usize>> {
        self.0.remove(key)
    }

    fn clear(&mut self) -> Result<()> {
        self.0.clear()
    }

    fn count(&mut self) -> Result<usize> {
        self.0.count()
    }

    fn scan(&mut self, cursor: Cursor) -> Result<()> {
        self.0.scan(cursor)
    }

    fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Result<Option<(Meta, usize)>> {
        self.0.next(cursor, key)
    }

    fn flush_at(&mut self) -> Result<i64> {
        self.0.flush_at()
    }

    fn set_flush_at(&mut self, at: i64) -> Result<()> {
        self.0.set_flush_at(at)
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        self.0.describe()
    }
}

#[derive(Default)]
struct Shelf {
    opened: AtomicU64,
    told: AtomicU64,
}

impl Host for &'static Shelf {
    type Store = Fragile;

    fn open(&self, _shard: usize) -> Result<Cache<Fragile>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let store = Fragile(Reference::default());
        Cache::new(store, Limits::default(), varve_serve::seconds())
    }

    fn failed(&self, _shard: usize, error: &StoreError) {
        assert!(error.to_string().contains("tantrum"), "{error}");
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

fn shelf() -> &'static Shelf {
    Box::leak(Box::default())
}

const FAILED: &str = "SERVER_ERROR the store failed and begins again\r\n";

#[test]
fn of_ten_shards_one_that_fails_begins_again_and_nine_go_on() {
    for shards in [10, 1] {
        let shelf = shelf();
        let server = start_with(of(shards), shelf);
        let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
        let keys: Vec<String> = (0..200).map(|i| format!("k{i}")).collect();
        for key in &keys {
            clients[0].ask(&format!("set {key} 0 0 1\r\nA\r\n"), "STORED\r\n");
        }
        // In the middle of other requests, each of which has its answer.
        clients[1].ask(
            "mn\r\nset bomb 0 0 1\r\nB\r\nmn\r\nget none bomb none other\r\nget none\r\nset k0 0 0 1\r\nA\r\n",
            &format!("MN\r\n{FAILED}MN\r\n{FAILED}END\r\nSTORED\r\n"),
        );
        let gone = shard_of(b"bomb", shards);
        for client in &mut clients {
            for key in keys.iter().skip(1) {
                let answer = match shard_of(key.as_bytes(), shards) == gone {
                    true => "END\r\n".to_string(),
                    false => format!("VALUE {key} 0 1\r\nA\r\nEND\r\n"),
                };
                client.ask(&format!("get {key}\r\n"), &answer);
            }
        }
        assert_eq!(clients[0].stat("store_restarts"), 2);
        // Earlier counts are kept.
        assert_eq!(clients[0].stat("cmd_set"), 202);
        assert_eq!(shelf.told.load(Ordering::Relaxed), 2);
        assert_eq!(shelf.opened.load(Ordering::Relaxed), shards as u64 + 2);
        server.end();
    }
}

#[test]
fn a_store_that_fails_again_and_again_ends_the_server() {
    let server = Server::bind(of(3)).unwrap();
    let address = server.address().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&shelf(), &stop));
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream
            .write_all("get bomb\r\n".repeat(20).as_bytes())
            .unwrap();
        match running.join().unwrap() {
            Err(e @ Error::Failing { .. }) => assert!(e.to_string().contains("tantrum"), "{e}"),
            other => panic!("{other:?}"),
        }
    });
}

/// Stores of which one cannot be opened.
struct Closed;

impl Host for Closed {
    type Store = Reference;

    fn open(&self, shard: usize) -> Result<Cache<Reference>> {
        match shard {
            2 => Err(StoreError::Failed(EngineError::Host("no such file".into()))),
            _ => Maps(Limits::default()).open(shard),
        }
    }

    fn ready(&self) {
        panic!("one store is not open");
    }
}

#[test]
fn a_store_that_cannot_be_opened_is_the_servers_end() {
    let server = Server::bind(of(4)).unwrap();
    match server.run(&Closed, &AtomicBool::new(false)) {
        Err(Error::Open { shard: 2, error }) => assert!(error.to_string().contains("no such file")),
        other => panic!("{other:?}"),
    }
}

/// All shards' keys are listed one shard after the other, by one client at a time; one that leaves in the middle lets others list.
#[test]
fn all_keys_of_all_shards_are_listed() {
    for shards in [1, 3] {
        let server = start(of(shards));
        let mut client = server.connect();
        for i in 0..10_000 {
            client.send(&format!("set key{i} 0 0 1 noreply\r\nv\r\n"));
        }
        client.ask("mn\r\n", "MN\r\n");
        let mut gone = server.connect();
        gone.send("lru_crawler metadump all\r\n");
        assert!(gone.line().starts_with("key="));
        drop(gone);
        let keys = loop {
            client.send("lru_crawler metadump all\r\nmn\r\n");
            match client.lines_to("MN") {
                busy if busy[0].starts_with("BUSY") => {}
                keys => break keys,
            }
        };
        assert_eq!(keys.last().map(String::as_str), Some("END"));
        let names: std::collections::BTreeSet<&str> = keys
            .iter()
            .filter_map(|line| line.strip_prefix("key=")?.split(' ').next())
            .collect();
        assert_eq!(names.len(), 10_000);
    }
}
