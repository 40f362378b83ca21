//! Parts of a run in place of all of it: windows that stand for the whole, one part that the user chose.

use crate::common::{Said, can_trace, has, varve};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rounds of updates at random, of a scan, and of work without memory: a window that leaves one of them out is wrong by much.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    const size_t words = 2 << 20;
    uint64_t *table = calloc(words, 8), state = 1, sum = 0;
    for (size_t i = 0; i < words; i++) table[i] = i;
    for (int round = 0; round < 24; round++) {
        for (int i = 0; i < 100000; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            table[state % words] += state;
        }
        for (size_t i = 0; i < words / 8; i++) sum += table[i];
        for (int i = 0; i < 300000; i++) sum = sum * 31 + i;
    }
    printf("%llu\n", (unsigned long long)(sum + table[5]));
    return 0;
}
"#;

fn compiled(folder: &Path) -> Option<PathBuf> {
    if !can_trace() || !has("gcc", "gcc") {
        return None;
    }
    let (source, program) = (folder.join("rounds.c"), folder.join("rounds"));
    std::fs::write(&source, PROGRAM).unwrap();
    let done = Command::new("gcc")
        .args(["-O1", "-o"])
        .args([&program, &source])
        .status();
    assert!(done.is_ok_and(|status| status.success()), "gcc");
    Some(program)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn recorded(folder: &Path, name: &str, options: &[&str], program: &Path) -> PathBuf {
    let trace = folder.join(name);
    let begin = ["trace", "-o", text(&trace)];
    varve(&[&begin[..], options, &["--", text(program)]].concat()).well();
    trace
}

fn run(trace: &Path) -> Value {
    let plans = ["--plan", "dram,slow", "--machine", "cxl-spr", "--json"];
    let said: Said = varve(&[&["run", text(trace)], &plans[..]].concat());
    said.well().json()["runs"].clone()
}

#[test]
fn windows_stand_for_the_whole_run_within_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else {
        return;
    };
    let trace = recorded(folder.path(), "whole.trace", &[], &program);
    let whole = run(&trace);
    let info = varve(&["trace", "info", text(&trace), "--json"]);
    let instructions = info.well().json()["instructions"].as_f64().unwrap();
    let trace = recorded(folder.path(), "part.trace", &["--sample", "10%"], &program);
    let part = run(&trace);
    for (whole, part) in whole
        .as_array()
        .unwrap()
        .iter()
        .zip(part.as_array().unwrap())
    {
        let number = |run: &Value, key: &str| run[key].as_f64().unwrap();
        let sampled = &part["sampled"];
        assert!(sampled["windows"].as_u64().unwrap() > 5, "{sampled}");
        let share = sampled["share"].as_f64().unwrap();
        assert!((0.04..0.25).contains(&share), "{sampled}");
        // All instructions are known of, whether recorded or not.
        let known = number(part, "instructions") / instructions;
        assert!((known - 1.0).abs() < 0.01, "{part}");
        // A sample stands for the whole run, and a recording of it may have a steady state.
        let seconds = match &whole["steady"]["whole_seconds"] {
            Value::Null => number(whole, "seconds"),
            seconds => seconds.as_f64().unwrap(),
        };
        let ratio = number(part, "seconds") / seconds;
        // Twice what it says in 95 of 100 cases: this is a test of every day.
        let error = 2.0 * sampled["error"].as_f64().unwrap() + 0.05;
        assert!((ratio - 1.0).abs() < error, "{ratio} for {sampled}");
        let pages = |run: &Value| number(run, "fast_bytes") + number(run, "slow_bytes");
        assert!((pages(part) / pages(whole) - 1.0).abs() < 0.1, "{part}");
    }
    let info = varve(&["trace", "info", text(&trace)]);
    assert!(info.well().out.contains("of the run was recorded"));
    // It cannot stand for itself beside another program.
    let group = folder.path().join("group.toml");
    let one = format!("[[program]]\nname = 'a'\ntrace = '{}'\n", text(&trace));
    std::fs::write(&group, one.clone() + &one.replace("'a'", "'b'")).unwrap();
    let refused = varve(&["jobs", "run", text(&group), "--machine", "cxl-spr"]);
    assert!(refused.code != 0, "{}", refused.out);
}

#[test]
fn one_part_is_as_long_as_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else {
        return;
    };
    let options = ["--skip", "40M", "--for", "10M"];
    let trace = recorded(folder.path(), "part.trace", &options, &program);
    for run in run(&trace).as_array().unwrap() {
        let instructions = run["instructions"].as_f64().unwrap();
        assert!((9e6..13e6).contains(&instructions), "{run}");
        assert!(run["sampled"].is_null(), "it stands for itself");
    }
    let twice = ["run", "--sample", "1%", "--marked", "--", text(&program)];
    let refused = varve(&twice);
    assert!(
        refused.err.contains("cannot be used with"),
        "{}",
        refused.err
    );
    varve(&["run", text(&trace), "--sample", "1%"]).refuses(2, &["is a recording"]);
    let refused = varve(&["trace", "--sample", "200%", "--", text(&program)]);
    assert!(refused.err.contains("0.001% to 90%"), "{}", refused.err);
}

#[test]
fn a_run_that_is_too_short_for_a_sample_says_so() {
    let folder = tempfile::tempdir().unwrap();
    if !can_trace() || !has("true", "coreutils") {
        return;
    }
    let trace = folder.path().join("short.trace");
    let options = format!("trace --sample 0.1% -o {} -- true", trace.display());
    varve(&options).well();
    varve(&["run", text(&trace)]).refuses(2, &["no window of the sample fell into the run"]);
}

/// Half of these programs begin in the middle of a window. They record no more of it than others do.
#[test]
fn programs_that_come_in_the_middle_of_a_window_have_their_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    if !can_trace() || !has("seq", "coreutils") {
        return;
    }
    let trace = folder.path().join("many.trace");
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do seq 1 20000 >/dev/null; done";
    let options = ["trace", "--sample", "50%", "-o", text(&trace), "--"];
    varve(&[&options[..], &["sh", "-c", many]].concat()).well();
    for run in run(&trace).as_array().unwrap() {
        // A fifth of each window only warms caches.
        let share = run["sampled"]["share"].as_f64().unwrap();
        assert!((0.3..0.5).contains(&share), "{run}");
        // Twenty million instructions take no second on any machine.
        assert!(run["seconds"].as_f64().unwrap() < 1.0, "{run}");
    }
}

/// A sample ends with its extrapolation: without that, it represents nothing.
#[test]
fn a_sample_that_was_cut_off_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else {
        return;
    };
    let trace = recorded(folder.path(), "part.trace", &["--sample", "10%"], &program);
    let bytes = std::fs::read(&trace).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() / 2]).unwrap();
    varve(&["run", text(&trace)]).refuses(2, &["a sample that was cut off", "record it again"]);
    varve(&["trace", "info", text(&trace)]).well();
}
