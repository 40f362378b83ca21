//! `programs/kept`: small cases of durable Java. Each stores an object of one class of Java's library, or of one feature of the language, and
//! reads and changes it in later runs. What each step must print is what a JVM printed that did all steps in one process
//! (`programs/expected/kept.out`, which `programs/check --accept` writes anew).
//!
//! A few rounds of kills run with the tests. By hand, `VARVE_TORTURE=500 cargo test --release -p varve --test cli kept -- --nocapture`; the seed
//! is printed, and `VARVE_SEED` gives it again.

use crate::common::{command, home, on_region as on, varve};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const KEPT: &str = "programs/dist/kept.wasm";
const STEPS: usize = 4;

/// The expected output, by step and case.
fn expected() -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(home().join("programs/expected/kept.out")).unwrap();
    let mut steps = vec![BTreeMap::new(); STEPS];
    for line in text.lines() {
        let (name, step) = name_and_step(line).expect("NAME STEP: ...");
        steps[step].insert(name.to_string(), line.to_string());
    }
    steps
}

/// Of a line `NAME STEP: ...`.
fn name_and_step(line: &str) -> Option<(&str, usize)> {
    let (begin, _) = line.split_once(':')?;
    let (name, step) = begin.rsplit_once(' ')?;
    Some((name, step.parse().ok()?))
}

fn seed() -> u64 {
    let given = std::env::var("VARVE_SEED").map(|n| n.parse().expect("a number"));
    let seed = given.unwrap_or_else(|_| std::process::id().into());
    println!("VARVE_SEED={seed}");
    seed
}

fn rounds(otherwise: usize) -> usize {
    std::env::var("VARVE_TORTURE").map_or(otherwise, |n| n.parse().expect("rounds"))
}

fn names(which: &str) -> Vec<String> {
    let out = varve(&["run", KEPT, "--", which]).well().out;
    out.lines().map(str::to_string).collect()
}

/// Lines that are not as expected.
fn compare(out: &str, expected: &BTreeMap<String, String>, wrong: &mut Vec<String>) {
    for line in out.lines() {
        let name = name_and_step(line).map_or("", |(name, _)| name);
        match expected.get(name) {
            Some(due) if due == line => {}
            Some(due) => wrong.push(format!("  {line}\n  due: {due}")),
            None => wrong.push(format!("  {line}\n  due: no such line")),
        }
    }
}

/// The failures of one case, each step in a process of its own on a region of its own.
fn alone(name: &str, expected: &[BTreeMap<String, String>], options: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("alone.region");
    let mut wrong = Vec::new();
    for (step, expected) in expected.iter().enumerate() {
        let step = step.to_string();
        let said = on(&region, KEPT, &[options, &[name, &step]].concat());
        compare(&said.out, expected, &mut wrong);
        if said.code != 0 {
            wrong.push(format!(
                "  {name} {step} ended with {}: {}",
                said.code,
                said.err.trim_end()
            ));
            break;
        }
        if said.out.lines().count() != 1 {
            wrong.push(format!("  {name} {step} printed: {}", said.out));
        }
    }
    wrong
}

/// All cases at once: a run for each step, with and without failure-atomic regions.
#[test]
fn kept_objects_are_what_a_jvm_has() {
    let expected = expected();
    let all = names("list");
    let listed: BTreeSet<_> = all.iter().collect();
    assert!(
        expected
            .iter()
            .all(|step| step.keys().collect::<BTreeSet<_>>() == listed),
        "programs/check --accept writes expected/kept.out"
    );
    let mut wrong = Vec::new();
    for options in [&[][..], &["--regions"]] {
        let folder = tempfile::tempdir().unwrap();
        let region = folder.path().join("all.region");
        for (step, expected) in expected.iter().enumerate() {
            let said = on(
                &region,
                KEPT,
                &[options, &["all", &step.to_string()]].concat(),
            );
            compare(&said.out, expected, &mut wrong);
            if said.code != 0 || said.out.lines().count() != all.len() {
                let last = said.out.lines().last().unwrap_or_default();
                wrong.push(format!(
                    "step {step} ended with {} after {last:?}: {}",
                    said.code, said.err
                ));
                break;
            }
        }
        varve(&["durable", "check", region.to_str().unwrap()]).well();
    }
    println!("{} cases, {STEPS} steps each", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Some of the cases, each alone in its region: with VARVE_TORTURE, all.
#[test]
fn kept_objects_do_not_need_one_another() {
    let expected = expected();
    let mut all = names("list");
    let mut rng = SmallRng::seed_from_u64(seed());
    all.shuffle(&mut rng);
    let some = if rounds(0) > 0 { all.len() } else { 12 };
    let wrong: Vec<_> = all[..some]
        .iter()
        .flat_map(|name| alone(name, &expected, &[]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the program on a region and kills it after a moment. What it printed: whole lines.
fn killed(region: &Path, words: &[&str], options: &[&str], moment: Duration) -> String {
    let region = region.to_str().expect("a path of ours");
    let begin = ["run", KEPT, "--durable", region];
    let mut child = command(&[&begin[..], options, &["--"], words].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("varve starts");
    std::thread::sleep(moment);
    let _ = child.kill();
    let out = child.wait_with_output().expect("it was ours").stdout;
    let whole = out.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    String::from_utf8(out[..whole].to_vec()).expect("UTF-8")
}

/// Each step is killed at random instants and done again. In a region it is done once; what it printed is what is due.
#[test]
fn kept_objects_survive_kill_9() {
    let expected = expected();
    let count = names("list").len();
    let mut rng = SmallRng::seed_from_u64(seed());
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        "quick", "profiled", "deopt", "unlikely", "unbiased", "likely",
    ];
    let mut usual = Duration::from_millis(400);
    for round in 0..rounds(2) {
        let region = folder.path().join("killed.region");
        let mut wrong = Vec::new();
        let mut kills = 0;
        for (step, expected) in expected.iter().enumerate() {
            let step = step.to_string();
            let words = ["--regions", "all", &step];
            let domain = match rng.random_range(0..3) {
                0 => &["--domain", "file", "--sync", "5ms"][..],
                1 => &["--domain", "file", "--sync", "commit"],
                _ => &["--domain", "memory"],
            };
            let checks = kinds[rng.random_range(0..kinds.len())];
            let options = [domain, &["--checks", checks]].concat();
            for _ in 0..rng.random_range(1..5) {
                let moment = usual.mul_f64(rng.random_range(0.0..1.0));
                compare(
                    &killed(&region, &words, &options, moment),
                    expected,
                    &mut wrong,
                );
                kills += 1;
            }
            let began = Instant::now();
            let said = on(&region, KEPT, &words);
            usual = (usual + began.elapsed()) / 2;
            compare(&said.out, expected, &mut wrong);
            assert_eq!(
                said.code, 0,
                "round {round}, step {step}, {checks}: {}{}",
                said.out, said.err
            );
        }
        assert!(
            wrong.is_empty(),
            "round {round}, {kills} kills: {}",
            wrong.join("\n")
        );
        // All is as in the last step, which is done already.
        let said = on(&region, KEPT, &["all", "3"]).well();
        assert_eq!(said.out.lines().count(), count);
        std::fs::remove_file(&region).unwrap();
    }
}

/// Objects that cannot survive are refused with a line, and none of their data is left.
#[test]
fn what_cannot_be_kept_is_refused() {
    for name in names("refused") {
        let folder = tempfile::tempdir().unwrap();
        let region = folder.path().join("refused.region");
        let said = on(&region, KEPT, &[&name, "0"]);
        said.refuses(1, &["was to become durable"]);
        // Without a region it is an object as any other.
        let said = varve(&["run", KEPT, "--", &name, "0"]).well();
        assert_eq!(said.out, format!("{name} 0: it is durable\n"));
    }
}
