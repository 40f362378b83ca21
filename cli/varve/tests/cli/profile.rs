//! Site profiles: made, shown, used, refused.

use crate::common::{Said, home, typed, varve};
use std::path::{Path, PathBuf};

const GRAPH: &str = "programs/dist/graph.wasm";
const SMALL: [&str; 5] = ["pagerank", "--scale", "7", "--iterations", "4"];

/// A profile of the graph program on a small graph.
fn profiled(folder: &Path) -> PathBuf {
    let file = folder.join("graph.sites");
    profile(&file, &["--nursery", "256KiB"], &SMALL).well();
    file
}

fn profile(file: &Path, options: &[&str], arguments: &[&str]) -> Said {
    let words = ["profile", GRAPH, "-o", file.to_str().unwrap()];
    varve(&[&words[..], options, &["--"], arguments].concat())
}

fn sites(file: &Path, options: &[&str]) -> Said {
    varve(&[&["sites", file.to_str().unwrap()], options].concat())
}

fn run(program: &str, file: &Path, options: &[&str], arguments: &[&str]) -> Said {
    let words = ["run", program, "--profile", file.to_str().unwrap()];
    varve(&[&words[..], options, &["--"], arguments].concat())
}

#[test]
fn a_program_is_profiled_shown_and_run_by_what_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.sites");
    let plain = varve(&[&["run", GRAPH, "--"], &SMALL[..]].concat()).well();
    let said = profile(&file, &["--nursery", "256KiB"], &SMALL).well();
    assert_eq!(
        said.out, plain.out,
        "the program prints what it always prints"
    );
    assert!(
        said.err.contains("allocation sites with objects"),
        "{}",
        said.err
    );

    let table = sites(&file, &[]).well().out;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    for word in ["objects", "(%)", "v.g.", "cgz-f", "knapsack", "--all"] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
    let known = sites(&file, &["--json"]).well().json();
    let loaded = known["sites"].as_array().expect("a list").iter();
    let loaded: Vec<_> = loaded
        .filter(|s| s["function"] == "varve.graph.Engine::run")
        .collect();
    assert!(!loaded.is_empty());
    for site in loaded {
        let line = site["line"].as_str().expect("the module has a map");
        assert!(line.contains(".java:"), "{line}");
    }
    let all = sites(&file, &["--all", "--by", "bytes"]).well().out;
    assert!(all.lines().count() > table.lines().count());
    let one = sites(&file, &["--heuristic", "cgz-f:threshold=1000000"])
        .well()
        .out;
    assert!(one.contains("0 sites,   0.0 % of what survived"), "{one}");

    // Another input than the profile's; hot sites in DRAM, which is more than none and less than all.
    let arguments = ["pagerank", "--scale", "9", "--iterations", "4"];
    let options = typed("--nursery 256KiB --machine optane-6242 --plan dram,kg-n,cgz-f --json");
    let json = run(GRAPH, &file, &options, &arguments).well().json();
    let bytes = |plan: &str| {
        let runs = json["runs"].as_array().unwrap();
        let run = runs.iter().find(|r| r["plan"] == plan).unwrap();
        run["fast_bytes"].as_u64().unwrap()
    };
    let [dram, nursery, hot] = ["dram", "kg-n", "cgz-f"].map(bytes);
    assert!(nursery < hot && hot < dram, "{nursery} {hot} {dram}");

    // The same without a model.
    let said = run(
        GRAPH,
        &file,
        &["--plan", "cgz-f", "--gc-stats", "--nursery", "256KiB"],
        &arguments,
    )
    .well();
    let space = |name: &str| {
        let line = said.err.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace()
            .nth(3)
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    assert!(space("mature 0") + space("large 0") > 0.0, "{}", said.err);
}

#[test]
fn json_has_all_of_each_site() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let json = sites(&file, &["--json", "--heuristic", "cgz-f,cgz-f:threshold=4"])
        .well()
        .json();
    assert_eq!(json["program"], "graph.wasm");
    let all = json["sites"].as_array().unwrap();
    let vertex = all
        .iter()
        .find(|s| s["type"] == "varve.graph.Vertex")
        .unwrap();
    assert_eq!(vertex["function"], "varve.graph.Engine::run");
    // 128 vertices, loaded in each of 4 iterations.
    assert_eq!(vertex["objects"], 4 * 128);
    assert!(vertex["reads"].as_u64() > Some(0) && vertex["offset"].as_u64() > Some(0));
    // Survivors by how often they were accessed from then on: never, once, 2 to 3 times, and so on.
    let accesses = vertex["accesses"].as_array().expect("a list");
    let counted: u64 = accesses.iter().filter_map(|n| n.as_u64()).sum();
    assert_eq!(vertex["survivors"].as_u64(), Some(counted));
    assert!(vertex["memory"]["cgz-f"].is_string());
    assert!(vertex["memory"]["cgz-f:threshold=4"].is_string());
}

/// The program prints how long it took, for one thing: into an array of characters, whose accesses count.
#[test]
fn the_same_input_gives_the_same_profile() {
    let folder = tempfile::tempdir().unwrap();
    let made = ["one.sites", "two.sites"].map(|name| {
        let file = folder.path().join(name);
        let large = ["pagerank", "--scale", "11"];
        profile(&file, &["--nursery", "256KiB"], &large).well();
        std::fs::read_to_string(file).unwrap()
    });
    assert!(made[0] == made[1]);
}

#[test]
fn runs_add_up_when_they_are_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let objects = |said: Said| {
        let json = said.well().json();
        let all = json["sites"].as_array().unwrap().clone();
        let vertex = all
            .iter()
            .find(|s| s["type"] == "varve.graph.Vertex")
            .unwrap();
        vertex["objects"].as_u64().unwrap()
    };
    let once = objects(sites(&file, &["--json"]));
    profile(&file, &[], &SMALL).refuses(2, &["graph.sites", "--add"]);
    profile(&file, &["--add"], &SMALL).well();
    assert_eq!(objects(sites(&file, &["--json"])), 2 * once);
}

#[test]
fn without_a_map_that_can_be_read_there_are_no_lines_and_nothing_else_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("trees.wasm");
    let beside = folder.path().join("trees.wasm.map");
    std::fs::copy(home().join("programs/dist/trees.wasm"), &program).unwrap();
    for (number, map) in [None, Some("{\"version\": 3"), Some("")]
        .into_iter()
        .enumerate()
    {
        if let Some(map) = map {
            std::fs::write(&beside, map).unwrap();
        }
        let file = folder.path().join(format!("{number}.sites"));
        let (program, file) = (program.to_str().unwrap(), file.to_str().unwrap());
        let said = varve(&["profile", program, "-o", file, "--", "5"]).well();
        let told = said.err.contains("trees.wasm.map: not a source map");
        assert_eq!(told, map.is_some(), "{}", said.err);
        let sites = varve(&["sites", file, "--json"]).well().json();
        let sites = sites["sites"].as_array().expect("a list").clone();
        assert!(sites.len() > 50 && sites.iter().all(|s| s["line"].is_null()));
    }
}

#[test]
fn what_the_profile_does_not_know_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.sites");
    profile(&file, &[], &["components", "--scale", "6"]).well();
    let said = run(
        GRAPH,
        &file,
        &["--plan", "cgz-f"],
        &["als", "--users", "50"],
    )
    .well();
    let line = said
        .err
        .lines()
        .find(|l| l.contains("does not know"))
        .unwrap();
    assert!(
        line.contains("allocation sites in the code that ran"),
        "{line}"
    );
    let said = run(
        GRAPH,
        &file,
        &["--plan", "cgz-f"],
        &["components", "--scale", "6"],
    )
    .well();
    assert!(!said.err.contains("does not know"), "{}", said.err);
}

#[test]
fn profiles_that_will_not_do_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    let text = std::fs::read_to_string(&file).unwrap();
    let with = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let cut = with("cut.sites", &text[..text.len() / 2]);
    let later = with(
        "later.sites",
        &text.replace("\"version\": 2", "\"version\": 9"),
    );
    let other = with("other.sites", "graph");
    let none = folder.path().join("none.sites");
    for (file, words) in [
        (&cut, ["cut.sites", "damaged site profile"]),
        (&later, ["later.sites", "version 9"]),
        (&other, ["other.sites", "not a site profile"]),
        (&none, ["none.sites", "varve profile"]),
    ] {
        run(GRAPH, file, &["--plan", "cgz-f"], &SMALL).refuses(2, &words);
        sites(file, &[]).refuses(2, &words);
        if file != &none {
            profile(file, &["--add"], &SMALL).refuses(2, &words);
        }
    }
    let words = ["graph.sites", "a profile of graph.wasm, not of trees.wasm"];
    for plan in ["cgz-f", "all"] {
        let options = ["--plan", plan, "--machine", "optane-6242"];
        run("programs/dist/trees.wasm", &file, &options, &["4"]).refuses(2, &words);
    }
    let shown = file.to_str().unwrap();
    varve(&["profile", "programs/dist/trees.wasm", "-o", shown, "--add"]).refuses(2, &words);
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = profiled(folder.path());
    run(GRAPH, &file, &[], &SMALL).refuses(2, &["--profile", "without a plan"]);
    run(GRAPH, &file, &["--plan", "kg-n"], &SMALL).refuses(2, &["kg-n", "--profile"]);
    run(crate::common::TINY, &file, &[], &[]).refuses(2, &["--profile"]);
    varve(&["run", GRAPH, "--plan", "cgz-f"]).refuses(2, &["cgz-f", "varve profile", "--profile"]);
    sites(&file, &["--heuristic", "kg-n"]).refuses(2, &["kg-n", "uses no profile"]);
    sites(&file, &["--heuristic", "cgz"]).refuses(2, &["no heap plan is called `cgz`"]);
    let nowhere = Path::new("/no/such/folder/graph.sites");
    profile(nowhere, &[], &SMALL).refuses(2, &["/no/such/folder"]);
    varve(&["profile", "traces/none.wasm", "-o", "x.sites"]).refuses(2, &["traces/none.wasm"]);
}

/// Nothing is left of a program that fails, and its exit code is its own.
#[test]
fn a_program_that_fails_leaves_no_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("errors.sites");
    let words = |what| {
        let shown = file.to_str().unwrap();
        [
            "profile",
            "programs/dist/errors.wasm",
            "-o",
            shown,
            "--",
            what,
        ]
    };
    let traps = folder.path().join("traps.wasm");
    let module = wat::parse_str("(module (func (export \"_start\") unreachable))").unwrap();
    std::fs::write(&traps, module).unwrap();
    let said = varve(&format!(
        "profile {} -o {}",
        traps.display(),
        file.display()
    ));
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(!file.exists());
    let exit = varve(&[&words("exit")[..], &["7"]].concat());
    assert_eq!(exit.code, 7, "{}", exit.err);
    assert!(file.exists(), "the program ended as it wanted to");
}
