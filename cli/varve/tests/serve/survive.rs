//! Acknowledged values survive `kill -9`.

use crate::Server;
use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

const STORES: [&str; 3] = ["fhmap", "pbtree", "hbtree"];

fn start(store: &str, file: &Path) -> Server {
    let file = file.to_str().expect("a name in UTF-8");
    Server::start(&["--store", store, "--durable", file, "--domain", "memory"])
}

#[test]
fn a_value_with_all_that_goes_with_it_survives_a_kill() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.region");
        let server = start(store, &file);
        let mut client = server.connect();
        client.ask(
            "set a 7 0 5\r\nhello\r\nset b 0 1000 1\r\nB\r\nset c 0 0 1\r\nC\r\n",
            "STORED\r\nSTORED\r\nSTORED\r\n",
        );
        client.ask(
            "set n 0 0 1\r\n1\r\nincr n 41\r\ndelete c\r\n",
            "STORED\r\n42\r\nDELETED\r\n",
        );
        client.send("mg a c\r\n");
        let unique = client.line().unwrap();
        server.signal("-KILL");

        let server = start(store, &file);
        let mut client = server.connect();
        client.ask(
            "get a c n\r\n",
            "VALUE a 7 5\r\nhello\r\nVALUE n 0 2\r\n42\r\nEND\r\n",
        );
        client.ask("mg a c\r\n", &format!("{unique}\r\n"));
        client.send("mg b t\r\n");
        let left = client.line().unwrap();
        let left: u32 = left.strip_prefix("HD t").unwrap().parse().unwrap();
        assert!((900..=1000).contains(&left), "{store}: {left} s left");
        client.ask("flush_all\r\nset d 0 0 1\r\nD\r\n", "OK\r\nSTORED\r\n");
        server.signal("-TERM");

        let server = start(store, &file);
        server
            .connect()
            .ask("get a b c d n\r\n", "VALUE d 0 1\r\nD\r\nEND\r\n");
    }
}

#[test]
fn a_flush_that_was_promised_for_later_survives_a_kill() {
    for store in ["fhmap", "pbtree", "hbtree", "outside"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.region");
        let server = start(store, &file);
        server
            .connect()
            .ask("set a 0 0 1\r\nA\r\nflush_all 2\r\n", "STORED\r\nOK\r\n");
        server.signal("-KILL");
        thread::sleep(Duration::from_millis(3100));
        let server = start(store, &file);
        let mut client = server.connect();
        client.ask("get a\r\nset b 0 0 1\r\nB\r\n", "END\r\nSTORED\r\n");
        server.signal("-KILL");
        // It came once, and not again.
        let server = start(store, &file);
        server
            .connect()
            .ask("get b\r\n", "VALUE b 0 1\r\nB\r\nEND\r\n");
    }
}

#[test]
fn a_file_with_the_values_of_another_store_is_refused_and_stays_as_it_is() {
    for held in STORES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.region");
        let server = start(held, &file);
        server.connect().ask("set a 0 0 1\r\nA\r\n", "STORED\r\n");
        server.signal("-TERM");
        for other in STORES.into_iter().filter(|other| *other != held) {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_varve"))
                .args([
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--store",
                    other,
                    "--durable",
                ])
                .arg(&file)
                .args(["--domain", "memory"])
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{held}, {other}: {err}");
            assert!(output.stdout.is_empty(), "{held}, {other}");
            for word in [&format!("--store {held}"), file.to_str().unwrap()] {
                assert!(err.contains(word), "{held}, {other}: {err}");
            }
            assert_eq!(err.lines().count(), 1, "{err}");
        }
        let server = start(held, &file);
        server
            .connect()
            .ask("get a\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    }
}

/// Writes numbered values of few keys and has the server killed some time after so many of them; the last acknowledged number of each key, and
/// the one that was under way.
fn write_until_killed(
    server: Server,
    kill_after: u64,
    from: u64,
) -> (HashMap<u64, u64>, (u64, u64)) {
    let mut client = server.connect();
    let mut server = Some(server);
    let mut killer = None;
    let (mut kept, mut number) = (HashMap::new(), from);
    let under_way = loop {
        let key = number * 7919 % 500;
        let value = format!("{number:0>200}");
        client.send_if_there(&format!("set k{key} 0 0 200\r\n{value}\r\n"));
        match client.line().as_deref() {
            Some("STORED") => kept.insert(key, number),
            None => break (key, number),
            Some(other) => panic!("{other}"),
        };
        number += 1;
        if number - from == kill_after {
            let server = server.take().expect("once");
            killer = Some(thread::spawn(move || {
                thread::sleep(Duration::from_micros(kill_after * 13 % 1000));
                server.signal("-KILL")
            }));
        }
    };
    killer.expect("it was killed").join().unwrap();
    (kept, under_way)
}

#[test]
fn of_writers_that_never_stop_every_acknowledged_value_survives_every_kill() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.region");
        let mut kept: HashMap<u64, u64> = HashMap::new();
        let mut next = 0;
        for round in 0..6 {
            let kill_after = 3 + 157 * round;
            let (more, (key, number)) = write_until_killed(start(store, &file), kill_after, next);
            kept.extend(more);
            next = number + 1;
            let server = start(store, &file);
            let mut client = server.connect();
            for (&k, &n) in &kept {
                client.send(&format!("mg k{k} v\r\n"));
                assert_eq!(
                    client.line().as_deref(),
                    Some("VA 200"),
                    "{store}: k{k} in round {round}"
                );
                let found: u64 = client.line().unwrap().parse().unwrap();
                // The one that was under way may be there already.
                let early = k == key && found == number;
                assert!(
                    found == n || early,
                    "{store}: k{k} is {found}, {n} was acknowledged"
                );
            }
            server.signal("-TERM");
        }
    }
}

fn fill(server: &Server, values: u32, bytes: usize) {
    let mut client = server.connect();
    let value = "v".repeat(bytes);
    for i in 0..values {
        client.ask(
            &format!("set f{i} 0 0 {bytes}\r\n{value}\r\n"),
            "STORED\r\n",
        );
    }
}

/// A server that is started in the middle of a compaction must not serve the file that is about to be replaced: what it acknowledges would be gone.
#[test]
fn a_server_that_starts_while_the_region_is_compacted_keeps_what_it_acknowledges() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.region");
    let server = start("pbtree", &file);
    fill(&server, 4000, 1000);
    server.signal("-TERM");
    for round in 0..6u64 {
        let mut compaction = std::process::Command::new(env!("CARGO_BIN_EXE_varve"))
            .args(["durable", "compact"])
            .arg(&file)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(3 + round * 9));
        let server = start("pbtree", &file);
        let text = format!("{round:0>5}");
        let mut client = server.connect();
        client.ask(&format!("set late 0 0 5\r\n{text}\r\n"), "STORED\r\n");
        compaction.wait().unwrap();
        client.ask(&format!("set later 0 0 5\r\n{text}\r\n"), "STORED\r\n");
        server.signal("-KILL");
        let server = start("pbtree", &file);
        server.connect().ask(
            "get late later f77\r\n",
            &format!("VALUE late 0 5\r\n{text}\r\nVALUE later 0 5\r\n{text}\r\nVALUE f77 0 1000\r\n{}\r\nEND\r\n", "v".repeat(1000)),
        );
        server.signal("-TERM");
    }
}

/// Copies that are made while values are stored have each value that was acknowledged before, and open as regions do.
#[test]
fn a_backup_of_a_server_has_all_that_was_acknowledged_before() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (
        folder.path().join("values.region"),
        folder.path().join("copy.region"),
    );
    let server = start("hbtree", &file);
    fill(&server, 500, 1000);
    let mut client = server.connect();
    for round in 0..5u32 {
        client.ask(&format!("set n 0 0 1\r\n{round}\r\n"), "STORED\r\n");
        let writer = {
            let mut client = server.connect();
            thread::spawn(move || {
                for i in 0..300 {
                    client.ask(
                        &format!("set w{} 0 0 4\r\n{i:0>4}\r\n", i % 50),
                        "STORED\r\n",
                    );
                }
            })
        };
        let made = std::process::Command::new(env!("CARGO_BIN_EXE_varve"))
            .args(["durable", "backup"])
            .args([&file, &copy])
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        writer.join().unwrap();
        let other = start("hbtree", &copy);
        other.connect().ask(
            "get n f499\r\n",
            &format!(
                "VALUE n 0 1\r\n{round}\r\nVALUE f499 0 1000\r\n{}\r\nEND\r\n",
                "v".repeat(1000)
            ),
        );
        other.signal("-TERM");
    }
    server.signal("-TERM");
}
