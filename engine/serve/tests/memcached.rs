//! This server answers as memcached does: the same bytes go to both. Needs memcached (Debian: apt install memcached).

mod common;

use common::{NOW, command};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use varve_serve::{Cache, Limits, Reference};

struct Memcached {
    child: Child,
    port: u16,
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Memcached {
    /// None if there is no memcached. A port that was free a moment ago may be another program's by now: then another is tried.
    fn start() -> Option<Memcached> {
        for _ in 0..10 {
            let mut server = Memcached::start_once()?;
            for _ in 0..100 {
                let answers = server.tells_version();
                if server.child.try_wait().unwrap().is_some() {
                    break;
                }
                if answers {
                    return Some(server);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        panic!("memcached was started and does not listen");
    }

    /// A connection alone says little: one to a free port may be to itself.
    fn tells_version(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let mut answer = [0; 7];
        let asked = stream.write_all(b"version\r\n").is_ok();
        asked && stream.read_exact(&mut answer).is_ok() && &answer == b"VERSION"
    }

    fn start_once() -> Option<Memcached> {
        let port = TcpListener::bind("127.0.0.1:0")
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let user = if rustix_is_root() { "nobody" } else { "" };
        let mut command = Command::new("memcached");
        command.args([
            "-l",
            "127.0.0.1",
            "-U",
            "0",
            "-t",
            "1",
            "-p",
            &port.to_string(),
        ]);
        if !user.is_empty() {
            command.args(["-u", user]);
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Memcached { child, port })
    }

    /// The answers to input on a connection of its own. All values are gone before.
    fn answers(&self, input: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(b"flush_all\r\n").unwrap();
        let mut ok = [0; 4];
        stream.read_exact(&mut ok).unwrap();
        assert_eq!(&ok, b"OK\r\n");
        stream.write_all(input).unwrap();
        stream.write_all(b"quit\r\n").unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).unwrap();
        answers
    }

    /// The answers to commands that are sent one by one, so that no answer waits while the next command is executed.
    fn answers_one_by_one(&self, commands: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let (mut answers, mut buffer) = (Vec::new(), [0; 1 << 16]);
        for command in [&b"flush_all noreply\r\n".to_vec()]
            .into_iter()
            .chain(commands)
        {
            stream
                .write_all(&[command, &b"mn\r\n"[..]].concat())
                .unwrap();
            let begins = answers.len();
            while !answers[begins..].ends_with(b"MN\r\n") {
                let n = stream.read(&mut buffer).unwrap();
                answers.extend_from_slice(&buffer[..n]);
            }
            answers.truncate(answers.len() - 4);
        }
        answers
    }
}

fn rustix_is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

fn ours(input: &[u8]) -> Vec<u8> {
    let mut cache = Cache::new(Reference::default(), Limits::default(), NOW).unwrap();
    common::one(&mut cache, input)
}

/// The server, or why there is none.
macro_rules! memcached {
    () => {
        match Memcached::start() {
            Some(server) => server,
            None => {
                varve_skip::skip!("no memcached (Debian: apt install memcached)");
                return;
            }
        }
    };
}

#[test]
fn commands_at_random_are_answered_as_memcached_does() {
    let server = memcached!();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let inputs = proptest::collection::vec(
        // With `mn` the end of answers is determined. Whether a number that becomes shorter has blanks after it depends in memcached on who else
        // refers to it.
        command().prop_filter("mn, or down", |c| {
            let down = c.starts_with(b"decr") || c.starts_with(b"ma") && c.ends_with(b" MD\r\n");
            c != b"mn\r\n" && !down
        }),
        1..40,
    );
    runner
        .run(&inputs, |commands| {
            let input = commands.concat();
            let ours = ours(&input);
            // Some answers of memcached depend on its own threads, which refer to an item while it changes: then a number gets a
            // new item, which was not fetched yet. And its clock goes on, where ours stands: on a busy machine one of ten sequences
            // is not over within the second. A difference that is ours comes again each time.
            let mut theirs = server.answers_one_by_one(&commands);
            for _ in 0..30 {
                if ours != theirs {
                    theirs = server.answers_one_by_one(&commands);
                }
            }
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            prop_assert_eq!(text(&ours), text(&theirs), "after {}", text(&input));
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn unusual_commands_are_answered_as_memcached_does() {
    let server = memcached!();
    let long = "k".repeat(251);
    let mut differ = Vec::new();
    for input in [
        "".to_string(),
        "\r\n".into(),
        "hello\r\n".into(),
        "get\r\n".into(),
        "set a 0 0\r\n".into(),
        "set a 0 0 1\r\nA\r\nget  a   a \r\n".into(),
        "set a 1 0 1 \r\nA\r\nget a\n".into(),
        "set a 0 0 0\r\n\r\nget a\r\nappend a 0 0 1\r\nB\r\nget a\r\n".into(),
        "set a 4294967295 0 1\r\nA\r\nget a\r\n".into(),
        "set a 0 -1 1\r\nA\r\nget a\r\n".into(),
        "set a 0 0 1\r\nA\r\ntouch a -1\r\nget a\r\n".into(),
        "set a 0 0 1\r\nA\r\ntouch b 0\r\ntouch a 0\r\n".into(),
        "set a 0 0 2\r\n10\r\ndecr a 1\r\nget a\r\nincr a 91\r\nget a\r\ndecr a 1000\r\nget a\r\n".into(),
        "set a 0 0 2\r\n-1\r\nincr a 1\r\nset a 0 0 1\r\n \r\nincr a 1\r\n".into(),
        "set a 0 0 1\r\n1\r\nincr a -1\r\nincr a x\r\nincr a 18446744073709551616\r\n".into(),
        "set a 0 0 20\r\n18446744073709551615\r\nincr a 2\r\nget a\r\n".into(),
        "incr b 1\r\ndecr b 1\r\ndelete b\r\n".into(),
        "set a 0 0 1\r\nA\r\ndelete a 0\r\n".into(),
        "set a 0 0 1\r\nA\r\ndelete a 5\r\nget a\r\n".into(),
        "set a 0 0 1\r\nA\r\ndelete a noreply\r\nget a\r\n".into(),
        "set a 0 0 1\r\nA\r\ngat 0 a b\r\ngat\r\ngat 0\r\n".into(),
        "gat x a\r\n".into(),
        format!("get {long}\r\n"),
        format!("delete {long}\r\n"),
        format!("incr {long} 1\r\n"),
        format!("touch {long} 1\r\n"),
        "cas a 0 0 1 5\r\nA\r\nset a 0 0 1\r\nA\r\ncas a 0 0 1 0\r\nB\r\n".into(),
        "cas a 0 0 1 x\r\n".into(),
        "GET / HTTP/1.1\r\nHost: a\r\nversion\r\n".into(),
        "hello HTTP/1.0\r\nversion\r\n".into(),
        "flush_all 0 x\r\nflush_all x y\r\nincr a 1 x\r\nverbosity 1 x\r\ncache_memlimit 1000 x\r\ncache_memlimit noreply\r\n".into(),
        "ms a 1\r\nA\r\nmg a s t T30\r\nmg a T0 t h\r\nmg a h u\r\nme\r\nmg a M\r\nmg a MX\r\nmg a Dx\r\nmg a Jx\r\nmg a Tx\r\n".into(),
        format!("mg a O{}\r\nms a 1 O{}\r\nA\r\nmd a Q\r\nma a Q\r\n", "1".repeat(31), "1".repeat(32)),
        "ms a 1 MAA\r\nA\r\nms a 1 Ms\r\nA\r\nms b 1 MA C5\r\nA\r\nms b 1 C5\r\nA\r\nms b 1 ME C5\r\nA\r\nms b 1 C0\r\nA\r\n".into(),
        "verbosity 1\r\nverbosity\r\nverbosity 1 noreply\r\nverbosity x\r\nverbosity x noreply\r\n".into(),
        "verbosity noreply\r\nverbosity a b c\r\nstats noreply\r\nstats x\r\nstats a b\r\n".into(),
        "quit\r\nmn\r\n".into(),
        "set a 0 0 1 other\r\nA\r\nget a noreply\r\ntouch a\r\nincr a\r\nGET a\r\n".into(),
        "flush_all noreply\r\nflush_all 0\r\nflush_all x\r\n".into(),
        "mn\r\nmg a\r\nmg\r\nmg a v q\r\nmg a k O1\r\n".into(),
        "mg a Q\r\nmg a v v\r\n".into(),
        "ms a 1 T0 F5\r\nA\r\nmg a f t s v k O9\r\nmg a\r\nmg a q\r\n".into(),
        "ms a 1 q\r\nA\r\nms a 1 ME q\r\nB\r\nms a 1 MX\r\nB\r\nms a S1\r\n".into(),
        "ms YWJj 3 b\r\nxyz\r\nget abc\r\nmg YWJj b k v\r\nmd YWJj b q\r\nmg abc\r\n".into(),
        "ms a 1\r\nA\r\nmd a q\r\nmd a q\r\nmd a\r\nmd a k O5\r\n".into(),
        "ms a 1\r\nA\r\nmd a I T30\r\nmg a v t\r\nmg a v\r\nms a 1\r\nB\r\nmg a v\r\n".into(),
        "ms a 1 T20\r\nA\r\nmg a R30 v\r\nmg a R30 v\r\nmg a v\r\n".into(),
        "ms a 1 T20\r\nA\r\nmg a T500 R30\r\nmg a t R600 T0\r\nmg a t\r\n".into(),
        "ms a 1 T20\r\nA\r\nmg a T0 R30\r\nmg a R30 t\r\nmg a t T10 R30\r\n".into(),
        "mg n N30 v t\r\nmg n N30 v\r\nmg n v\r\n".into(),
        "ma c\r\nma c N0 J5 v\r\nma c v D2\r\nma c MD v D3 t\r\nma c q\r\nma c MX\r\nma x q\r\n".into(),
        "set c 0 0 1\r\nx\r\nma c\r\nma c Dx\r\n".into(),
        "ms c 1 T30\r\n5\r\nma c T90 t v\r\nmg c t\r\n".into(),
        "ms a 1\r\nA\r\nms a 1 MA\r\nB\r\nms a 1 MP\r\nC\r\nms a 1 MR\r\nD\r\nms b 1 MR\r\nD\r\nms b 1 MA\r\nD\r\nmg a v\r\n".into(),
        "me none\r\n".into(),
    ] {
        let (ours, theirs) = (ours(input.as_bytes()), server.answers(input.as_bytes()));
        if ours != theirs {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            differ.push(format!(
                "{input:?}\n   here      {:?}\n   memcached {:?}",
                text(&ours),
                text(&theirs)
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}
