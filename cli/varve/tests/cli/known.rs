//! Programs whose right answer is known, whatever tool is asked.

use crate::common::{can_trace, has, typed, varve};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `data/known`, with more options.
fn compiled(name: &str, options: &[&str], to: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/known");
    let source = folder.join(name).with_extension("c");
    let (mut compiler, source) = match source.exists() {
        true => (Command::new("cc"), source),
        false => (Command::new("c++"), source.with_extension("cpp")),
    };
    compiler
        .args(["-O1", "-g", "-fno-inline", "-o"])
        .arg(to)
        .arg(source);
    assert!(compiler.args(options).status().unwrap().success());
}

/// A folder with a program in it; `None` where programs cannot be traced or compiled here.
pub fn program(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    if !can_trace() || !has("cc", "gcc") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    compiled(name, &[], &path);
    Some((folder, path))
}

fn answer(options: &str, program: &Path, words: &str) -> Value {
    let before = format!("run {options} --json --");
    let program = [program.to_str().unwrap()];
    varve(&[&typed(&before)[..], &program, &typed(words)].concat())
        .well()
        .json()
}

fn run<'a>(answer: &'a Value, plan: &str) -> &'a Value {
    let runs = answer["runs"].as_array().unwrap();
    runs.iter()
        .find(|run| run["plan"] == plan)
        .unwrap_or_else(|| panic!("no {plan}"))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn footprint(run: &Value) -> f64 {
    (number(run, "fast_bytes") + number(run, "slow_bytes")) / f64::from(1 << 20)
}

/// A column of the table of sites, of the row with this word in its name.
fn site(answer: &Value, word: &str, column: &str) -> f64 {
    let table = &answer["details"][0];
    let rows = table["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("no sites in {answer}"));
    let row = rows
        .iter()
        .find(|row| row["name"].as_str().unwrap().contains(word));
    let row = row.unwrap_or_else(|| panic!("no {word} in {rows:#?}"));
    let columns = table["columns"].as_array().unwrap();
    let place = columns
        .iter()
        .position(|other| other["name"] == column)
        .unwrap();
    row["values"][place].as_f64().unwrap()
}

/// The site that has a word in its name, of a list with sites.
fn listed<'a>(answer: &'a Value, word: &str) -> &'a Value {
    let sites = answer["sites"].as_array().unwrap();
    let named = |site: &&Value| site["site"].as_str().unwrap().contains(word);
    sites
        .iter()
        .find(named)
        .unwrap_or_else(|| panic!("no {word} in {sites:#?}"))
}

/// What comes of a command whose objects are placed on this machine.
fn placed(sites: &str, command: &[&str]) -> Value {
    let before = format!("run --live --sites {sites} --fast 8MiB --nodes fast=0,slow=0 --json --");
    varve(&[&typed(&before)[..], command].concat())
        .well()
        .json()
}

const PLANS: &str = "--machine optane-6230 --plan dram,slow,hot-sites";

/// 24 MiB of a table and 40 of an archive, whoever has them mapped.
#[test]
fn memory_that_children_share_or_only_read_counts_once_and_is_of_its_site() {
    let Some((_folder, program)) = program("forks") else {
        return;
    };
    for how in ["shared", "segment", "inherited"] {
        let answer = answer(&format!("{PLANS} --fast 26MiB"), &program, how);
        let bytes = footprint(run(&answer, "dram"));
        assert!((64.0..66.0).contains(&bytes), "{how}: {bytes} MiB");
        let misses = |word| site(&answer, word, "misses");
        let (table, archive) = (misses("make_table"), misses("make_archive"));
        // The table is read at random, and has 393,216 lines; the archive is written once, line by line. How much of the start-up
        // stands apart is another in each run.
        let other = misses("all other memory");
        assert!(
            (200_000.0..450_000.0).contains(&table) && archive < 0.2 * table,
            "{how}: {table} {archive}"
        );
        assert!(other < 0.02 * table, "{how}: {other} of {table}");
        // All of the table, and of the archive what is left.
        let fast = |word| site(&answer, word, "in DRAM");
        let (table, archive) = (fast("make_table"), fast("make_archive"));
        assert!(table == 100.0 && archive < 10.0, "{how}: {table} {archive}");
    }
}

/// A child that writes a page has a copy of it, which is of the same site.
#[test]
fn pages_that_children_write_are_copies_of_the_same_site() {
    let Some((_folder, program)) = program("forks") else {
        return;
    };
    let answer = answer(&format!("{PLANS} --fast 25%"), &program, "written");
    let bytes = footprint(run(&answer, "dram"));
    // Each child writes all of the table's pages, and the parent's stay. What a child had goes with it: how many are there at a
    // time is another number in each run.
    assert!(
        (24.0 * 2.0 + 40.0..24.0 * 5.0 + 43.0).contains(&bytes),
        "{bytes} MiB"
    );
    let misses = |word| site(&answer, word, "misses");
    assert!(misses("all other memory") < 0.02 * misses("make_table"));
}

/// A shell runs a program again and again, and kills it once: what one of them had is gone before the next begins.
#[test]
fn what_processes_had_goes_with_them() {
    let Some((folder, program)) = program("steady") else {
        return;
    };
    let script = folder.path().join("script");
    let program = program.display();
    let once = format!("{program} 20 10 5000");
    let killed = format!("{program} 20 10 100000000 &\nsleep 2\nkill -9 $!\nwait\n");
    std::fs::write(
        &script,
        format!("{once}\n{once}\n({once})\n{killed}{once}\n"),
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let found = answer(PLANS, Path::new("sh"), script);
    for plan in ["dram", "slow"] {
        let bytes = footprint(run(&found, plan));
        assert!((30.0..33.0).contains(&bytes), "{plan}: {bytes} MiB");
    }
    let peak = |word| site(&found, word, "peak");
    let (table, archive) = (peak("make_table"), peak("make_archive"));
    assert!(
        (10.0..10.5).contains(&(table / f64::from(1 << 20))),
        "{table}"
    );
    assert!(
        (20.0..20.5).contains(&(archive / f64::from(1 << 20))),
        "{archive}"
    );
    let trace = folder.path().join("a.trace");
    let trace = trace.to_str().unwrap();
    varve(&["trace", "-o", trace, "--", "sh", script]).well();
    let info = varve(&["trace", "info", trace, "--json"]).well().json();
    let pages = |key| number(&info, key) / 256.0;
    assert!((30.0..33.0).contains(&pages("most_pages")), "{info}");
    assert!(pages("pages") > 120.0, "{info}");
    // What is left at the end is a shell.
    let options = typed("run --machine optane-6230 --policy first-touch --json");
    let placed = varve(&[&options[..], &[trace]].concat()).well().json();
    let bytes = footprint(&placed["runs"][0]);
    assert!(bytes < 2.0, "{bytes} MiB");
}

fn slowdown(answer: &Value, plan: &str) -> f64 {
    number(run(answer, plan), "seconds") / number(run(answer, "dram"), "seconds")
}

/// The slowdown of the whole run, start-up included.
fn whole(answer: &Value, plan: &str) -> f64 {
    let seconds = |plan| number(&run(answer, plan)["steady"], "whole_seconds");
    seconds(plan) / seconds("dram")
}

fn advice(answer: &Value) -> String {
    answer["table"]["notes"].to_string()
}

/// The table fits the last cache: after its start-up, which costs a third more, the program never waits for memory.
#[test]
fn the_answer_is_of_the_steady_state_and_the_start_up_is_told_apart() {
    let Some((_folder, program)) = program("steady") else {
        return;
    };
    let answer = answer(PLANS, &program, "64 20 800000");
    for plan in ["slow", "hot-sites"] {
        let (steady, whole) = (slowdown(&answer, plan), whole(&answer, plan));
        assert!((0.99..1.01).contains(&steady), "{plan}: {steady}");
        assert!(whole > 1.1, "{plan}: {whole}");
    }
    let advice = advice(&answer);
    for told in [
        "all of its memory may be in slow memory",
        "Start-up and end take",
        "of what slow memory costs",
    ] {
        assert!(advice.contains(told), "{told}: {advice}");
    }
}

/// Memory that is allocated first gets the DRAM under first-touch, whether it is hot or cold.
#[test]
fn first_touch_is_as_good_as_the_order_of_allocations() {
    let Some((_folder, program)) = program("steady") else {
        return;
    };
    let options =
        "--machine optane-6230 --plan dram,slow,first-touch,hot-sites,knapsack,oracle --fast 62MiB";
    let hot_first = answer(options, &program, "100 60 500000 first");
    let cold_first = answer(options, &program, "100 60 500000");
    for answer in [&hot_first, &cold_first] {
        assert!(slowdown(answer, "slow") > 1.8);
        for plan in ["hot-sites", "knapsack", "oracle"] {
            let slowdown = slowdown(answer, plan);
            assert!((0.97..1.03).contains(&slowdown), "{plan}: {slowdown}");
        }
        assert_eq!(
            site(answer, "make_archive", "in slow memory costs").round(),
            0.0
        );
    }
    // The table, and what is left over.
    assert!(site(&cold_first, "make_archive", "in DRAM") < 3.0);
    assert_eq!(site(&cold_first, "make_table", "in DRAM"), 100.0);
    let first_touch = slowdown(&hot_first, "first-touch");
    assert!((0.97..1.03).contains(&first_touch), "{first_touch}");
    let lost = slowdown(&cold_first, "first-touch") / slowdown(&cold_first, "slow");
    assert!((0.97..1.03).contains(&lost), "{lost}");
}

/// Sessions lie between entries of a log that is never read again: plans by site tell them apart, and differ in nothing but the
/// memory that they choose.
#[test]
fn small_objects_on_shared_pages_are_placed_by_their_sites() {
    if !has("c++", "g++") {
        return;
    }
    let Some((_folder, program)) = program("containers") else {
        return;
    };
    let plans = "--plan dram,slow,hot-sites,knapsack,cgz-d,oracle --machine optane-6230";
    let large = answer(
        &format!("{plans} --fast 40%"),
        &program,
        "60000 300000 700000",
    );
    assert!(slowdown(&large, "slow") > 1.25);
    // No site is written often: it is all slow, to the letter.
    let dram = number(run(&large, "cgz-d"), "fast_bytes");
    assert_eq!(
        (dram, slowdown(&large, "cgz-d")),
        (0.0, slowdown(&large, "slow"))
    );
    for plan in ["hot-sites", "knapsack", "oracle"] {
        let slowdown = slowdown(&large, plan);
        assert!((0.97..1.06).contains(&slowdown), "{plan}: {slowdown}");
        let bytes = |key| number(run(&large, plan), key);
        let share = bytes("fast_bytes") / (bytes("fast_bytes") + bytes("slow_bytes"));
        assert!(share <= 0.4, "{plan}: {share}");
    }
    for cold in ["fill_archive", "log_entry"] {
        assert_eq!(site(&large, cold, "in DRAM"), 0.0, "{cold}");
    }
    assert!(site(&large, "open_session", "in DRAM") > 90.0);
    // So few sessions that they fit the cache: nothing is lost.
    let small = answer(plans, &program, "300 3000 400000");
    for plan in ["slow", "hot-sites", "oracle"] {
        let slowdown = slowdown(&small, plan);
        assert!((0.98..1.02).contains(&slowdown), "{plan}: {slowdown}");
    }
}

/// The archive is in memory when the mark comes, and first-touch has put it where it was first.
#[test]
fn a_program_between_marks_holds_what_it_held_before() {
    let Some((_folder, program)) = program("steady") else {
        return;
    };
    let options = "--machine optane-6230 --plan dram,first-touch,hot-sites --fast 22MiB";
    let marked = answer(&format!("{options} --marked"), &program, "60 20 400000");
    let bytes = footprint(run(&marked, "dram"));
    assert!((80.0..82.0).contains(&bytes), "{bytes} MiB");
    let slowdown = |plan| slowdown(&marked, plan);
    assert!(slowdown("first-touch") > 1.5, "{}", slowdown("first-touch"));
    assert!(slowdown("hot-sites") < 1.1, "{}", slowdown("hot-sites"));
}

/// The answer on the Java program with an archive that is cold.
fn cold_java(options: &str, rounds: &str) -> Option<Value> {
    if !can_trace() || !has("javac", "default-jdk-headless") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/known/Cold.java");
    let compiled = Command::new("javac")
        .arg("-d")
        .arg(folder.path())
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
    let line = format!("run {options} --plan dram,slow --json -- java -XX:+UseSerialGC -Xmn4m -cp");
    let program = [folder.path().to_str().unwrap(), "Cold", rounds];
    let words = [&typed(&line)[..], &program].concat();
    Some(varve(&words).well().json())
}

/// What a Java service does for months does not have the cost of filling its archive.
#[test]
fn a_java_program_is_answered_by_its_steady_state() {
    let Some(answer) = cold_java("--machine optane-6230", "96") else {
        return;
    };
    let slow = run(&answer, "slow");
    let steady = &slow["steady"];
    let share = |name: &str| steady[name].as_f64().unwrap();
    assert!(share("pages_before") > 0.9, "{steady}");
    assert!(share("share") > 0.25, "{steady}");
    assert!(slowdown(&answer, "slow") < 1.05, "{slow}");
    let whole = share("whole_seconds")
        / run(&answer, "dram")["steady"]["whole_seconds"]
            .as_f64()
            .unwrap();
    assert!(whole > slowdown(&answer, "slow") + 0.01, "{whole}");
}

#[test]
fn a_java_program_between_marks_holds_what_it_held_before() {
    let Some(answer) = cold_java("--marked --machine cxl-spr", "1") else {
        return;
    };
    let tables = answer["details"].as_array().unwrap();
    let what_for = |table: &&Value| {
        table["title"]
            .as_str()
            .unwrap()
            .starts_with("What memory is for")
    };
    let rows = tables.iter().find(what_for).unwrap()["rows"]
        .as_array()
        .unwrap();
    let old = rows.iter().find(|row| row["name"] == "old").unwrap();
    let mib = old["values"][0].as_f64().unwrap() / f64::from(1 << 20);
    assert!((32.0..36.0).contains(&mib), "{mib} MiB");
}

/// Latency that is not hidden is what slow memory costs.
#[test]
fn an_array_that_is_chased_costs_ten_times_one_that_is_streamed() {
    let Some((_folder, program)) = program("two_arrays") else {
        return;
    };
    let answer = answer(
        "--marked --machine cxl-spr --plan dram,slow,hot-sites --fast 50%",
        &program,
        "128 200000",
    );
    let cost = |word| site(&answer, word, "in slow memory costs");
    let (chased, streamed) = (cost("make_chased"), cost("make_streamed"));
    assert!(chased > 10.0 * streamed, "{chased} {streamed}");
    assert_eq!(site(&answer, "make_chased", "in DRAM"), 100.0);
}

/// Allocations of a library are not those of the one that was at its addresses before.
#[test]
fn plugins_at_the_same_addresses_are_told_apart() {
    let Some((folder, program)) = program("plugins") else {
        return;
    };
    for name in ["a", "b"] {
        let define = format!("-DNAME=make_{name}");
        compiled(
            "plugins",
            &["-shared", "-fPIC", &define],
            &folder.path().join(format!("lib{name}.so")),
        );
    }
    let sites = folder.path().join("plugins.sites");
    let home = folder.path().to_path_buf();
    let [sites, program, folder] = [&sites, &program, &home].map(|path| path.to_str().unwrap());
    varve(&["profile", "-o", sites, "--", program, folder]).well();
    let profile = varve(&["sites", sites, "--json"]).well().json();
    for name in ["make_a", "make_b"] {
        assert_eq!(listed(&profile, name)["objects"], 1000, "{name}");
    }
    let live = placed(sites, &[program, folder]);
    for name in ["make_a", "make_b"] {
        assert_eq!(listed(&live, name)["objects"], 1000, "{name}");
    }
}

/// A process's report comes whatever it has given up, and its allocator goes on as the C library's would.
#[test]
fn a_process_that_gives_up_its_root_rights_calls_or_descriptors_is_reported_all_the_same() {
    let Some((folder, program)) = program("gives_up") else {
        return;
    };
    let sites = folder.path().join("any.sites");
    let [sites, program] = [&sites, &program].map(|path| path.to_str().unwrap());
    varve(&["profile", "-o", sites, "--", program]).well();
    let root = rustix::process::geteuid().is_root();
    let whats = ["calls", "descriptors", "root", "rights"];
    for what in &whats[..if root { 4 } else { 2 }] {
        let live = placed(sites, &[program, what]);
        assert_eq!(live["processes"], 1, "{what}: {live}");
        assert_eq!(live["exit_code"], 0, "{what}: {live}");
        let notes = live["notes"].as_array().unwrap();
        let sandboxed = notes
            .iter()
            .any(|note| note.as_str().unwrap().contains("seccomp"));
        assert_eq!(sandboxed, *what == "calls", "{what}: {live}");
    }
}
