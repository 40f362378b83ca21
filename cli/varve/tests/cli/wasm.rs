//! WebAssembly programs: what their collections tell.

use crate::common::{Said, TINY, command, typed, varve};

/// Trees of this depth take a few collections of a small nursery, and 20 ms.
const TREES: [&str; 6] = [
    "run",
    "programs/dist/trees.wasm",
    "--heap-max",
    "64MiB",
    "--nursery",
    "512KiB",
];

fn trees(options: &[&str]) -> crate::common::Said {
    varve(&[&TREES[..], options, &["--", "12"]].concat())
}

/// The collector's lines, without the program's line with its time.
fn collector(err: &str) -> Vec<&str> {
    err.lines()
        .filter(|line| !line.starts_with("time: "))
        .collect()
}

#[test]
fn the_log_of_collections_is_beside_what_the_program_prints() {
    let plain = trees(&[]).well();
    let logged = trees(&["--gc-log"]).well();
    assert_eq!(logged.out, plain.out);
    let lines = collector(&logged.err);
    assert!(lines.len() > 3, "{}", logged.err);
    for (number, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!("gc {} at ", number + 1)),
            "{line}"
        );
        for part in ["pause ", "promoted ", "heap ", "mature "] {
            assert!(line.contains(part), "{line}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gc.log");
    let said = trees(&[&format!("--gc-log={}", file.display())]).well();
    assert_eq!(said.out, plain.out);
    assert!(collector(&said.err).is_empty(), "{}", said.err);
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().count(), lines.len());
}

#[test]
fn a_summary_of_pauses_comes_at_the_end() {
    let said = trees(&["--gc-stats"]).well();
    let lines = collector(&said.err);
    assert!(lines[0].starts_with("collections "), "{}", said.err);
    for percentile in ["p50 ms", "p90 ms", "p99 ms", "max ms"] {
        assert!(lines[0].contains(percentile), "{}", said.err);
    }
    assert!(lines[1].starts_with("minor ") && lines[2].starts_with("full "));
    assert!(lines[3].starts_with("allocated "), "{}", said.err);
    assert_eq!(lines.len(), 4, "{}", said.err);
}

/// A program that ends badly is the one whose collections are of interest.
#[test]
fn a_full_heap_shows_its_collections_too() {
    let words = typed("run programs/dist/trees.wasm --heap-max 4MiB --nursery 512KiB");
    let said = varve(&[&words[..], &["--gc-stats", "--", "18"]].concat());
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.err.contains("p99 ms") && said.err.contains("the heap is full"),
        "{}",
        said.err
    );
}

#[test]
fn what_cannot_be_logged_is_said_before_the_program_runs() {
    trees(&["--gc-log=/no/such/folder/gc.log"]).refuses(
        2,
        &[
            "/no/such/folder/gc.log",
            "name a file that can be written for --gc-log",
        ],
    );
    varve(&["run", TINY, "--gc-stats"]).refuses(2, &["--gc-stats", "for WebAssembly programs"]);
    varve(&["run", TINY, "--gc-log"]).refuses(2, &["--gc-log", "WebAssembly"]);
}

/// A full disk behind standard output is told of, on a model and off it.
#[test]
fn a_table_that_is_lost_is_a_failure() {
    let commands: [&[&str]; 2] = [&["machine", "list"], &["run", TINY, "--policy", "static"]];
    for args in commands {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_varve"))
            .args(args)
            .stdout(full)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {err}");
        assert!(
            err.contains("writing standard output failed"),
            "{args:?}: {err}"
        );
    }
}

/// In the usual folder unless another one is named; and a later run prints the same.
#[test]
fn compiled_code_is_kept_for_later_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let files = |folder: &str| {
        let entries = std::fs::read_dir(scratch.path().join(folder));
        entries.map_or(0, |found| found.count())
    };
    let run = |options: &[&str]| {
        let mut command = command(&[&TREES[..], options, &["--", "12"]].concat());
        command.env("XDG_CACHE_HOME", scratch.path().join("cache"));
        Said::of(command.output().unwrap()).well().out
    };
    let wanted = run(&["--code-cache", "none"]);
    assert_eq!(files("cache"), 0);
    for _ in 0..3 {
        assert_eq!(run(&[]), wanted);
        assert_eq!(files("cache/varve/code"), 1);
    }
    let own = scratch.path().join("own");
    for _ in 0..2 {
        assert_eq!(run(&["--code-cache", own.to_str().unwrap()]), wanted);
        assert_eq!(files("own"), 1);
    }
}

#[test]
fn a_folder_where_no_code_can_be_kept_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let said = trees(&["--code-cache", file]);
    said.refuses(
        2,
        &["--code-cache", file, "name a folder of your own, or none"],
    );
}

#[test]
fn a_folder_for_code_that_is_never_kept_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("code");
    let folder = folder.to_str().unwrap();
    let region = scratch.path().join("region");
    for option in [
        ["--tier", "baseline"],
        ["--durable", region.to_str().unwrap()],
    ] {
        let said = trees(&[&["--code-cache", folder], &option[..]].concat());
        said.refuses(2, &["--code-cache", option[0], "leave one of them out"]);
        trees(&[&["--code-cache", "none"], &option[..]].concat()).well();
    }
    assert!(!std::path::Path::new(folder).exists());
}

/// A module that may write to its folder of kept code could have machine code of its own run.
#[test]
fn no_code_is_kept_where_the_program_may_write() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join("cache");
    let run = |options: &[&str]| {
        let mut command = command(&[&TREES[..], options, &["--", "12"]].concat());
        command.env("XDG_CACHE_HOME", &cache);
        Said::of(command.output().unwrap())
    };
    let home = home.path().to_str().unwrap();
    run(&["--dir", home]).well();
    run(&["--dir", "/"]).well();
    assert!(!cache.exists());
    let within = format!("{home}/code");
    let said = run(&["--dir", home, "--code-cache", &within]);
    said.refuses(2, &["--code-cache", &within, "the program may write there"]);
    run(&["--dir", &format!("{home}:ro")]).well();
    assert!(cache.join("varve/code").is_dir());
}

#[test]
fn the_command_that_places_objects_live_has_the_options_of_the_program() {
    let line = "run programs/dist/users.wasm --machine cxl-spr --heap-max 256MiB --fast 10% --nursery=1MiB -- 20000";
    let said = varve(&typed(line)).well();
    let words: Vec<&str> = said.out.split_whitespace().collect();
    let line = words.join(" ");
    for due in [
        "both memories: `varve run --live --plan ",
        "iB --heap-max 256MiB --nursery=1MiB programs/dist/users.wasm -- 20000`.",
    ] {
        assert!(line.contains(due), "{due} is missing in\n{}", said.out);
    }
}
