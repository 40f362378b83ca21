//! The server on a socket of this machine: clients that are slow, many, or strange.

mod common;

use common::running::{Maps, Running, start_with};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use varve_serve::{Error, Limits, Passwords, Server, Settings, Socket};

fn start(settings: Settings, limits: Limits) -> Running {
    start_with(settings, Maps(limits))
}

fn usual() -> Settings {
    Settings::default()
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

/// The value that `stats` has under a name.
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
    let mut slow = server.stream();
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
    // The most that this process may have: a connection has two ends here.
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
    let mut client = server.stream();
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
    let mut lazy = server.stream();
    let set = [b"set big 0 0 1048576\r\n", &value[..], b"\r\n"].concat();
    ask(&mut lazy, &set, b"STORED\r\n");
    // 200 MiB of answers, of which the sockets take some.
    lazy.write_all(format!("get{}\r\n", " big".repeat(200)).as_bytes())
        .unwrap();
    let mut other = server.stream();
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
        let mut client = server.stream();
        client
            .write_all(format!("set k{i} 0 0 1048576\r\n").as_bytes())
            .unwrap();
        client.write_all(&half).unwrap();
        waiting.push(client);
    }
    let mut other = server.stream();
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
    let (mut first, mut second) = (server.stream(), server.stream());
    ask(&mut first, b"mn\r\n", b"MN\r\n");
    ask(&mut second, b"mn\r\n", b"MN\r\n");
    let mut answer = Vec::new();
    server.stream().read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"ERROR Too many open connections\r\n");
    drop(second);
    // Its place is free as soon as the server has seen it go.
    for _ in 0..100 {
        if stat(&mut first, "curr_connections ") == 1 {
            ask(&mut server.stream(), b"mn\r\n", b"MN\r\n");
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
        server.stream().write_all(part.as_bytes()).unwrap();
    }
    let mut half = server.stream();
    half.write_all(b"set k 0 0 1\r\nA\r\nget k\r\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    half.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"STORED\r\nVALUE k 0 1\r\nA\r\nEND\r\n");
    let mut other = server.stream();
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
    let mut client = server.stream();
    client.write_all(&[b'x'; 5000]).unwrap();
    let mut answer = Vec::new();
    // The end may come as a reset, since not all was read.
    let _ = client.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    // A web page that has a browser send commands is refused: the rest is not even read.
    for method in ["GET", "POST", "PUT", "OPTIONS"] {
        let mut browser = server.stream();
        let request = format!("{method} /set HTTP/1.1\r\nHost: x\r\n\r\nset pwn 0 0 4\r\nEVIL\r\n");
        browser.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = browser.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{method}");
        ask(&mut server.stream(), b"get pwn\r\n", b"END\r\n");
    }
    server.end();
}

/// The end comes after the answer, and never as a reset, whatever else the client had sent by then.
#[test]
fn a_client_of_the_binary_protocol_hears_in_it_that_it_is_not_spoken() {
    let server = start(usual(), Limits::default());
    for more in [0, 100, 200_000] {
        let mut client = server.stream();
        let mut version = vec![0; 24 + more];
        version[..2].copy_from_slice(&[0x80, 0x0b]);
        version[12..16].copy_from_slice(b"1234");
        client.write_all(&version).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let _ = client.write_all(b"more");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        let (header, text) = answer.split_at(24);
        assert_eq!(header[..8], [0x81, 0x0b, 0, 0, 0, 0, 0, 0x81]);
        assert_eq!(header[8..12], (text.len() as u32).to_be_bytes());
        assert_eq!(&header[12..16], b"1234");
        assert!(text.ends_with(b"set the client to the text (ASCII or meta) protocol"));
        client.write_all(b"and more").unwrap();
    }
    let mut other = server.stream();
    for _ in 0..300 {
        if stat(&mut other, "curr_connections ") == 1 {
            server.end();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("connections that were ended still count");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = start(usual(), Limits::default());
    let again = Settings {
        listen: Some(server.address),
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
    let mut client = server.stream();
    ask(&mut client, b"set k 0 0 1\r\nA\r\n", b"STORED\r\n");
    ask(&mut client, b"get k\r\n", b"VALUE k 0 1\r\nA\r\nEND\r\n");
    drop(client);
    let traffic = server.end();
    let (read, written) = (traffic.read, traffic.written);
    assert_eq!((read, written, traffic.total_connections), (23, 29, 1));
}

#[test]
fn clients_that_go_away_at_any_byte_of_a_request_leave_nothing() {
    for shards in [1, 3] {
        let settings = Settings { shards, ..usual() };
        let server = start(settings, Limits::default());
        let requests =
            b"set k 0 0 20\r\n01234567890123456789\r\nget k a b c\r\nms m 3\r\nabc\r\nquit\r\n";
        for end in 0..requests.len() {
            server.stream().write_all(&requests[..end]).unwrap();
        }
        let mut other = server.stream();
        wait_for(&mut other, "curr_connections ", 1);
        assert_eq!(stat(&mut other, "buffered_bytes "), 0);
        ask(
            &mut other,
            b"get k\r\n",
            b"VALUE k 0 20\r\n01234567890123456789\r\nEND\r\n",
        );
        server.end();
    }
}

/// Asks until a number is what it should be in the end.
fn wait_for(stream: &mut TcpStream, name: &str, number: u64) {
    for _ in 0..500 {
        if stat(stream, name) == number {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{name}is {}, not {number}", stat(stream, name));
}

fn with_times(idle: Option<u64>, stall: Option<u64>) -> Settings {
    Settings {
        idle: idle.map(Duration::from_millis),
        stall: stall.map(Duration::from_millis),
        ..usual()
    }
}

/// Reads until the server closes.
fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut found = Vec::new();
    // Unread input turns the end into a reset.
    let _ = stream.read_to_end(&mut found);
    found
}

#[test]
fn stores_that_have_stalled_give_back_their_buffers_and_idle_clients_stay() {
    let server = start(
        Settings {
            buffers: 8 << 20,
            ..with_times(None, Some(100))
        },
        Limits::default(),
    );
    let mut idle = server.stream();
    ask(&mut idle, b"mn\r\n", b"MN\r\n");
    let mut stalled: Vec<_> = (0..20)
        .map(|i| {
            let mut client = server.stream();
            let begin = format!("set k{i} 0 0 1048576\r\n{}", "x".repeat(10_000));
            client.write_all(begin.as_bytes()).unwrap();
            client
        })
        .collect();
    for client in &mut stalled {
        let answer = until_closed(client);
        let refused = b"SERVER_ERROR out of memory reading request\r\n";
        assert!(answer.is_empty() || answer == refused);
    }
    assert_eq!(stat(&mut idle, "stalled_connections "), 20);
    assert_eq!(stat(&mut idle, "curr_connections "), 1);
    assert_eq!(stat(&mut idle, "buffered_bytes "), 0);
    assert_eq!(stat(&mut idle, "idle_kicks "), 0);
    server.end();
}

/// A byte now and then is not getting on; neither is an answer that the client does not read.
#[test]
fn slow_lines_values_and_readers_are_given_up() {
    let server = start(with_times(None, Some(150)), Limits::default());
    let mut other = server.stream();
    let value = vec![b'v'; 1 << 20];
    let set = [b"set big 0 0 1048576\r\n", &value[..], b"\r\n"].concat();
    ask(&mut other, &set, b"STORED\r\n");
    for begin in ["get a", "set k 0 0 1000000\r\n", "gat 0 a "] {
        let mut slow = server.stream();
        slow.write_all(begin.as_bytes()).unwrap();
        let mut taken = 0;
        while slow.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
            taken += 1;
            assert!(taken < 2000, "{begin:?} may take for ever");
        }
    }
    let mut lazy = server.stream();
    lazy.write_all(&b"get big\r\n".repeat(50)).unwrap();
    wait_for(&mut other, "stalled_connections ", 4);
    server.end();
}

#[test]
fn clients_that_are_idle_are_sent_away_if_that_is_asked_for() {
    let server = start(with_times(Some(100), None), Limits::default());
    let mut idle = server.stream();
    ask(&mut idle, b"set k 0 0 1\r\nA\r\n", b"STORED\r\n");
    assert!(until_closed(&mut idle).is_empty());
    // One in the middle of a request is not idle, and may take its time here.
    let mut slow = server.stream();
    slow.write_all(b"set k 0 0 1\r\n").unwrap();
    let mut second = server.stream();
    assert!(until_closed(&mut second).is_empty());
    std::thread::sleep(Duration::from_millis(300));
    ask(&mut slow, b"B\r\n", b"STORED\r\n");
    let traffic = server.end();
    assert!(traffic.idle >= 2, "{traffic:?}");
    assert_eq!(traffic.stalled, 0);
}

fn with_passwords(shards: usize) -> Settings {
    let passwords = Passwords::parse("anna:secret\nbert:other words\n").unwrap();
    Settings {
        passwords: Some(Arc::new(passwords)),
        shards,
        ..usual()
    }
}

#[test]
fn a_client_gives_its_password_before_anything_else() {
    let server = start(with_passwords(2), Limits::default());
    let mut client = server.stream();
    let refused = b"CLIENT_ERROR unauthenticated\r\n";
    for early in [
        &b"get a b\r\n"[..],
        b"version\r\n",
        b"flush_all\r\n",
        b"mg a v\r\n",
        b"stats\r\n",
    ] {
        ask(&mut client, early, refused);
    }
    ask(&mut client, b"add auth 0 0 11\r\nanna secret\r\n", refused);
    for wrong in ["anna secre", "anna secret ", "anna other words", ""] {
        let set = format!("set auth 0 0 {}\r\n{wrong}\r\n", wrong.len());
        ask(
            &mut client,
            set.as_bytes(),
            b"CLIENT_ERROR authentication failure\r\n",
        );
    }
    // A client without a password may not send large values either.
    let large = format!("set auth 0 0 2000\r\n{}\r\n", "x".repeat(2000));
    ask(&mut client, large.as_bytes(), refused);
    // Commands after it in the same piece are executed.
    ask(
        &mut client,
        b"set auth 0 0 16\r\nbert other words\r\nset a 0 0 5000\r\n",
        b"STORED\r\n",
    );
    let value = [&[b'x'; 5000][..], b"\r\n"].concat();
    ask(&mut client, &value, b"STORED\r\n");
    assert_eq!(stat(&mut client, "auth_cmds "), 5);
    assert_eq!(stat(&mut client, "auth_errors "), 4);
    // The password was no value.
    ask(&mut client, b"get auth\r\n", b"END\r\n");
    // Each connection has to.
    ask(&mut server.stream(), b"get a\r\n", refused);
    server.end();
}

#[test]
fn a_socket_in_the_file_system_is_a_server_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.sock");
    let settings = Settings {
        socket: Some(Socket {
            path: path.clone(),
            mode: 0o700,
        }),
        ..usual()
    };
    let server = start(settings.clone(), Limits::default());
    let mut local = std::os::unix::net::UnixStream::connect(&path).unwrap();
    local
        .write_all(b"set a 0 0 1\r\nA\r\nstats conns\r\nquit\r\n")
        .unwrap();
    let mut answers = String::new();
    local.read_to_string(&mut answers).unwrap();
    assert!(answers.starts_with("STORED\r\n"), "{answers}");
    assert!(answers.contains(":addr unix:client\r\n"), "{answers}");
    assert!(
        answers.contains(&format!("unix:{}", path.display())),
        "{answers}"
    );
    // The same values over the network.
    ask(
        &mut server.stream(),
        b"get a\r\n",
        b"VALUE a 0 1\r\nA\r\nEND\r\n",
    );
    let Err(e) = Server::bind(settings).map(drop) else {
        panic!("two servers on one socket");
    };
    assert!(
        e.to_string().contains("another server listens there"),
        "{e}"
    );
    server.end();
    assert!(!path.exists());
}
