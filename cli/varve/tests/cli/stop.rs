//! Ctrl-C, closed pipes and full disks: the end comes soon and leaves nothing behind.

use crate::common::{Said, command, is_root, varve};
use crate::small_disk::SmallDisk;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Sends a signal to a process, or to a group, whose number has a minus.
pub fn signal(whom: &str, name: &str) {
    let done = Command::new("kill")
        .args(["-s", name, "--", whom])
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

/// Has a run begun to work? It listens for signals then, and has threads for its work.
pub fn works(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let caught = field("SigCgt:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let threads = field("Threads:").and_then(|count| count.trim().parse().ok());
    const INT_AND_TERM: u64 = 1 << 1 | 1 << 14;
    caught.is_some_and(|mask| mask & INT_AND_TERM == INT_AND_TERM) && threads > Some(1u32)
}

/// A run of minutes is interrupted while it works.
#[test]
fn ctrl_c_ends_a_run_with_130_and_leaves_nothing() {
    for name in ["INT", "TERM", "HUP"] {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = command("run gups:updates=0,time=1000s --scale 64 --policy random;static")
            .env("TMPDIR", scratch.path())
            .env("XDG_CACHE_HOME", scratch.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !works(child.id()) {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            sleep(Duration::from_millis(5));
        }
        signal(&child.id().to_string(), name);
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, 130, "{}", said.err);
        assert!(said.err.contains("interrupted"), "{}", said.err);
        assert_eq!(said.out, "");
        assert!(
            is_empty(scratch.path()),
            "{name}: something was left in the folder for temporary files"
        );
    }
}

/// A program whose pages are placed, and its run, end by a signal. The tables that all runs share are removed by who is last:
/// the run, or the program when the run was killed.
#[test]
fn a_live_run_that_is_ended_leaves_no_table_behind() {
    // A size that no other test has.
    const BINS: [&str; 4] = ["run", "--live", "--bins", "52MiB"];
    let table = Path::new("/dev/shm/varve-bins-13312x1");
    let can_place = varve(&[&BINS[..], &["--", "true"]].concat()).code == 0;
    if !can_place || !crate::common::has("cc", "gcc") {
        return varve_skip::skip!("needs a C compiler and the right to read frame numbers");
    }
    let scratch = tempfile::tempdir().unwrap();
    let array = scratch.path().join("array");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../live/linux/tests/programs/array.c"
    );
    let compiled = Command::new("cc")
        .arg("-o")
        .args([&array, Path::new(source)])
        .status();
    assert!(compiled.unwrap().success());
    for (name, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let temporary = tempfile::tempdir().unwrap();
        let words = [array.to_str().unwrap(), "24", "wait"];
        let mut run = command(&[&BINS[..], &["--"], &words].concat())
            .env("TMPDIR", temporary.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        assert!(table.exists());
        match name {
            // The keyboard's goes to both.
            "INT" => signal(&format!("-{}", run.id()), name),
            _ => signal(&run.id().to_string(), name),
        }
        // A program without its run ends when its input does.
        drop(run.stdin.take());
        assert_eq!(run.wait().unwrap().code(), code, "{name}");
        // The end of its output is the end of the program.
        out.read_line(&mut line).unwrap();
        assert!(!table.exists(), "{name}");
        assert!(name == "KILL" || is_empty(temporary.path()), "{name}");
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
    let words = format!(
        "trace -o {} -- gzip -9 -c {source} {}",
        file.display(),
        big.display()
    );
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
fn a_full_disk_under_what_is_replayed_at_once_is_one_error_and_leaves_nothing() {
    if !is_root() || !crate::common::can_trace() || !crate::common::has("gzip", "gzip") {
        return;
    }
    // Room for the probe, and little more.
    let Some(disk) = SmallDisk::new(1500) else {
        return;
    };
    let big = crate::common::home().join("Cargo.lock");
    let said = command(&["run", "--policy=all", "--machine=cxl-spr", "--"])
        .args(["gzip", "-9", "-c", big.to_str().unwrap()])
        .env("TMPDIR", disk.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(
        err.contains("disk is full") && err.contains("set TMPDIR"),
        "{err}"
    );
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
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
