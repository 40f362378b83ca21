//! Output: parseable, narrow, plain without a terminal, and the same every time.

use crate::common::{TINY, command, varve};
use std::collections::BTreeSet;
use std::fs;

const TRACE: &str = "traces/sqlite-join.trace";

#[test]
fn json_is_json_everywhere() {
    for words in [
        &["machine", "list", "--json"][..],
        &["machine", "show", "cxl-spr", "--json"],
        &["machine", "check", "--json"],
        &["machine", "calibrate", "haswell-2620v3", "--json"],
        &["machine", "--doctor", "--json"],
        &["policy", "--json"],
        &["policy", "dynamic", "--json"],
        &["plan", "--json"],
        &["workload", "--json"],
        &["workload", "gups", "--json"],
        &["study", "list", "--json"],
        &["trace", "info", TRACE, "--json"],
        &["run", TINY, "--json"],
        &["run", TINY, "--policy", "static", "--json"],
    ] {
        let said = varve(words).well();
        assert!(
            said.json().is_array() || said.json().is_object(),
            "{words:?}"
        );
        assert!(!said.out.contains('\u{1b}'), "{words:?}");
    }
}

#[test]
fn tables_and_texts_stay_within_80_columns_and_have_no_colour() {
    for words in [
        &[][..],
        &["machine", "list"],
        &["machine", "show", "cxl-spr"],
        &["machine", "show", "optane-6230-memory-mode"],
        &["machine", "calibrate", "cxl-spr"],
        &["machine", "--doctor"],
        &["policy"],
        &["policy", "dynamic"],
        &["workload"],
        &["workload", "ycsb"],
        &["study", "list"],
        &["trace", "info", TRACE],
        &["run", TINY],
        &["run", "ycsb:threads=2,requests=2k", "--until", "1"],
        &["run", TINY, "--machine", "cxl-spr"],
    ] {
        let said = varve(words).well();
        for line in said.out.lines() {
            assert!(
                line.chars().count() <= 80,
                "{words:?}: wider than 80 columns: {line}"
            );
        }
        assert!(
            !said.out.contains('\u{1b}'),
            "{words:?}: colours without a terminal"
        );
    }
}

#[test]
fn the_same_command_prints_the_same_twice() {
    for words in [
        &["run", TINY, "--json"][..],
        &["run", TINY, "--machine", "optane-6230", "--seed", "7"],
        &["run", TRACE, "--policy", "random,static", "--jobs", "2"],
    ] {
        let once = varve(words).well().out;
        assert_eq!(once, varve(words).well().out, "{words:?}");
    }
}

#[test]
fn a_seed_makes_a_difference_and_the_number_of_jobs_does_not() {
    let run = |more: &[&str]| {
        varve(&[&["run", TINY, "--policy", "random,static"], more].concat())
            .well()
            .out
    };
    assert_ne!(run(&["--seed", "1"]), run(&["--seed", "2"]));
    assert_eq!(run(&["--jobs", "1"]), run(&["--jobs", "2"]));
}

#[test]
fn a_report_is_a_page_with_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/report");
    varve(&format!(
        "run {TINY} --policy random,static --out {}",
        out.display()
    ))
    .well();
    let names = fs::read_dir(&out).unwrap().map(|e| e.unwrap().path());
    let kinds: BTreeSet<String> = names
        .filter_map(|p| Some(p.extension()?.to_str()?.to_string()))
        .collect();
    assert_eq!(
        kinds,
        ["html", "json", "parquet", "svg"].map(String::from).into(),
        "{kinds:?}"
    );
    let page = fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().unwrap() == "html");
    let page = fs::read_to_string(page.unwrap()).unwrap();
    assert!(page.contains("random") && page.contains("static") && page.contains("<svg"));
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "the page stands alone"
    );
}

/// `--json` carries all that was measured, and the book says what each figure means.
#[test]
fn every_figure_of_a_run_is_in_the_json_and_in_the_book() {
    let all = varve(&["run", "ycsb:threads=2,requests=2k", "--json"])
        .well()
        .json();
    let book = fs::read_to_string(crate::common::home().join("docs/reference.md")).unwrap();
    let runs = all["runs"].as_array().expect("runs");
    let rows = all["table"]["rows"].as_array().expect("rows");
    assert_eq!(runs.len(), rows.len());
    fn walk(prefix: &str, value: &serde_json::Value, book: &str) {
        for (key, value) in value.as_object().expect("an object") {
            let name = format!("{prefix}{key}");
            assert!(
                book.contains(&format!("| `{name}` |")),
                "docs/reference.md lacks {name}"
            );
            match value {
                serde_json::Value::Object(_) => walk(&format!("{name}."), value, book),
                serde_json::Value::Array(list) if list.first().is_some_and(|v| v.is_object()) => {
                    walk(&format!("{name}[]."), &list[0], book);
                }
                _ => {}
            }
        }
    }
    for (run, row) in runs.iter().zip(rows) {
        assert_eq!(run["policy"], row["name"]);
        walk("", run, &book);
        assert!(run["latencies"].as_array().is_some_and(|l| !l.is_empty()));
    }
}

/// The price of speed: DRAM if it is a node, migrated bytes if it is a cache.
#[test]
fn the_frontier_of_speed_and_its_price_is_marked() {
    for (machine, price) in [("cxl-spr", "DRAM"), ("optane-6230-memory-mode", "moved")] {
        let said = varve(&["run", TINY, "--machine", machine]).well().out;
        let says = format!("no other run is better in both time and {price}");
        assert!(said.contains(&says), "{machine}: {said}");
        let marked = said.lines().filter(|l| l.starts_with("◆ ")).count();
        assert!(marked > 0, "{said}");
        let all = varve(&["run", TINY, "--machine", machine, "--json"])
            .well()
            .json();
        let (rows, pair) = (&all["table"]["rows"], &all["table"]["trade_off"]);
        let figure = |row: &serde_json::Value, side: usize| {
            row["values"][pair[side].as_u64().unwrap() as usize]
                .as_f64()
                .unwrap()
        };
        let points: Vec<(f64, f64)> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|r| (figure(r, 0), figure(r, 1)))
            .collect();
        let beaten = |p: &(f64, f64)| points.iter().any(|q| q.0 <= p.0 && q.1 <= p.1 && q != p);
        assert_eq!(
            marked,
            points.iter().filter(|p| !beaten(p)).count(),
            "{said}"
        );
    }
    let one = varve(&["run", TINY, "--policy", "static"]).well().out;
    assert!(!one.contains('◆'), "one run trades nothing: {one}");
}

#[test]
fn colour_is_there_for_those_who_ask() {
    let said = command(&["run", TINY])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&said.stdout).contains('\u{1b}'));
}
