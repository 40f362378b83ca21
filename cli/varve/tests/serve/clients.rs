//! Clients that others wrote: pymemcache, PHP's memcached, Dalli, and the tools of libmemcached.

use crate::Server;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(command: &mut Command) -> Option<Output> {
    command.stdin(Stdio::null()).output().ok()
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

#[test]
fn pymemcache_gets_what_it_expects() {
    // Debian's packages are for its own Python.
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let output = run(Command::new(python).args(["-c", "import pymemcache"]));
        output.is_some_and(|o| o.status.success())
    });
    let Some(python) = python else {
        varve_skip::skip!(
            "no pymemcache (pip install pymemcache, or Debian: apt install python3-pymemcache)"
        );
        return;
    };
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/pymemcache_story.py");
    for store in ["fhmap", "pbtree", "hbtree"] {
        let server = Server::start(&["--store", store]);
        let mut command = Command::new(python);
        command.arg(&story).arg(server.port.to_string());
        let output = run(&mut command).expect("it ran a moment ago");
        assert!(output.status.success(), "{store}: {}", said(&output));
        assert!(said(&output).ends_with("done\n"), "{store}");
    }
}

/// Has a client's story told to servers of some stores, if the client is there: `probe` finds out.
fn tell(story: &str, probe: &[&str], missing: &str) {
    if !run(Command::new(probe[0]).args(&probe[1..])).is_some_and(|o| o.status.success()) {
        varve_skip::skip!("{missing}");
        return;
    }
    let story = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/serve")
        .join(story);
    for store in ["fhmap", "hbtree"] {
        let server = Server::start(&["--store", store]);
        let mut command = Command::new(probe[0]);
        command.arg(&story).arg(server.port.to_string());
        let output = run(&mut command).expect("it ran a moment ago");
        assert!(output.status.success(), "{store}: {}", said(&output));
        assert!(
            said(&output).ends_with("done\n"),
            "{store}: {}",
            said(&output)
        );
    }
}

#[test]
fn phps_memcached_gets_what_it_expects_with_answers_and_without() {
    tell(
        "php_story.php",
        &["php", "-r", "exit(class_exists('Memcached') ? 0 : 1);"],
        "no memcached for PHP (Debian: apt install php-cli php-memcached)",
    );
}

#[test]
fn dalli_gets_what_it_expects_of_the_meta_commands() {
    tell(
        "dalli_story.rb",
        &[
            "ruby",
            "-e",
            "require 'dalli'; exit(Gem::Version.new(Dalli::VERSION) >= Gem::Version.new('3.2'))",
        ],
        "no Dalli from 3.2 on, the first that speaks meta commands (gem install dalli)",
    );
}

/// Whether the tools are there; says so if not.
fn tools() -> bool {
    let found = run(Command::new("memccapable").arg("-h")).is_some();
    if !found {
        varve_skip::skip!("no libmemcached tools (Debian: apt install libmemcached-tools)");
    }
    found
}

#[test]
fn libmemcached_finds_the_text_protocol_as_it_should_be() {
    if !tools() {
        return;
    }
    for store in ["fhmap", "pbtree", "hbtree"] {
        let server = Server::start(&["--store", store]);
        let port = server.port.to_string();
        let mut command = Command::new("memccapable");
        command.args(["-h", "127.0.0.1", "-p", &port, "-a", "-t", "20"]);
        let output = run(&mut command).expect("it was there a moment ago");
        assert!(output.status.success(), "{store}: {}", said(&output));
        assert!(
            said(&output).contains("All tests passed"),
            "{store}: {}",
            said(&output)
        );
    }
}

#[test]
fn libmemcacheds_tools_copy_show_touch_and_remove_values() {
    if !tools() {
        return;
    }
    let server = Server::start(&["--store", "hbtree"]);
    let servers = format!("--servers=127.0.0.1:{}", server.port);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("greeting");
    std::fs::write(&file, "Hello from a file").unwrap();
    let tool = |name: &str, args: &[&str], succeeds: bool| {
        let mut command = Command::new(name);
        let output = run(command.arg(&servers).args(args).current_dir(&folder));
        let output = output.unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(
            output.status.success(),
            succeeds,
            "{name}: {}",
            said(&output)
        );
        said(&output)
    };
    tool("memcping", &[], true);
    tool("memccp", &["greeting"], true);
    assert!(tool("memccat", &["greeting"], true).contains("Hello from a file"));
    tool("memcexist", &["greeting"], true);
    tool("memctouch", &["--expire=100", "greeting"], true);
    assert!(tool("memcstat", &[], true).contains("curr_items: 1"));
    tool("memcrm", &["greeting"], true);
    tool("memcexist", &["greeting"], false);
    tool("memccp", &["greeting"], true);
    tool("memcflush", &[], true);
    tool("memcexist", &["greeting"], false);
    for test in ["set", "get", "mget"] {
        let test = format!("--test={test}");
        tool(
            "memcslap",
            &[&test, "--concurrency=4", "--execute-number=500"],
            true,
        );
    }
    let load = tool(
        "memcaslap",
        &["--concurrency=32", "--execute_number=20000"],
        true,
    );
    assert!(load.contains("get_misses: 0"), "{load}");
}
