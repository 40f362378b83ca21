//! Native programs, object by object: compared on a model, profiled, shown, placed on this machine, refused.

use crate::common::{Said, can_trace, varve};
use std::path::{Path, PathBuf};

const TRACE: &str = "traces/sqlite-join.trace";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A profile of the recorded program.
fn profiled(folder: &Path) -> PathBuf {
    let file = folder.join("sqlite.sites");
    varve(&[
        "profile",
        TRACE,
        "-o",
        text(&file),
        "--machine",
        "optane-6230",
    ])
    .well();
    file
}

#[test]
fn plans_for_objects_and_pages_stand_in_one_table() {
    let said = varve(&["run", TRACE, "--machine", "optane-6230", "--json"]);
    let json = said.well().json();
    let runs = json["runs"].as_array().unwrap();
    let seconds = |plan: &str| {
        let run = runs.iter().find(|r| r["plan"] == plan);
        let run = run.unwrap_or_else(|| panic!("no {plan}"));
        run["seconds"].as_f64().unwrap()
    };
    let names = [
        "dram",
        "slow",
        "first-touch",
        "interleave",
        "hotset",
        "hot-sites",
        "knapsack",
        "cgz-f",
        "cgz-d",
        "oracle",
    ];
    assert_eq!(runs.len(), names.len());
    for name in names {
        assert!(seconds("dram") <= seconds(name), "{name}");
    }
    for run in runs {
        let bytes = |key: &str| {
            run[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} in {run}"))
        };
        let all = bytes("fast_bytes") + bytes("slow_bytes");
        assert!(all > 0);
        if !["dram", "slow"].contains(&run["plan"].as_str().unwrap()) {
            assert!(bytes("fast_bytes") <= all * 27 / 100, "{run}");
        }
        bytes("slow_read_bytes");
    }
    let table = varve(&[
        "run",
        TRACE,
        "--machine",
        "optane-6230",
        "--plan",
        "dram,slow,knapsack",
    ]);
    let table = table.well().out;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    for word in ["Allocation sites", "slowdown", "--fast 25% is", "knapsack"] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
}

#[test]
fn more_fast_memory_is_a_row_more() {
    let words = [
        "--plan",
        "dram,hot-sites",
        "--fast",
        "10%,50%,100%",
        "--json",
    ];
    let json = varve(&[&["run", TRACE, "--machine", "optane-6230"], &words[..]].concat());
    let json = json.well().json();
    let runs = json["runs"].as_array().unwrap();
    let name = |run: &serde_json::Value| run["plan"].as_str().unwrap().to_string();
    let names: Vec<String> = runs.iter().map(name).collect();
    let rows = [
        "dram",
        "hot-sites at 10%",
        "hot-sites at 50%",
        "hot-sites at 100%",
    ];
    assert_eq!(names, rows);
    let slow = |i: usize| runs[i]["slow_share"].as_f64().unwrap();
    assert!(
        slow(1) > slow(2) && slow(2) > slow(3),
        "{} {} {}",
        slow(1),
        slow(2),
        slow(3)
    );
}

#[test]
fn a_profile_is_made_shown_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let table = varve(&["sites", text(&file), "--fast", "10%"]).well().out;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    assert!(
        table.contains("knapsack") && table.contains("of fast memory of"),
        "{table}"
    );
    let json = varve(&["sites", text(&file), "--fast", "10%", "--json"])
        .well()
        .json();
    let sites = json["sites"].as_array().unwrap();
    let sum = |key: &str| -> u64 {
        sites
            .iter()
            .map(|s| s["fast_bytes"][key].as_u64().unwrap())
            .sum()
    };
    assert!(sum("knapsack") > 0 && sum("knapsack") <= json["budget_bytes"].as_u64().unwrap());
    let words = [
        "run",
        TRACE,
        "--machine",
        "optane-6230",
        "--plan",
        "dram,knapsack",
        "--json",
    ];
    let own = varve(&words).well().json();
    let by_profile = varve(&[&words[..], &["--sites", text(&file)]].concat())
        .well()
        .json();
    // It is a profile of this very run.
    assert_eq!(own["runs"][1]["seconds"], by_profile["runs"][1]["seconds"]);
    // Twice as much of everything, and the same sites.
    varve(&[
        "profile",
        TRACE,
        "-o",
        text(&file),
        "--machine",
        "optane-6230",
        "--add",
    ])
    .well();
    let twice = varve(&["sites", text(&file), "--json"]).well().json();
    assert_eq!(twice["sites"].as_array().unwrap().len(), sites.len());
    assert_eq!(
        twice["sites"][0]["objects"].as_u64().unwrap(),
        2 * sites[0]["objects"].as_u64().unwrap()
    );
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let cut = folder.path().join("cut.sites");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let other = folder.path().join("other.sites");
    std::fs::write(&other, whole.replace("\"offset\": ", "\"offset\": 9")).unwrap();
    let refused: &[(&[&str], &[&str])] = &[
        (
            &["run", TRACE, "--plan", "knapsak"],
            &["did you mean `knapsack`?"],
        ),
        (
            &["run", TRACE, "--sites", text(&cut)],
            &["cut.sites", "damaged"],
        ),
        (
            &["run", TRACE, "--plan", "dram", "--sites", text(&other)],
            &["does not know who allocated", "another program"],
        ),
        (
            &["run", TRACE, "--sites", "none.sites"],
            &["none.sites", "varve profile"],
        ),
        (
            &[
                "run",
                TRACE,
                "--plan",
                "dram",
                "--machine",
                "haswell-2620v3",
            ],
            &["haswell-2620v3", "no slow memory"],
        ),
        (
            &["run", TRACE, "--plan", "dram", "--policy", "slow"],
            &["--plan"],
        ),
        (&["profile", "-o", "x.sites"], &["nothing to profile"]),
        (
            &["profile", TRACE, "-o", "x.sites", "--nursery", "1MiB"],
            &["--nursery"],
        ),
        (
            &["profile", TRACE, "-o", text(&file)],
            &["there already", "--add"],
        ),
        (
            &[
                "profile",
                TRACE,
                "-o",
                "x.sites",
                "--machine",
                "optane-6230-memory-mode",
            ],
            &["slow memory"],
        ),
        (
            &["sites", text(&file), "--fast", "10%,20%"],
            &["one budget"],
        ),
        (
            &["sites", text(&file), "--heuristic", "hotset"],
            &["does not go by sites"],
        ),
        (
            &["run", "--live", "--sites", text(&file), "--", "true"],
            &["--fast 8GiB"],
        ),
        (
            &[
                "run",
                "--live",
                "--sites",
                text(&file),
                "--fast",
                "25%",
                "--",
                "true",
            ],
            &["give a size"],
        ),
        (
            &[
                "run",
                "--live",
                "--sites",
                text(&file),
                "--fast",
                "1MiB",
                "--plan",
                "hotset",
                "--",
                "true",
            ],
            &["hotset"],
        ),
    ];
    for (words, said) in refused {
        varve(words).refuses(2, said);
    }
    assert!(!Path::new("x.sites").exists());
}

#[test]
fn a_command_is_placed_on_this_machine_by_its_profile() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sort.sites");
    let words = folder.path().join("words");
    let text_of: String = (0..20_000u32)
        .map(|i| format!("{}\n", i.wrapping_mul(40_503)))
        .collect();
    std::fs::write(&words, text_of).unwrap();
    varve(&["profile", "-o", text(&file), "--", "sort", text(&words)]).well();
    // One node is enough to see that objects have two arenas.
    let live = |command: &[&str]| -> Said {
        let run = [
            "run",
            "--live",
            "--nodes",
            "fast=0,slow=0",
            "--sites",
            text(&file),
            "--fast",
        ];
        varve(&[&run[..], &["64MiB", "--"], command].concat())
    };
    let plain = varve(&[
        "run",
        "--live",
        "--nodes",
        "fast=0,slow=0",
        "--sites",
        text(&file),
        "--fast",
        "64MiB",
        "--json",
        "--",
        "sort",
        "-o",
        "/dev/null",
        text(&words),
    ]);
    let json = plain.well().json();
    let sites = json["sites"].as_array().unwrap();
    assert!(!sites.is_empty(), "{json}");
    assert_eq!(json["exit_code"], 0);
    let said = live(&["sort", text(&words)]).well();
    assert_eq!(
        said.out.lines().count(),
        20_000,
        "the program's own output is whole"
    );
    assert!(
        said.err.contains("Objects by allocation site"),
        "{}",
        said.err
    );
    let failed = live(&["sort", "/nowhere"]);
    assert_eq!(failed.code, 2, "the program's own exit code");
}

#[test]
fn files_of_other_tools_become_profiles() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("raw");
    let lines = [
        "v 10400 3",
        "x 7 /none/p",
        "X ./p -x",
        "I 1000 5e298f",
        "m 1 -",
        "m 1 x 1000 0 9b0 1000 5c1",
        "t 2133 0",
        "t 2294 1",
        "+ 100 2 aa0",
        "+ 40 2 bb0",
        "- aa0",
    ];
    std::fs::write(&raw, lines.join("\n") + "\n").unwrap();
    let file = folder.path().join("p.sites");
    let said = varve(&[
        "profile",
        "--from",
        "heaptrack",
        text(&raw),
        "-o",
        text(&file),
    ])
    .well();
    assert!(
        said.err.contains("note:"),
        "what heaptrack does not know is said: {}",
        said.err
    );
    let json = varve(&["sites", text(&file), "--json"]).well().json();
    let sites = json["sites"].as_array().unwrap();
    assert_eq!((sites.len(), sites[0]["bytes"].as_u64()), (1, Some(0x140)));
    let bad = folder.path().join("bad");
    std::fs::write(&bad, "v 10400 3\n+ zz\n").unwrap();
    let out = folder.path().join("bad.sites");
    let words = [
        "profile",
        "--from",
        "heaptrack",
        text(&bad),
        "-o",
        text(&out),
    ];
    varve(&words).refuses(2, &["bad", "bad:2: "]);
    assert!(!out.exists());
}
