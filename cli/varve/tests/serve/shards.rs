//! Servers of several shards, whose values survive in several files.

use crate::Server;
use std::path::Path;
use std::process::Command;

fn start(file: &Path, more: &[&str]) -> Server {
    let file = file.to_str().expect("a name in UTF-8");
    let durable = ["--store", "pbtree", "--durable", file, "--domain", "memory"];
    Server::start(&[&durable[..], more].concat())
}

#[test]
fn values_of_all_shards_survive_a_kill_and_are_found_again_by_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.region");
    let server = start(&file, &["--shards", "3"]);
    let mut client = server.connect();
    for i in 0..300 {
        client.ask(&format!("set k{i} 0 0 6\r\n{i:06}\r\n"), "STORED\r\n");
    }
    // A limit is that of all shards together.
    client.ask("cache_memlimit 96\r\n", "OK\r\n");
    client.send("stats settings\r\n");
    let limit = std::iter::from_fn(|| client.line()).find(|l| l.starts_with("STAT maxbytes "));
    assert_eq!(limit.unwrap(), format!("STAT maxbytes {}", 96 << 20));
    server.signal("-KILL");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("values"))
        .collect();
    names.sort();
    let expected = [
        "values.region.0",
        "values.region.1",
        "values.region.2",
        "values.region.shards",
    ];
    assert_eq!(names, expected);
    for more in [&[][..], &["--shards", "3"]] {
        let server = start(&file, more);
        let mut client = server.connect();
        for i in 0..300 {
            client.ask(
                &format!("get k{i}\r\n"),
                &format!("VALUE k{i} 0 6\r\n{i:06}\r\nEND\r\n"),
            );
        }
        server.signal("-TERM");
    }
    let refused = Command::new(env!("CARGO_BIN_EXE_varve"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--shards",
            "2",
            "--durable",
        ])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("its values are in 3 shards: --shards 3"),
        "{said}"
    );
}

#[test]
fn every_store_serves_in_shards() {
    for store in ["fhmap", "pbtree", "hbtree", "outside"] {
        let server = Server::start(&["--store", store, "--shards", "4", "--memory-limit", "64MiB"]);
        let mut client = server.connect();
        let keys: String = (0..100).map(|i| format!(" k{i}")).collect();
        let mut all = String::new();
        for i in 0..100 {
            client.ask(&format!("set k{i} 0 0 6\r\n{i:06}\r\n"), "STORED\r\n");
            all += &format!("VALUE k{i} 0 6\r\n{i:06}\r\n");
        }
        client.ask(&format!("get{keys}\r\n"), &format!("{all}END\r\n"));
        client.ask("flush_all\r\nget k1 k2 k3\r\n", "OK\r\nEND\r\n");
    }
}
