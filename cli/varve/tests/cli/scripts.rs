//! Programs in Python: their memory is of the lines that asked for it. And what programs are called.

use crate::common::{can_trace, has, typed, varve};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use varve_sites::SitesFile;
use varve_sites::native::{Key, Profile, names};

/// Debian's own: others on PATH may be scripts that start one.
const PYTHON: &str = "/usr/bin/python3";

/// Can the lines of Python programs be seen here? Otherwise says why not.
fn can_see_lines() -> bool {
    let newer = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))";
    let python = Command::new(PYTHON).args(["-c", newer]).status();
    let is_there = python.is_ok_and(|status| status.success());
    if !is_there {
        varve_skip::skip!("needs python3, 3.11 or later (Debian: apt install python3)");
    }
    is_there && can_trace()
}

/// `data/known/lines.py`.
fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/known/lines.py")
}

/// The profile of a script.
fn profile(script: &Path, words: &str) -> Profile {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("of.sites");
    let (file, script) = (file.to_str().unwrap(), script.to_str().unwrap());
    let before = ["profile", "-o", file, "--", PYTHON, script];
    varve(&[&before[..], &typed(words)].concat()).well();
    Profile::parse(file, &std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The sites of at least a megabyte that the script's own lines ask for, by name.
fn large(profile: &Profile) -> Vec<(String, &Key)> {
    let large = profile
        .sites
        .iter()
        .filter(|site| site.counts.peak_bytes >= 1 << 20);
    let keys: Vec<&Key> = large.map(|site| &site.key).collect();
    let all: Vec<Key> = keys.iter().map(|&key| key.clone()).collect();
    let mut named: Vec<_> = names::names(&all).into_iter().zip(keys).collect();
    named.retain(|(name, _)| name.contains("lines.py"));
    named.sort();
    named
}

fn misses(answer: &Value, words: &[&str]) -> f64 {
    let table = &answer["details"][0];
    let place = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .position(|column| column["name"] == "misses");
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| {
        let name = row["name"].as_str().unwrap();
        words.iter().all(|word| name.contains(word))
    });
    let row = row.unwrap_or_else(|| panic!("no {words:?} in {rows:#?}"));
    row["values"][place.unwrap()].as_f64().unwrap()
}

/// One function makes both; the interpreter's own calls are the same, and so is the line that asks for memory.
#[test]
fn the_hot_line_of_a_script_is_told_from_the_cold_ones() {
    if !can_see_lines() {
        return;
    }
    let options = "run --machine optane-6230 --plan dram,slow,hot-sites --fast 66MiB --json --";
    let script = script();
    let program = [PYTHON, script.to_str().unwrap(), "64", "400000"];
    let answer = varve(&[&typed(options)[..], &program].concat())
        .well()
        .json();
    let hot = misses(&answer, &["make (lines.py:6)", "lines.py:19"]);
    let cold = misses(&answer, &["make (lines.py:6)", "lines.py:17"]);
    assert!(hot > 100_000.0, "{hot}");
    assert!(cold < 0.1 * hot, "{cold} of {hot}");
    // Within a line, the copy that it makes is another site than the array that is written; and so is each list.
    assert!(misses(&answer, &["lines.py:18 > "]) < hot && misses(&answer, &["lines.py:21"]) < hot);
}

#[test]
fn two_runs_of_a_script_have_the_same_sites_and_another_script_has_others() {
    if !can_see_lines() {
        return;
    }
    let script = script();
    let (first, second) = (profile(&script, "8 1000"), profile(&script, "16 1000"));
    let (one, other) = (large(&first), large(&second));
    assert!(one.len() >= 4, "{one:?}");
    assert_eq!(one, other);
    // As builds of a program are: the same lines of another text are other sites.
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("lines.py");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&changed, format!("{text}print()\n")).unwrap();
    let changed = profile(&changed, "8 1000");
    let changed = large(&changed);
    assert_eq!(one.len(), changed.len());
    for ((name, key), (same_name, other_key)) in one.iter().zip(&changed) {
        assert_eq!(name, same_name);
        assert_ne!(key, other_key, "{name}");
    }
    // Elsewhere, the same text is the same program.
    let moved = folder.path().join("moved").join("lines.py");
    std::fs::create_dir(moved.parent().unwrap()).unwrap();
    std::fs::copy(&script, &moved).unwrap();
    assert_eq!(large(&profile(&moved, "8 1000")), one);
}

/// Threads wait for one another's lock, and each has lines of its own.
#[test]
fn each_thread_of_a_script_is_in_its_own_lines() {
    if !can_see_lines() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("threads.py");
    let text = "\
import threading
kept = []
def one():
    for _ in range(40):
        kept.append(bytearray(50_000))
def other():
    for _ in range(40):
        kept.append(bytearray(90_000))
threads = [threading.Thread(target=f) for f in (one, other)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";
    std::fs::write(&script, text).unwrap();
    let trace = folder.path().join("threads.trace");
    let (trace, script) = (trace.to_str().unwrap(), script.to_str().unwrap());
    varve(&["trace", "-o", trace, "--", PYTHON, script]).well();
    let info = varve(&["trace", "info", trace, "--json"]).well().json();
    let sites = info["sites"].as_array().unwrap();
    for (line, bytes) in [
        ("one (threads.py:5)", 50_001),
        ("other (threads.py:8)", 90_001),
    ] {
        let named = |site: &&Value| {
            site["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(line))
        };
        let site = sites
            .iter()
            .find(named)
            .unwrap_or_else(|| panic!("no {line} in {sites:#?}"));
        assert_eq!(site["allocations"], 40, "{line}");
        assert_eq!(site["bytes"], 40 * bytes, "{line}");
    }
}

/// Debian's redis-server is a link to redis-check-rdb.
#[test]
fn a_program_is_called_what_it_was_started_as_and_its_sites_stay_the_same() {
    if !can_trace() || !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/known/two_arrays.c");
    // Without debug information, sites are named by file and function.
    let compiled = Command::new("cc")
        .args(["-O1", "-fno-inline", "-Wl,--build-id", "-o", &path("check")])
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
    std::os::unix::fs::symlink("check", path("server")).unwrap();
    let mut keys = Vec::new();
    for name in ["check", "server"] {
        let sites = path(&format!("{name}.sites"));
        varve(&["profile", "-o", &sites, "--", &path(name), "4", "1000"]).well();
        let profile = Profile::parse(&sites, &std::fs::read_to_string(&sites).unwrap()).unwrap();
        assert_eq!(profile.program, name);
        let of_program: BTreeSet<Key> = profile
            .sites
            .iter()
            .map(|site| site.key.clone())
            .filter(|key| names::name(key).starts_with(&format!("{name}!")))
            .collect();
        assert!(!of_program.is_empty(), "{name}");
        keys.push(of_program);
    }
    assert_eq!(keys[0], keys[1]);
}
