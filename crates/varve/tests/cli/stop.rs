//! Ctrl-C, closed pipes and full disks: the end comes soon and leaves nothing behind.

use crate::common::{Said, command, is_root, varve};
use crate::small_disk::SmallDisk;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn signal(pid: u32, name: &str) {
    let done = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .expect("kill is there");
    assert!(done.success());
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder)
        .expect("the folder is there")
        .next()
        .is_none()
}

/// A run of minutes is interrupted while it works.
#[test]
fn ctrl_c_ends_a_run_with_130_and_leaves_nothing() {
    for name in ["INT", "TERM"] {
        let scratch = tempfile::tempdir().unwrap();
        let child = command(&[
            "run",
            "gups:updates=0,time=1000s",
            "--scale",
            "64",
            "--policy",
            "random;static",
        ])
        .env("TMPDIR", scratch.path())
        .env("XDG_CACHE_HOME", scratch.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        sleep(Duration::from_millis(700));
        signal(child.id(), name);
        let begun = Instant::now();
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, 130, "{}", said.err);
        assert!(said.err.contains("interrupted"), "{}", said.err);
        assert_eq!(said.out, "");
        // Generous, for a busy host; the run itself would take minutes.
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(
            is_empty(scratch.path()),
            "{name}: something was left in the folder for temporary files"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for words in [
        "machine list",
        "workload",
        "policy --json",
        "run gups:bytes=1GiB,updates=1k,threads=2",
    ] {
        let mut child = command(&words.split(' ').collect::<Vec<_>>())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{words}: {err}");
        assert_eq!(err, "", "{words}");
    }
}

#[test]
fn a_full_disk_is_one_error_and_the_trace_so_far_is_readable() {
    if !is_root() || !crate::common::can_trace() || !crate::common::has("gzip", "gzip") {
        return;
    }
    let Some(disk) = SmallDisk::new(256) else {
        return;
    };
    let file = disk.path().join("gzip.trace");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let big = crate::common::home().join("Cargo.lock");
    let words = [
        "trace",
        "-o",
        file.to_str().unwrap(),
        "--",
        "gzip",
        "-9",
        "-c",
        source,
        big.to_str().unwrap(),
    ];
    let said = command(&words).stdout(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(
        err.contains("disk is full") && err.contains("gzip.trace"),
        "{err}"
    );
    let info = varve(&["trace", "info", file.to_str().unwrap()]).well();
    assert!(info.out.contains("accesses"), "{}", info.out);
}

#[test]
fn a_full_disk_ends_a_report_with_one_error() {
    if !is_root() {
        return;
    }
    let Some(disk) = SmallDisk::new(256) else {
        return;
    };
    fs::write(disk.path().join("ballast"), vec![0; 250 << 10]).unwrap();
    let out = disk.path().to_str().unwrap();
    let said = varve(&[
        "run",
        crate::common::TINY,
        "--policy",
        "static",
        "--out",
        out,
    ]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains(out), "{}", said.err);
}
