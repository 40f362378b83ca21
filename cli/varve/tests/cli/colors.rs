//! Programs that color their memory (`varve.h`), as they run without us, on a model and on this machine.

use crate::common::{Said, can_trace, has, typed, varve};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Compiles `data/known/colors.c` with a compiler and its options; `None` without one.
fn compiled(compiler: &str, package: &str, options: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    if !has(compiler, package) {
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("colors");
    let mut command = Command::new(compiler);
    command.args(typed(options));
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command
        .arg("-I")
        .arg(here.join("../../live/linux/objects/include"));
    command.arg(here.join("tests/data/known/colors.c"));
    let compiled = command.arg("-o").arg(&program).status().unwrap();
    assert!(compiled.success(), "{compiler} {options}");
    Some((folder, program))
}

fn program() -> Option<(tempfile::TempDir, PathBuf)> {
    compiled("cc", "gcc", "")
}

fn said(options: &str, program: &Path, how: &str) -> Said {
    let before = format!("run {options} --json --");
    varve(&[&typed(&before)[..], &[program.to_str().unwrap(), how]].concat())
}

#[test]
fn the_call_returns_what_its_header_says_in_c_and_in_cpp() {
    for (compiler, package, options) in [
        ("cc", "gcc", "-std=c11 -D_DEFAULT_SOURCE"),
        ("cc", "gcc", "-std=c11 -D_DEFAULT_SOURCE -DNAMES"),
        ("c++", "g++", "-xc++ -std=c++11"),
        ("c++", "g++", "-xc++ -std=c++20 -DNAMES"),
    ] {
        let Some((_folder, program)) = compiled(compiler, package, options) else {
            continue;
        };
        let plain = Command::new(&program).arg("errors").output().unwrap();
        let out = String::from_utf8_lossy(&plain.stdout);
        assert_eq!(out, "as documented\n", "{options}");
        for how in ["apart", "later", "asked", "blocks", "changes"] {
            let plain = Command::new(&program).arg(how).status().unwrap();
            assert!(plain.success(), "{options} {how}: {plain}");
        }
        let live = "--live --plan hints --nodes fast=0,slow=0 --fast 1MiB";
        let placed = said(live, &program, "errors").well();
        let both = placed.out + &placed.err;
        assert!(both.contains("as documented\n"), "{both}");
    }
}

/// A run of an answer.
fn run<'a>(answer: &'a Value, plan: &str) -> &'a Value {
    let runs = answer["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["plan"] == plan);
    run.unwrap_or_else(|| panic!("no {plan} in {answer}"))
}

fn mib(run: &Value, key: &str) -> f64 {
    run[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {run}"))
        / MIB as f64
}

/// Of 80 MiB, 48 are hot: all of them are in fast memory, and nothing else.
#[test]
fn the_model_has_hot_memory_in_fast_memory_within_the_budget() {
    let Some((_folder, program)) = program().filter(|_| can_trace()) else {
        return;
    };
    for how in ["apart", "later", "asked", "blocks"] {
        let options = "--machine optane-6230 --plan dram,slow,hints --fast 64MiB";
        let answer = said(options, &program, how).well().json();
        let hints = run(&answer, "hints");
        let fast = mib(hints, "fast_bytes");
        assert!((47.9..48.1).contains(&fast), "{how}: {fast} MiB");
        let slow = mib(hints, "slow_bytes");
        assert!((32.0..36.0).contains(&slow), "{how}: {slow} MiB");
        let seconds = |plan: &str| run(&answer, plan)["seconds"].as_f64().unwrap();
        if how == "later" {
            // Its pages are copied first, which takes longer than this run is.
            continue;
        }
        let (dram, slow, hints) = (seconds("dram"), seconds("slow"), seconds("hints"));
        assert!(
            hints - dram < 0.4 * (slow - dram) && 1.3 * dram < slow,
            "{how}: {dram} {slow} {hints}"
        );
    }
    let small = "--machine optane-6230 --plan hints --fast 4MiB";
    let answer = said(small, &program, "apart").well().json();
    let fast = mib(run(&answer, "hints"), "fast_bytes");
    assert!((3.9..=4.0).contains(&fast), "{fast} MiB");
}

#[test]
fn colors_are_dimms_where_channels_are_not_interleaved() {
    let Some((_folder, program)) = program().filter(|_| can_trace()) else {
        return;
    };
    for how in ["apart", "asked"] {
        let options = "--machine haswell-2620v3 --plan dram,hints";
        let answer = said(options, &program, how).well().json();
        let cold = mib(run(&answer, "hints"), "slow_bytes");
        assert!((31.9..32.2).contains(&cold), "{how}: {cold} MiB");
        assert_eq!(mib(run(&answer, "dram"), "slow_bytes"), 0.0);
        let energy = |plan: &str| run(&answer, plan)["energy_j"].as_f64().unwrap();
        assert!(energy("hints") < energy("dram"), "{how}: {answer}");
    }
}

/// The group of what a program asked for in fast memory, or in slow.
fn asked<'a>(answer: &'a Value, tier: &str) -> &'a Value {
    let sites = answer["sites"].as_array().unwrap();
    let name = format!("(asked for by the program) [{tier}]");
    let site = sites.iter().find(|site| site["site"] == name);
    site.unwrap_or_else(|| panic!("no {name} in {answer}"))
}

#[test]
fn this_machine_binds_colored_memory_within_the_budget() {
    let Some((_folder, program)) = program() else {
        return;
    };
    let live = |fast: u64, how: &str| {
        let options = format!("--live --plan hints --nodes fast=0,slow=0 --fast {fast}MiB");
        said(&options, &program, how).well().json()
    };
    for how in ["apart", "later"] {
        let answer = live(64, how);
        let (hot, cold) = (asked(&answer, "fast"), asked(&answer, "slow"));
        assert_eq!(hot["fast_peak_bytes"], 48 * MIB, "{how}: {answer}");
        assert_eq!(hot["slow_peak_bytes"], 0, "{how}: {answer}");
        assert_eq!(cold["slow_peak_bytes"], 32 * MIB, "{how}: {answer}");
        assert_eq!(answer["notes"].as_array().unwrap().len(), 0, "{answer}");
    }
    let answer = live(4, "apart");
    let hot = asked(&answer, "fast");
    assert_eq!(hot["refused_objects"], 1, "{answer}");
    assert_eq!(hot["fast_peak_bytes"], 4 * MIB, "{answer}");
    assert_eq!(hot["slow_peak_bytes"], 44 * MIB, "{answer}");
    // Half of the table becomes cold, and its two middle quarters are unmapped.
    let answer = live(64, "changes");
    assert_eq!(asked(&answer, "fast")["fast_bytes"], 12 * MIB, "{answer}");
    assert_eq!(asked(&answer, "slow")["slow_bytes"], 44 * MIB, "{answer}");
    let answer = live(64, "asked");
    assert!(asked(&answer, "fast")["fast_peak_bytes"].as_u64() >= Some(48 * MIB));
    // Blocks of malloc stay, and it is said so.
    let answer = live(64, "blocks");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("take varve_malloc for these"), "{answer}");
    assert_eq!(answer["sites"].as_array().unwrap().len(), 0, "{answer}");
}

#[test]
fn a_program_that_says_nothing_has_no_hints() {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../traces/sqlite-join.trace"
    );
    let run = |options: &str| varve(&typed(&format!("run {options}")));
    run(&format!("{trace} --plan hints")).refuses(2, &["hints", "varve_mcolor"]);
    run(&format!("{trace} --plan hints:x=1")).refuses(2, &["hints", "no parameter `x`"]);
    run("--live --plan hints --nodes fast=0,slow=0 -- true").refuses(2, &["--fast 8GiB"]);
    run("--live --plan hints --nodes fast=0,slow=0 --fast 1MiB --stale -- true")
        .refuses(2, &["--stale", "--sites"]);
    run("--live --plan hints --sites x.sites --fast 1MiB -- true").refuses(2, &["x.sites"]);
}
