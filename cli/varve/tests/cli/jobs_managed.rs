//! Managed programs in groups on the model: they share its memory with programs of other kinds.

use crate::common::{Said, home, typed, varve};
use std::fs;

const TREES: &str = "programs/dist/trees.wasm";

/// A managed program in slow memory.
fn managed(name: &str, file: &str, arguments: &str) -> String {
    let file = home().join(file);
    format!(
        "[[program]]\nname = \"{name}\"\nmanaged = \"{}\"\narguments = [{arguments}]\nmemory = \"slow\"\n",
        file.display()
    )
}

/// A program that writes much beside it.
const WRITER: &str = "[[program]]\nname = \"writer\"\nworkload = \"npb_ft:bytes=48MiB,passes=2\"\nmemory = \"slow\"\nthreads = 6\n";

fn on_model(action: &str, text: &str, options: &[&str]) -> Said {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("group.toml");
    fs::write(&file, text).unwrap();
    let words = format!(
        "jobs {action} {} --machine optane-6230n --scale 1 --keep none",
        file.display()
    );
    let words = typed(&words);
    varve(&[&words[..], options].concat())
}

/// Seconds of the program with this number under the first strategy.
fn seconds(said: &Said, program: usize) -> f64 {
    let json = said.json();
    let of = |key: &str| {
        let path = format!("/runs/0/programs/{program}/{key}");
        json.pointer(&path).and_then(|v| v.as_f64()).unwrap()
    };
    of("end_s") - of("start_s")
}

#[test]
fn a_managed_program_is_slowed_by_one_that_writes_beside_it() {
    let trees = managed("trees", TREES, "\"11\"");
    let run = |text: &str| {
        let said = on_model("run", text, &["--strategy", "linux", "--json"]).well();
        (seconds(&said, 0), said)
    };
    let (alone, first) = run(&trees);
    let (again, second) = run(&trees);
    assert_eq!(alone, again, "{} {}", first.out, second.out);
    let (beside, said) = run(&(trees + WRITER));
    assert!(
        beside > 1.1 * alone,
        "{beside} s beside a writer, {alone} s alone: {}",
        said.out
    );
}

#[test]
fn a_managed_program_is_profiled_and_planned() {
    let text = managed("trees", TREES, "\"10\"").replace("memory = \"slow\"\n", "");
    let said = on_model("profile", &text, &["--json"]).well();
    let curves = &said.json()["demands"][0]["curves"];
    for memory in 0..2 {
        let points = curves[memory].as_array().unwrap();
        assert_eq!(points.len(), 1, "a managed program has one thread");
        assert!(points[0]["seconds"].as_f64().unwrap() > 0.0);
        assert!(points[0]["read_gbps"].as_f64().unwrap() > 0.0);
    }
    let said = on_model("plan", &text, &[]).well();
    for words in ["trees is ", "trees starts"] {
        assert!(said.out.contains(words), "no `{words}` in: {}", said.out);
    }
}

/// Its pages are given back and taken again while a newcomer needs its room.
#[test]
fn a_managed_program_makes_room() {
    let held =
        managed("trees", TREES, "\"12\"").replace("memory = \"slow\"", "class = \"cpu-bound\"");
    let text = format!(
        "fast = \"64MiB\"\n{held}bytes = \"50MiB\"\n{}class = \"bandwidth-sensitive\"\nbytes = \"48MiB\"\n",
        WRITER.replace("memory = \"slow\"\n", "")
    );
    let said = on_model("run", &text, &["--strategy", "placement", "--json"]).well();
    let json = said.json();
    let programs = &json["runs"][0]["programs"];
    assert_eq!(programs[0]["memory"], "slow", "{}", said.out);
    assert_eq!(programs[1]["memory"], "fast", "{}", said.out);
    assert!(seconds(&said, 1) > 0.0, "the newcomer ran");
}

/// One ends with a code, one is no module: each is told, and the third goes on.
#[test]
fn a_managed_program_that_fails_is_told_and_the_others_go_on() {
    let text = managed("fails", TREES, "\"many\"")
        + &managed("text", "examples/group1.toml", "")
        + &managed("well", TREES, "\"8\"");
    let said = on_model("run", &text, &["--strategy", "linux"]);
    assert_eq!(said.code, 1, "{}", said.err);
    for words in ["linux: fails ended with exit code", "linux: text "] {
        assert!(said.out.contains(words), "no `{words}` in: {}", said.out);
    }
    assert!(!said.out.contains("linux: well "), "{}", said.out);
    let missing = on_model("plan", &managed("gone", "no-such.wasm", ""), &[]);
    missing.refuses(
        2,
        &["group.toml:1: program `gone`, managed: ", "no-such.wasm"],
    );
    let threads = managed("two", TREES, "") + "threads = 2\n";
    on_model("plan", &threads, &[])
        .refuses(2, &["group.toml:6: program.threads: is more than one"]);
}
