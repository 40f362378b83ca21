//! Access to a server: Unix sockets, passwords, and the warning for a server that is open to all.

use crate::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server with the beginning of what it says.
struct Started {
    child: Child,
    line: String,
}

fn start(args: &[&str]) -> Started {
    let mut child = Command::new(env!("CARGO_BIN_EXE_varve"))
        .arg("serve")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("varve starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
    out.read_line(&mut line).expect("a line");
    Started { child, line }
}

impl Started {
    /// Ends it; what it said on standard error.
    fn end(mut self) -> String {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill is there").success());
        let mut said = String::new();
        let mut err = self.child.stderr.take().expect("it was asked for");
        err.read_to_string(&mut said).expect("text");
        assert_eq!(
            self.child.wait().expect("it ends").code(),
            Some(0),
            "{said}"
        );
        said
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

#[test]
fn a_server_on_a_socket_alone_is_not_in_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.sock");
    let server = start(&["--socket", text(&path), "--socket-mode", "770"]);
    assert!(
        server.line.contains(&format!("on {},", path.display())),
        "{}",
        server.line
    );
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o770);
    let mut client = UnixStream::connect(&path).unwrap();
    client
        .write_all(b"set a 0 0 1\r\nA\r\nget a\r\nquit\r\n")
        .unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    assert_eq!(answers, "STORED\r\nVALUE a 0 1\r\nA\r\nEND\r\n");
    let second = Command::new(env!("CARGO_BIN_EXE_varve"))
        .args(["serve", "--socket", text(&path)])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another server listens there"));
    assert_eq!(server.end(), "");
    assert!(!path.exists());
}

#[test]
fn a_file_of_passwords_that_others_may_read_is_told_of_and_passwords_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwords");
    std::fs::write(&file, "anna:secret\n").unwrap();
    for (mode, says) in [(0o600, ""), (0o644, "chmod 600")] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        // Not a word of the address: there are passwords.
        let server = start(&["--listen", "0.0.0.0:0", "--auth-file", text(&file)]);
        let said = server.end();
        assert_eq!(said.is_empty(), says.is_empty(), "{said}");
        assert!(said.contains(says) && !said.contains("secret"), "{said}");
    }
    let server = Server::start(&["--auth-file", text(&file)]);
    let mut client = server.connect();
    client.ask("get a\r\n", "CLIENT_ERROR unauthenticated\r\n");
    client.ask(
        "set x 0 0 11\r\nanna secret\r\nget a\r\n",
        "STORED\r\nEND\r\n",
    );
}

#[test]
fn a_server_that_others_can_reach_without_a_password_is_told_of() {
    let open = start(&["--listen", "0.0.0.0:0"]);
    let said = open.end();
    assert!(
        said.starts_with("warning: --listen 0.0.0.0:0") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(start(&["--listen", "127.0.0.1:0"]).end(), "");
}

#[test]
fn a_limit_that_no_region_has_room_for_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values");
    let file = file.to_str().unwrap();
    let here = ["--listen", "127.0.0.1:0", "--durable", file];
    let said = start(&[&here[..], &["-m", "12GiB", "--heap-max", "512MiB"]].concat()).end();
    assert!(
        said.starts_with("note: --memory-limit 12GiB") && said.contains("--region-max"),
        "{said}"
    );
    assert_eq!(start(&here).end(), "");
}

#[test]
fn a_request_that_stalls_is_given_up() {
    let server = Server::start(&["--stall-timeout", "0.1"]);
    let mut client = server.connect();
    client.send("set a 0 0 10\r\nabc");
    assert_eq!(client.line(), None);
    server.connect().ask("mn\r\n", "MN\r\n");
}
