//! The server on a socket of this machine: clients that are slow, many, or strange.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use varve_serve::{Cache, Error, Limits, Reference, Server, Settings, Traffic};

/// A server on a thread of its own.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Server>>,
}

fn start(settings: Settings, limits: Limits) -> Running {
    let mut server = Server::bind(settings).unwrap();
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        let mut cache = Cache::new(Reference::default(), limits, varve_serve::seconds()).unwrap();
        server.run(&mut cache, &flag).unwrap();
        server
    });
    Running {
        address,
        stop,
        thread: Some(thread),
    }
}

fn usual() -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        connections: 4096,
        buffers: 64 << 20,
    }
}

impl Running {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// Ends the server; what it has counted.
    fn end(mut self) -> Server {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn ask(stream: &mut TcpStream, request: &[u8], answer: &[u8]) {
    stream.write_all(request).unwrap();
    expect(stream, answer);
}

fn expect(stream: &mut TcpStream, answer: &[u8]) {
    let mut found = vec![0; answer.len()];
    stream.read_exact(&mut found).unwrap();
    assert!(
        found == answer,
        "{:?}",
        String::from_utf8_lossy(&found[..found.len().min(200)])
    );
}

/// What `stats` says under a name.
fn stat(stream: &mut TcpStream, name: &str) -> u64 {
    stream.write_all(b"stats\r\n").unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.ends_with("END\r\n") {
        let n = stream.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("STAT ")?.strip_prefix(name));
    line.expect("such a number").trim().parse().unwrap()
}

#[test]
fn a_client_that_sends_and_reads_a_byte_at_a_time_is_served() {
    let server = start(usual(), Limits::default());
    let mut slow = server.connect();
    for byte in b"set k 0 0 5\r\nhello\r\nget k\r\n" {
        slow.write_all(&[*byte]).unwrap();
    }
    for byte in b"STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n" {
        expect(&mut slow, &[*byte]);
    }
    server.end();
}

#[test]
fn thousands_of_connections_are_served_at_a_time_and_hold_no_buffers() {
    let server = start(usual(), Limits::default());
    // As many as this process may have: a connection has two ends here.
    let mut clients = Vec::new();
    for i in 0..2000 {
        match TcpStream::connect(server.address) {
            Ok(client) => clients.push(client),
            Err(e) => {
                eprintln!("{i} connections only: {e}");
                clients.truncate(i * 9 / 10);
                break;
            }
        }
    }
    for (i, client) in clients.iter_mut().enumerate() {
        ask(
            client,
            format!("set k{i} 0 0 2\r\nab\r\n").as_bytes(),
            b"STORED\r\n",
        );
    }
    for (i, client) in clients.iter_mut().enumerate().rev() {
        let answer = format!("VALUE k{i} 0 2\r\nab\r\nEND\r\n");
        ask(
            client,
            format!("get k{i}\r\n").as_bytes(),
            answer.as_bytes(),
        );
    }
    let last = clients.last_mut().unwrap();
    assert_eq!(stat(last, "buffered_bytes "), 0);
    let connected = clients.len() as u64;
    assert_eq!(
        stat(clients.last_mut().unwrap(), "curr_connections "),
        connected
    );
    drop(clients);
    server.end();
}

#[test]
fn requests_in_one_piece_are_answered_in_their_order() {
    let server = start(usual(), Limits::default());
    let mut client = server.connect();
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let value = "v".repeat(1000);
    for i in 0..2000 {
        requests.extend(format!("set k{i} 0 0 1000\r\n{value}\r\nget k{i}\r\n").bytes());
        answers.extend(format!("STORED\r\nVALUE k{i} 0 1000\r\n{value}\r\nEND\r\n").bytes());
    }
    let mut writer = client.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&requests).unwrap());
    expect(&mut client, &answers);
    writing.join().unwrap();
    server.end();
}

#[test]
fn a_client_that_does_not_read_its_answers_costs_no_more_than_one_of_them() {
    let server = start(usual(), Limits::default());
    let value = vec![b'x'; 1 << 20];
    let mut lazy = server.connect();
    let set = [b"set big 0 0 1048576\r\n", &value[..], b"\r\n"].concat();
    ask(&mut lazy, &set, b"STORED\r\n");
    // 200 MiB of answers, of which the sockets take some.
    lazy.write_all(format!("get{}\r\n", " big".repeat(200)).as_bytes())
        .unwrap();
    let mut other = server.connect();
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(5));
        assert!(stat(&mut other, "buffered_bytes ") <= 3 << 20);
    }
    // It reads at last, and gets all of them.
    for _ in 0..200 {
        expect(&mut lazy, b"VALUE big 0 1048576\r\n");
        let mut found = vec![0; value.len() + 2];
        lazy.read_exact(&mut found).unwrap();
        assert!(found[..value.len()] == value);
    }
    expect(&mut lazy, b"END\r\n");
    server.end();
}

#[test]
fn values_that_wait_to_be_whole_share_a_limit() {
    let settings = Settings {
        buffers: 4 << 20,
        ..usual()
    };
    let server = start(settings, Limits::default());
    let half = vec![b'x'; 512 << 10];
    let mut waiting = Vec::new();
    for i in 0..20 {
        let mut client = server.connect();
        client
            .write_all(format!("set k{i} 0 0 1048576\r\n").as_bytes())
            .unwrap();
        client.write_all(&half).unwrap();
        waiting.push(client);
    }
    let mut other = server.connect();
    std::thread::sleep(Duration::from_millis(200));
    assert!(stat(&mut other, "buffered_bytes ") <= 5 << 20);
    let (mut stored, mut refused) = (0, 0);
    for client in &mut waiting {
        client.write_all(&half).unwrap();
        client.write_all(b"\r\nmn\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"MN\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        match &answer[..] {
            b"STORED\r\nMN\r\n" => stored += 1,
            b"SERVER_ERROR out of memory reading request\r\nMN\r\n" => refused += 1,
            other => panic!("{:?}", String::from_utf8_lossy(other)),
        }
    }
    assert!(
        stored >= 3 && refused >= 10,
        "{stored} stored, {refused} refused"
    );
    server.end();
}

#[test]
fn one_connection_too_many_is_told_so() {
    let settings = Settings {
        connections: 2,
        ..usual()
    };
    let server = start(settings, Limits::default());
    let (mut first, mut second) = (server.connect(), server.connect());
    ask(&mut first, b"mn\r\n", b"MN\r\n");
    ask(&mut second, b"mn\r\n", b"MN\r\n");
    let mut answer = Vec::new();
    server.connect().read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"ERROR Too many open connections\r\n");
    drop(second);
    // Its place is free as soon as the server has seen it go.
    for _ in 0..100 {
        if stat(&mut first, "curr_connections ") == 1 {
            ask(&mut server.connect(), b"mn\r\n", b"MN\r\n");
            server.end();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a connection that was closed still counts");
}

#[test]
fn a_client_that_goes_away_in_the_middle_leaves_nothing() {
    let server = start(usual(), Limits::default());
    for part in ["set k 0 0 100\r\nabc", "get k", "set k 0 0 1000000\r\nabc"] {
        server.connect().write_all(part.as_bytes()).unwrap();
    }
    let mut half = server.connect();
    half.write_all(b"set k 0 0 1\r\nA\r\nget k\r\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    half.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"STORED\r\nVALUE k 0 1\r\nA\r\nEND\r\n");
    let mut other = server.connect();
    for _ in 0..100 {
        if stat(&mut other, "curr_connections ") == 1 {
            assert_eq!(stat(&mut other, "buffered_bytes "), 0);
            server.end();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("connections that were closed still count");
}

#[test]
fn bytes_of_no_protocol_are_answered_by_an_error_and_the_end() {
    let server = start(usual(), Limits::default());
    for (noise, says) in [
        (vec![b'x'; 5000], &b""[..]),
        (
            vec![0x80; 24],
            b"CLIENT_ERROR the binary protocol is not spoken here, use text\r\n",
        ),
    ] {
        let mut client = server.connect();
        client.write_all(&noise).unwrap();
        let mut answer = Vec::new();
        // The end may come as a reset, since not all was read.
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer == says);
    }
    // A web page that has a browser send commands is not heard: what follows is not even read.
    for method in ["GET", "POST", "PUT", "OPTIONS"] {
        let mut browser = server.connect();
        let request = format!("{method} /set HTTP/1.1\r\nHost: x\r\n\r\nset pwn 0 0 4\r\nEVIL\r\n");
        browser.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = browser.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{method}");
        ask(&mut server.connect(), b"get pwn\r\n", b"END\r\n");
    }
    server.end();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = start(usual(), Limits::default());
    let again = Settings {
        listen: server.address,
        ..usual()
    };
    let Err(e @ Error::Listen { .. }) = Server::bind(again).map(drop) else {
        panic!("two servers on one address");
    };
    assert!(
        e.to_string().starts_with(&server.address.to_string()),
        "{e}"
    );
    assert!(e.to_string().contains("--listen"), "{e}");
    server.end();
}

#[test]
fn all_that_is_read_and_written_is_counted() {
    let server = start(usual(), Limits::default());
    let mut client = server.connect();
    ask(&mut client, b"set k 0 0 1\r\nA\r\n", b"STORED\r\n");
    ask(&mut client, b"get k\r\n", b"VALUE k 0 1\r\nA\r\nEND\r\n");
    drop(client);
    let server = server.end();
    let Traffic {
        read,
        written,
        total_connections,
        ..
    } = server.traffic();
    assert_eq!((*read, *written, *total_connections), (23, 29, 1));
}
