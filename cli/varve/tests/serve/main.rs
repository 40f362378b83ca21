//! `varve serve` as others use it: clients that others wrote, signals, and what survives `kill -9`.

mod clients;
mod doors;
mod full;
mod shards;
#[path = "../shared/small_disk.rs"]
mod small_disk;
mod survive;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A server in a process of its own.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one on a port that the system chooses.
    fn start(args: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_varve"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("varve starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
        out.read_line(&mut line).expect("a line");
        let port = line.split_once("127.0.0.1:").and_then(|(_, rest)| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        let port = port.unwrap_or_else(|| panic!("no port in {line:?}; {:?}", child.wait()));
        Server { child, port }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout is possible");
        Client {
            stream: BufReader::new(stream),
        }
    }

    /// Ends it as Ctrl-C (`-INT`), `kill` (`-TERM`) and `kill -9` (`-KILL`) do.
    fn signal(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill is there").success());
        self.child.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn ask(&mut self, request: &str, answer: &str) {
        self.send(request);
        let mut found = vec![0; answer.len()];
        self.stream.read_exact(&mut found).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&found), answer, "after {request:?}");
    }

    fn send(&mut self, request: &str) {
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        sent.expect("the server takes it");
    }

    /// As `send`, to a server that may be gone.
    fn send_if_there(&mut self, request: &str) {
        let _ = self.stream.get_mut().write_all(request.as_bytes());
    }

    /// A line of an answer without its end; none if the connection has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        (read.is_ok() && line.ends_with("\r\n")).then(|| line.trim_end().to_string())
    }
}

#[test]
fn signals_end_a_server_in_peace() {
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(&["--store", "pbtree"]);
        let mut client = server.connect();
        client.ask("set a 0 0 1\r\nA\r\n", "STORED\r\n");
        assert_eq!(server.signal(signal).code(), Some(0), "{signal}");
        assert_eq!(client.line(), None);
    }
}

/// Values that survive are not in the heap, so a limit beyond what a heap can have beside them is no reason not to begin.
#[test]
fn a_durable_store_begins_with_a_limit_greater_than_its_heap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.region");
    let file = file.to_str().unwrap();
    let server = Server::start(&["-m", "6GiB", "--durable", file, "--domain", "memory"]);
    let mut client = server.connect();
    client.ask("set a 0 0 1\r\nA\r\n", "STORED\r\n");
}

#[test]
fn values_make_room_for_new_ones_where_they_may() {
    for store in ["fhmap", "pbtree", "hbtree", "outside"] {
        let server = Server::start(&["--store", store, "-m", "8MiB", "--evict", "lru"]);
        let mut client = server.connect();
        let value = "v".repeat(10_000);
        for i in 0..4000 {
            let request = format!("set k{i} 0 0 10000\r\n{value}\r\nget k0\r\n");
            client.ask(&request, "STORED\r\n");
            let there = client.line().unwrap();
            assert_eq!(there, "VALUE k0 0 10000", "{store}, at {i}");
            client.ask("", &format!("{value}\r\nEND\r\n"));
        }
        client.send("stats\r\n");
        let mut evictions = 0;
        while let Some(line) = client.line().filter(|line| line != "END") {
            if let Some(n) = line.strip_prefix("STAT evictions ") {
                evictions = n.parse().unwrap();
            }
        }
        assert!(evictions > 3000, "{store}: {evictions}");
    }
}

#[test]
fn wrong_settings_are_refused_in_one_line() {
    let server = Server::start(&[]);
    let taken = format!("127.0.0.1:{}", server.port);
    for (args, says) in [
        (&["--listen", &taken][..], "--listen"),
        (&["--store", "btree"], "fhmap, pbtree, hbtree or outside"),
        (&["--max-item-size", "0"], "--max-item-size"),
        (&["--memory-limit", "1KiB"], "--memory-limit"),
        (&["--domain", "file"], "--durable"),
        (&["--shards", "0"], "--shards 0: from 1"),
        (&["--shards", "2000"], "--shards 2000"),
        (
            &["--shards", "64", "--memory-limit", "32MiB"],
            "a shard has",
        ),
        (&["--socket-mode", "700"], "--socket"),
        (&["--socket", "/tmp/s", "--socket-mode", "9"], "not a mode"),
        (
            &["--socket", "/nowhere/at/all"],
            "/nowhere/at/all: cannot listen",
        ),
        (
            &["--auth-file", "/nowhere/at/all"],
            "--auth-file /nowhere/at/all",
        ),
        (&["--auth-file", "/dev/null"], "no line of name:password"),
        (&["--idle-timeout", "0.001"], "at least 0.01"),
        (&["--stall-timeout", "soon"], "or 0 for never"),
        (&["--durable", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["--connections", "0"], "--connections"),
        (&["--evict", "fifo"], "--evict"),
        (
            &["--durable", "/nowhere/at/all", "--heap-max", "20GiB"],
            "--heap-max",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_varve"));
        command.arg("serve");
        if args[0] != "--listen" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let output = command.args(args).output().expect("varve starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{args:?}: {err}"
        );
        assert!(err.contains(says), "{args:?}: {err}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
