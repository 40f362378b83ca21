//! Programs that do strange things, recorded and placed on this machine: the exit code is theirs, the table is there, nothing is
//! lost, and nothing is left behind.

use crate::common::{Said, can_trace, command, has, typed};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program `data/known/strange.c`, and a folder for what it and its runs leave.
struct Strange {
    folder: tempfile::TempDir,
    program: PathBuf,
}

/// Blocks that the program has in all of its ways, and their bytes together.
const BLOCKS: u64 = 32;
const BYTES: u64 = 4 << 20;

impl Strange {
    /// `None` where programs cannot be traced or compiled here.
    fn new() -> Option<Strange> {
        if !can_trace() || !has("cc", "gcc") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("strange");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/known/strange.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-g", "-fno-inline", "-o"]);
        assert!(
            compiler
                .arg(&program)
                .arg(source)
                .status()
                .unwrap()
                .success()
        );
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Some(Strange { folder, program })
    }

    /// A run of it, of which no temporary file is left.
    #[track_caller]
    fn run(&self, before: &str, words: &[&OsStr]) -> Said {
        let mut line: Vec<OsString> = typed(before).into_iter().map(OsString::from).collect();
        line.extend(["--".into(), self.program.clone().into()]);
        line.extend(words.iter().map(OsString::from));
        let tmp = self.folder.path().join("tmp");
        let output = command(&line).env("TMPDIR", &tmp).output().unwrap();
        let left: Vec<_> = std::fs::read_dir(&tmp).unwrap().flatten().collect();
        assert!(left.is_empty(), "{words:?}: {left:?}");
        Said::of(output)
    }

    /// Recorded, and replayed on a model.
    #[track_caller]
    fn recorded(&self, words: &[&OsStr], code: i32) -> Said {
        let said = self.run("run --machine cxl-spr --plan dram,slow", words);
        assert_eq!(said.code, code, "{words:?}: {}", said.err);
        for word in ["make_table", "slowdown"] {
            assert!(said.out.contains(word), "{words:?}: {}", said.out);
        }
        assert!(!said.out.contains("/tmp/varve-"), "{words:?}: {}", said.out);
        said
    }

    /// The profile that places its objects.
    fn sites(&self) -> String {
        let file = self.folder.path().join("strange.sites");
        let words = ["exits", "0"].map(OsStr::new);
        self.run(&format!("profile -o {}", file.display()), &words)
            .well();
        file.to_str().unwrap().into()
    }

    /// Placed on this machine.
    #[track_caller]
    fn placed(&self, sites: &str, words: &[&OsStr], code: i32) -> Value {
        let before = format!("run --live --sites {sites} --fast 2MiB --nodes fast=0,slow=0 --json");
        let said = self.run(&before, words);
        assert_eq!(said.code, code, "{words:?}: {}", said.err);
        // Behind what the program prints itself.
        let json = said.out.find("{\n").map_or("", |at| &said.out[at..]);
        serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {words:?}: {json}"))
    }
}

fn number(of: &Value, key: &str) -> u64 {
    let number = of[key].as_u64();
    number.unwrap_or_else(|| panic!("{key} in {of}"))
}

/// The site of the 4 MiB: at its peak 2 MiB of them were fast, and the rest was refused.
#[track_caller]
fn all_is_told(of: &Value, blocks: u64) {
    let sites = of["sites"].as_array().unwrap();
    let site = sites
        .iter()
        .find(|site| site["site"].as_str().unwrap().contains("make_table"));
    let site = site.unwrap_or_else(|| panic!("no table in {of}"));
    assert_eq!(number(site, "objects"), blocks, "{of}");
    let (fast, slow) = (
        number(site, "fast_peak_bytes"),
        number(site, "slow_peak_bytes"),
    );
    assert!((BYTES * 2 / 5..=BYTES * 11 / 20).contains(&fast), "{of}");
    assert!(slow >= BYTES * 2 / 5 && fast + slow >= BYTES, "{of}");
    assert!(fast + slow <= BYTES * 3 / 2, "{of}");
    let refused = number(site, "refused_objects");
    assert!(refused >= BLOCKS * 2 / 5 && refused < blocks, "{of}");
    for tier in ["fast", "slow"] {
        let key = format!("{tier}_bytes_at_peak");
        let sum: u64 = sites.iter().map(|site| number(site, &key)).sum();
        assert_eq!(sum, number(&of["all"], &key), "the column adds up: {of}");
        let most = format!("{tier}_peak_bytes");
        assert!(number(&of["all"], &most) >= number(site, &most), "{of}");
    }
}

/// Ways to behave, with their exit codes.
fn in_both_ways(cases: &[(&str, i32)]) {
    let Some(strange) = Strange::new() else {
        return;
    };
    let sites = strange.sites();
    for (line, code) in cases {
        let words: Vec<&OsStr> = typed(line).into_iter().map(OsStr::new).collect();
        strange.recorded(&words, *code);
        all_is_told(&strange.placed(&sites, &words, *code), BLOCKS);
    }
}

#[test]
fn a_program_that_fails_has_its_own_exit_code_and_its_table() {
    in_both_ways(&[("exits 3", 3), ("exits-at-once 4", 4)]);
}

#[test]
fn a_program_that_crashes_has_its_signal_and_its_table() {
    in_both_ways(&[("crashes", 128 + 11), ("aborts", 128 + 6)]);
}

#[test]
fn a_program_without_descriptors_streams_or_memory_has_its_table() {
    in_both_ways(&[("descriptors", 0), ("streams", 0), ("memory", 0)]);
}

#[test]
fn a_program_that_changes_its_root_has_its_table() {
    if crate::common::is_root() {
        in_both_ways(&[("root", 0)]);
    }
}

/// Each time it makes its table anew, and it has it once. Recording starts an emulator each time, which is slow.
#[test]
fn a_program_that_becomes_itself_once_and_often_is_counted_each_time() {
    let Some(strange) = Strange::new() else {
        return;
    };
    let sites = strange.sites();
    for (recorded, placed) in [("1", "1"), ("10", "50")] {
        strange.recorded(&["execs", recorded].map(OsStr::new), 0);
        let live = strange.placed(&sites, &["execs", placed].map(OsStr::new), 0);
        let turns: u64 = placed.parse().unwrap();
        all_is_told(&live, BLOCKS * (turns + 1));
        assert_eq!(number(&live, "processes"), 1);
    }
}

#[test]
fn a_placed_program_that_forks_a_thousand_times_is_one_table() {
    let Some(strange) = Strange::new() else {
        return;
    };
    let live = strange.placed(&strange.sites(), &["forks", "1000"].map(OsStr::new), 0);
    all_is_told(&live, BLOCKS);
    assert_eq!(number(&live, "processes"), 1001);
    assert_eq!(live["notes"], serde_json::json!([]));
}

#[test]
fn a_recorded_program_that_forks_often_is_one_table() {
    let Some(strange) = Strange::new() else {
        return;
    };
    let said = strange.recorded(&["forks", "200"].map(OsStr::new), 0);
    assert!(said.err.lines().count() < 10, "{}", said.err);
}

#[test]
fn a_program_that_prints_much_loses_none_of_it() {
    let Some(strange) = Strange::new() else {
        return;
    };
    let sites = strange.sites();
    let words = ["prints", "156"].map(OsStr::new);
    let before = format!("run --live --sites {sites} --fast 2MiB --nodes fast=0,slow=0");
    let live = strange.run(&before, &words).well();
    assert_eq!(live.out.len(), 156 << 20);
    assert!(live.err.contains("make_table"), "{}", live.err);
    let recorded = strange
        .run("run --machine cxl-spr --plan dram,slow", &words)
        .well();
    let lines = recorded.out.lines().chain(recorded.err.lines());
    let bytes: usize = lines
        .filter(|line| line.starts_with("xxx"))
        .map(|line| line.len() + 1)
        .sum();
    assert_eq!(bytes, 156 << 20);
}

#[test]
fn names_need_not_be_utf8() {
    let Some(strange) = Strange::new() else {
        return;
    };
    let name = OsStr::from_bytes(b"strange-\xff\xfe-name");
    let folder = strange.folder.path().join(name);
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join(name);
    let words = [OsStr::new("names"), file.as_os_str()];
    let sites = strange.sites();
    strange.recorded(&words, 0);
    all_is_told(&strange.placed(&sites, &words, 0), BLOCKS);
}
