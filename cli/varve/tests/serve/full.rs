//! A disk that is full: stores are refused, all else goes on, and there is room again when something was removed or the disk has some.

use crate::small_disk::SmallDisk;
use crate::{Client, Server};
use std::path::Path;

const STORES: [&str; 3] = ["fhmap", "pbtree", "hbtree"];
const REFUSED: &str = "SERVER_ERROR out of memory storing object";

fn start(store: &str, file: &Path) -> Server {
    let file = file.to_str().expect("a name in UTF-8");
    Server::start(&["--store", store, "--durable", file])
}

/// Stores a value of a kilobyte; whether it was not refused.
fn set(client: &mut Client, key: &str) -> bool {
    client.send(&format!("set {key} 0 0 1000\r\n{:1000}\r\n", key));
    match client.line().as_deref() {
        Some("STORED") => true,
        Some(REFUSED) => false,
        other => panic!("{key}: {other:?}"),
    }
}

fn get(client: &mut Client, key: &str) {
    let value = format!("VALUE {key} 0 1000\r\n{:1000}\r\nEND\r\n", key);
    client.ask(&format!("get {key}\r\n"), &value);
}

/// Stores new values until one is refused: how many there are.
fn fill(client: &mut Client, prefix: &str) -> usize {
    (0..20_000)
        .find(|i| !set(client, &format!("{prefix}{i}")))
        .expect("the disk is small")
}

#[test]
fn a_value_that_is_replaced_over_and_over_needs_no_more_room() {
    for store in STORES {
        let Some(disk) = SmallDisk::new(6 << 10) else {
            return;
        };
        let server = start(store, &disk.path().join("values"));
        let mut client = server.connect();
        for _ in 0..8000 {
            assert!(set(&mut client, "one"), "{store}");
        }
        get(&mut client, "one");
    }
}

#[test]
fn a_full_disk_refuses_stores_and_there_is_room_after_removals() {
    for store in STORES {
        let Some(disk) = SmallDisk::new(6 << 10) else {
            return;
        };
        let file = disk.path().join("values");
        let mut server = start(store, &file);
        let mut client = server.connect();
        let stored = fill(&mut client, "a");
        assert!(stored > 500, "{store}: {stored}");
        // Others are served, and what is there can be read, changed and removed: all of it, without room for anything.
        let mut other = server.connect();
        get(&mut other, "a0");
        other.ask("touch a0 1000\r\n", "TOUCHED\r\n");
        for i in 0..stored / 2 {
            other.ask(&format!("delete a{i}\r\n"), "DELETED\r\n");
        }
        let again = fill(&mut client, "b");
        assert!(again > stored / 8, "{store}: {again} of {stored}");
        // The same holds for a process that opens the file on the full disk.
        for signal in ["-KILL", "-TERM"] {
            server.signal(signal);
            server = start(store, &file);
            let mut client = server.connect();
            get(&mut client, "b0");
            get(&mut client, &format!("a{}", stored - 1));
            client.ask(
                "delete b1\r\n",
                if signal == "-KILL" {
                    "DELETED\r\n"
                } else {
                    "NOT_FOUND\r\n"
                },
            );
        }
        let mut client = server.connect();
        client.ask("flush_all\r\n", "OK\r\n");
        let fresh = fill(&mut client, "c");
        assert!(fresh > stored / 2, "{store}: {fresh} of {stored}");
    }
}

/// Deleted values make room for the same number of bytes, and fragmented free space has room for a long value.
#[test]
fn what_was_deleted_is_room_again() {
    for domain in ["memory", "file"] {
        let Some(disk) = SmallDisk::new(24 << 10) else {
            return;
        };
        let file = disk.path().join("values");
        let file = file.to_str().expect("a name in UTF-8");
        let server = Server::start(&["--store", "hbtree", "--durable", file, "--domain", domain]);
        let mut client = server.connect();
        let set = |client: &mut Client, key: &str, bytes: usize| {
            let value = "v".repeat(bytes);
            client.send(&format!("set {key} 0 0 {bytes}\r\n{value}\r\n"));
            client.line().as_deref() == Some("STORED")
        };
        let all = (0..).find(|i| !set(&mut client, &format!("a{i}"), 10_000));
        let all = all.expect("the disk is small");
        assert!(all > 1500, "{domain}: {all}");
        for i in (0..all).step_by(2) {
            client.ask(&format!("delete a{i}\r\n"), "DELETED\r\n");
        }
        assert!(set(&mut client, "long", 300_000), "{domain}");
        client.ask("delete long\r\n", "DELETED\r\n");
        let again = (0..).find(|i| !set(&mut client, &format!("b{i}"), 10_000));
        let again = again.expect("the disk is small");
        assert!(
            20 * again > 19 * all / 2,
            "{domain}: {again} of {}",
            all / 2
        );
    }
}

/// Another process's file takes the room, and frees it: the server uses it without a restart.
#[test]
fn a_disk_that_has_room_again_is_used() {
    let Some(disk) = SmallDisk::new(8 << 10) else {
        return;
    };
    let file = disk.path().join("values");
    let server = start("pbtree", &file);
    let mut client = server.connect();
    let big = disk.path().join("big");
    std::fs::write(&big, vec![1; 4 << 20]).unwrap();
    let stored = fill(&mut client, "a");
    for round in 0..3 {
        std::fs::remove_file(&big).unwrap();
        let more = (0..500)
            .filter(|i| set(&mut client, &format!("r{round}-{i}")))
            .count();
        assert_eq!(more, 500);
        // As much as is left.
        let _ = std::fs::write(&big, vec![1; 8 << 20]);
        fill(&mut client, &format!("f{round}-"));
        get(&mut client, "a0");
        // And room for the next round, in the region itself.
        for i in 0..500 {
            client.ask(&format!("delete r{round}-{i}\r\n"), "DELETED\r\n");
        }
    }
    get(&mut client, &format!("a{}", stored - 1));
}
