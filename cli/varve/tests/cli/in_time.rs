//! Long runs, which are answered by their beginning and by windows.

use crate::common::{command, typed, varve};
use crate::known::program;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PLANS: &str = "--machine optane-6230 --plan dram,slow,hot-sites --json";

fn answer(trace: &Path, options: &str) -> Value {
    let words = format!("run {} {PLANS} {options}", trace.display());
    varve(&words).well().json()
}

fn seconds(answer: &Value, plan: &str) -> f64 {
    let runs = answer["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["plan"] == plan).unwrap();
    run["seconds"].as_f64().unwrap()
}

/// The error that is told holds, of the time and of what slow memory costs, and what is not replayed changes no choice.
#[test]
fn windows_of_a_long_run_tell_what_all_of_it_does() {
    let Some((folder, program)) = program("steady") else {
        return;
    };
    let trace = folder.path().join("long.trace");
    let (out, words) = (trace.to_str().unwrap(), program.to_str().unwrap());
    let record = ["trace", "-o", out, "--", words, "130", "40", "6000000"];
    varve(&record[..]).well();
    let (whole, windows) = (answer(&trace, "--whole"), answer(&trace, ""));
    for plan in ["dram", "slow", "hot-sites"] {
        let runs = windows["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["plan"] == plan).unwrap();
        let told = run["sampled"]["error"].as_f64().unwrap();
        let apart = (seconds(&windows, plan) / seconds(&whole, plan) - 1.0).abs();
        assert!(apart <= told.max(0.01), "{plan}: {apart}, told {told}");
        assert!(told < 0.1, "{plan}: {told}");
    }
    let all = &whole["runs"][0];
    assert!(all.get("sampled").is_none(), "{}", all["sampled"]);
    let slow = |answer| seconds(answer, "slow") / seconds(answer, "dram");
    assert!((slow(&windows) / slow(&whole) - 1.0).abs() < 0.02);
    assert!(seconds(&windows, "hot-sites") < 1.05 * seconds(&windows, "dram"));
}

/// A service goes on: there is an answer of what it did so far, and another when it is told to end.
#[test]
fn a_program_that_does_not_end_has_an_answer() {
    let Some((folder, program)) = program("steady") else {
        return;
    };
    let rooms = folder.path().join("temporary");
    std::fs::create_dir(&rooms).unwrap();
    let begin = typed("run --machine optane-6230 --plan dram,slow --");
    let words = [program.to_str().unwrap(), "30", "20", "100000000000"];
    let mut child = command(&[&begin[..], &words].concat())
        .env("TMPDIR", &rooms)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let title = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("so far"));
    assert!(title.is_some(), "no answer");
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(killed.unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let titles = rest.iter().filter(|line| line.contains(" on optane-6230"));
    assert_eq!(titles.count(), 1, "{rest:#?}");
    let status = child.wait().unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("s for each second of its own"), "{said}");
    let left = std::fs::read_dir(&rooms).unwrap().count();
    assert_eq!(left, 0, "files are left");
}
