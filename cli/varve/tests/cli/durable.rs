//! Objects that survive: a program that is killed again and again, and everything that can be wrong with its region.

use crate::common::{Said, has, home, on_region as on, varve};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ACCOUNTS: &str = "programs/dist/accounts.wasm";
const DURABLE: &str = "programs/dist/durable.wasm";

/// Starts a program, kills it after it has printed some lines and a moment more, and gives the last line that is whole.
fn killed(
    region: &Path,
    arguments: &[&str],
    options: &[&str],
    lines: usize,
    moment: Duration,
) -> Option<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_varve"))
        .current_dir(home())
        .args(["run", arguments[0], "--durable"])
        .arg(region)
        .args(options)
        .arg("--")
        .args(&arguments[1..])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut last = None;
    let mut line = String::new();
    let mut read = |out: &mut BufReader<_>, last: &mut Option<String>| {
        line.clear();
        let n = out.read_line(&mut line).unwrap_or(0);
        if line.ends_with('\n') {
            *last = Some(line.trim_end().to_string());
        }
        n > 0
    };
    for _ in 0..lines {
        if !read(&mut out, &mut last) {
            break;
        }
    }
    std::thread::sleep(moment);
    child.kill().expect("it runs still");
    child.wait().expect("it was ours");
    while read(&mut out, &mut last) {}
    last
}

/// The program of the README: money moves until the program is killed, and none is lost.
#[test]
fn accounts_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("accounts.region");
    for round in 0..3 {
        killed(
            &region,
            &[ACCOUNTS],
            &["--domain", "file", "--sync", "10ms"],
            1,
            Duration::from_millis(100 + 50 * round),
        );
        let said = on(&region, ACCOUNTS, &["0"]).well().out;
        let words: Vec<&str> = said.split(' ').collect();
        let number = |i: usize| words[i].parse::<i64>().expect("a number");
        assert_eq!(number(0) + number(2), 2000, "{said}");
        assert_eq!(number(2), 1000 + number(4), "{said}");
        assert!(number(4) > 0, "{said}");
        let region = region.to_str().unwrap();
        varve(&["durable", "check", region]).well();
    }
}

/// A bounded share of what `kill -9` at any instant must leave whole: collections of all kinds, inside and outside of regions.
/// `VARVE_TORTURE=2000` has it do so many rounds.
#[test]
fn what_was_said_to_be_over_is_there_after_kill_9() {
    let rounds = std::env::var("VARVE_TORTURE").map_or(10, |n| n.parse().expect("rounds"));
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("torture.region");
    let kinds = [
        "quick", "profiled", "deopt", "unlikely", "unbiased", "likely",
    ];
    let (mut over, mut most) = (0, 0);
    for round in 0..rounds {
        // Collections of so many operations have been through everything: others begin.
        if over > 20_000 {
            std::fs::remove_file(&region).expect("the region is there");
            over = 0;
        }
        let checks = kinds[round as usize / 3 % 6];
        // The system's cache survives with the process, whatever has been synced; so does a journal.
        let domain = match round % 3 {
            2 => &["--domain", "file", "--sync", "5ms"][..],
            1 => &["--domain", "file", "--sync", "commit"],
            _ => &["--domain", "memory"],
        };
        let options = [domain, &["--checks", checks]].concat();
        // Instants in recovery, in baseline code, and in optimized code.
        let lines = [0, 1, 40, 333][round as usize % 4];
        let moment = Duration::from_micros(round * round * 7919 % 60_000);
        if let Some(line) = killed(&region, &[DURABLE, "torture"], &options, lines, moment) {
            over = line.parse().expect("the number of an operation");
        }
        let least = i64::to_string(&over);
        let said = on(&region, DURABLE, &["verify", "--operations", &least]);
        assert!(
            said.code == 0 && said.out.contains("all there"),
            "round {round}, {checks}, {over} operations: {} {}",
            said.out,
            said.err
        );
        most = most.max(over);
        if rounds > 100 && round % 100 == 99 {
            println!("{} rounds, {over} operations", round + 1);
        }
    }
    assert!(most > 300, "{most} operations");
}

/// Tasks have states, which are constants of an enumeration: in each run the very ones that were kept, found by their names.
#[test]
fn constants_of_an_enumeration_are_the_same_in_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("tasks.region");
    let mut before = "null";
    for (run, checks) in [
        "quick", "profiled", "unlikely", "quick", "deopt", "unbiased",
    ]
    .into_iter()
    .enumerate()
    {
        let path = region.to_str().unwrap();
        let ran = varve(&format!(
            "run {DURABLE} --durable {path} --domain memory --checks {checks} -- tasks \
             --rounds 4"
        ))
        .well();
        let first = format!("alpha was {before}, one of ours: true\n");
        assert!(ran.out.starts_with(&first), "{checks}: {}", ran.out);
        assert!(!ran.out.contains("another one"), "{checks}: {}", ran.out);
        // Three tasks that move on in each round, in each second one, and in each third one.
        let reached = format!("reached {}\n", 8 * (run + 1));
        assert!(ran.out.ends_with(&reached), "{checks}: {}", ran.out);
        before = ["BUSY", "DONE", "OPEN"][run % 3];
    }
    varve(&["durable", "check", region.to_str().unwrap()]).well();
}

/// Trees that split their leaves: objects become durable in functions that never saw one, and their code is left in the middle.
#[test]
fn trees_are_the_same_whatever_the_checks() {
    let folder = tempfile::tempdir().unwrap();
    let store = "programs/dist/store.wasm";
    let check = ["check", "20000"];
    let volatile = varve(&[&["run", store, "--"][..], &check].concat()).well();
    assert!(
        volatile.out.contains("20000 operations"),
        "{}",
        volatile.out
    );
    for checks in [
        "likely", "unbiased", "unlikely", "deopt", "profiled", "quick",
    ] {
        let region = folder.path().join(checks);
        let path = region.to_str().expect("a path of ours");
        let begin = ["run", store, "--durable", path, "--domain", "memory"];
        let durable = varve(&[&begin[..], &["--checks", checks, "--"], &check].concat()).well();
        assert_eq!(durable.out, volatile.out, "{checks}");
    }
}

#[test]
fn lists_that_survive_are_the_lists_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["marray", "mlist", "fararray", "farray", "flist"] {
        let arguments = [kind, "--operations", "2000", "--size", "50"];
        let volatile = varve(&[&["run", DURABLE, "--"][..], &arguments].concat())
            .well()
            .out;
        let region = folder.path().join(kind);
        for _ in 0..2 {
            let durable = on(&region, DURABLE, &arguments).well().out;
            assert_eq!(durable.replace(" durable", ""), volatile);
        }
    }
}

#[test]
fn a_region_tells_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("accounts.region");
    on(&region, ACCOUNTS, &["5000"]).well();
    let path = region.to_str().unwrap();
    let info = varve(&["durable", "info", path, "--json"]).well().json();
    assert_eq!(info["roots"][0], "accounts");
    assert_eq!(info["closed"], true);
    let check = varve(&["durable", "check", path, "--json"]).well().json();
    assert_eq!(check["objects"], info["objects"]);
    let before = varve(&["durable", "export", path]).well().out;
    let lines: Vec<serde_json::Value> = before
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[0]["root"], "accounts");
    assert_eq!(lines.len() as u64, 1 + info["objects"].as_u64().unwrap());
    assert!(before.contains("\"value\":6000"), "{before}");
    let size = std::fs::metadata(path).unwrap().len();
    varve(&["durable", "compact", path]).well();
    assert!(std::fs::metadata(path).unwrap().len() < size);
    let said = on(&region, ACCOUNTS, &["0"]).well().out;
    assert!(said.contains("-4000 + 6000 after 5000 transfers"), "{said}");
    varve(&["durable", "export", path, "--root", "savings"])
        .refuses(2, &["no root \"savings\"", "accounts"]);
}

#[test]
fn a_region_of_another_program_or_in_use_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("accounts.region");
    on(&region, ACCOUNTS, &["10"]).well();
    let lists = folder.path().join("lists.region");
    on(&lists, DURABLE, &["marray"]).well();
    on(&lists, ACCOUNTS, &["10"]).refuses(2, &["lists.region", "another program"]);
    // It is as it was.
    on(&lists, DURABLE, &["marray"]).well();
    let letter = folder.path().join("letter");
    std::fs::write(&letter, "Dear reader").unwrap();
    on(&letter, ACCOUNTS, &["10"]).refuses(2, &["letter", "no region file"]);
    assert_eq!(std::fs::read(&letter).unwrap(), b"Dear reader");
    let path = region.to_str().unwrap();
    varve(&["run", ACCOUNTS, "--durable", path, "--checks", "none"]).refuses(2, &["--checks none"]);
    varve(&["durable", "check", "nowhere.region"]).refuses(2, &["nowhere.region"]);
    let cut = folder.path().join("cut.region");
    std::fs::write(&cut, &std::fs::read(&region).unwrap()[..300_000]).unwrap();
    on(&cut, ACCOUNTS, &["10"]).refuses(2, &["cut.region", "damaged"]);
    // Who looks for damage is not told to look for damage.
    std::fs::write(&cut, &std::fs::read(&region).unwrap()[..200_000]).unwrap();
    let cut = cut.to_str().unwrap();
    let said = varve(&["durable", "check", cut]);
    assert!(!said.err.contains("durable check"), "{}", said.err);
    said.refuses(2, &["cut.region", "damaged", "remove it"]);
}

/// An emulator has few addresses. A new region takes those of its kind and no more.
#[test]
fn a_region_is_made_where_addresses_are_few() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("few.region");
    let run = format!(
        "ulimit -v {}; exec {} ycsb a --store fhmap --records 20 --operations 20 --domain memory --durable {}",
        100 << 20,
        env!("CARGO_BIN_EXE_varve"),
        region.display()
    );
    let shell = Command::new("sh").args(["-c", &run]).output().unwrap();
    Said::of(shell).well();
}

/// A study whose runs find no room says so of each, and not only that it has no numbers.
#[test]
fn a_study_says_which_of_its_runs_failed() {
    let run = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} study quickcheck --quick --only C8 --keep none --json",
        env!("CARGO_BIN_EXE_varve"),
    );
    let shell = Command::new("sh").args(["-c", &run]).output().unwrap();
    let said = Said::of(shell);
    let all: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(all["failures"].as_array().unwrap().len(), 8);
    assert_eq!(said.code, 1);
    let line = "varve: quickcheck: FHMap counted failed: ";
    assert!(said.err.contains(line), "{}", said.err);
}

/// The study of QuickCheck counts instructions between marks of its own: they are found, and data survive there.
#[test]
fn what_quickcheck_counts_has_its_marks() {
    if !has("valgrind", "valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callgrind");
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--combine-dumps=yes"])
        .arg("--dump-before=*quickcheck::mark::mark*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .args([env!("CARGO_BIN_EXE_varve"), "study", "count", "MList", "1"])
        .output()
        .unwrap();
    Said::of(counted).well();
    let said = std::fs::read_to_string(file).unwrap();
    // Two kinds of checks; before each count, and after the last.
    let parts = said.lines().filter(|l| l.starts_with("part:")).count();
    assert_eq!(parts, 2 * 2 + 1);
}
