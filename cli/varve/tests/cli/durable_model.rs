//! Objects that survive on a modelled machine: where they are, what write-backs and fences cost, and what happens to the file.

use crate::common::{Said, home, typed, varve};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const DURABLE: &str = "programs/dist/durable.wasm";
const MACHINE: &str = "optane-6242";
const KERNEL: [&str; 4] = ["--", "marray", "--operations", "500"];

/// Runs a kernel on the model, with temporary files in a folder of its own.
fn modelled(folder: &Path, options: &[&str]) -> Said {
    ran(folder, options, &KERNEL)
}

fn ran(folder: &Path, options: &[&str], program: &[&str]) -> Said {
    let out = Command::new(env!("CARGO_BIN_EXE_varve"))
        .current_dir(home())
        .env("TMPDIR", folder)
        .args(["run", DURABLE, "--machine", MACHINE, "--plan", "dram"])
        .args(options)
        .args(program)
        .output()
        .expect("the binary runs");
    Said::of(out)
}

/// The one run of what `--json` printed.
fn result(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    report["runs"][0].clone()
}

fn number(result: &Value, name: &str) -> f64 {
    let found = name.split('.').fold(result, |v, key| &v[key]);
    found.as_f64().unwrap_or_else(|| panic!("{name}: {found}"))
}

#[test]
fn durable_objects_are_in_persistent_memory_and_fences_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("lists.region");
    let name = region.to_str().unwrap();
    let nothing = result(&modelled(folder.path(), &["--json"]));
    assert_eq!(number(&nothing, "slow_written_bytes"), 0.0);
    assert_eq!(number(&nothing, "stalls.fence"), 0.0);
    let durable = result(&modelled(folder.path(), &["--json", "--durable", name]));
    assert!(
        number(&durable, "slow_written_bytes") > 10_000.0,
        "{durable}"
    );
    assert!(number(&durable, "stalls.fence") > 0.0);
    assert!(
        number(&durable, "slow_bytes") >= 256.0 * 1024.0,
        "all of the region is there"
    );
    assert!(number(&durable, "seconds") > 1.5 * number(&nothing, "seconds"));
    let again = result(&modelled(folder.path(), &["--json", "--durable", name]));
    assert_eq!(again, durable, "the same every time");
}

#[test]
fn the_file_stays_as_it_is_and_copies_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let region = folder.path().join("lists.region");
    let name = region.to_str().unwrap();
    let said = modelled(temporary.path(), &["--durable", name]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!region.exists(), "a model makes no file");
    let real = varve(&[
        "run",
        DURABLE,
        "--durable",
        name,
        "--domain",
        "memory",
        KERNEL[0],
        KERNEL[1],
        KERNEL[2],
        KERNEL[3],
    ]);
    assert_eq!(real.code, 0, "{}", real.err);
    let before = std::fs::read(&region).unwrap();
    let said = modelled(temporary.path(), &["--durable", name]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.starts_with(&real.out),
        "what it prints is the same: {}",
        said.out
    );
    assert!(said.out.contains("fences"), "{}", said.out);
    assert!(std::fs::read(&region).unwrap() == before);
    let left = std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left, 0, "copies are for the run alone");
}

#[test]
fn plans_begin_with_the_same_objects() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("lists.region");
    let name = region.to_str().unwrap();
    let arguments =
        format!("run {DURABLE} --machine {MACHINE} --plan dram,slow --durable {name} --json");
    let arguments = typed(&arguments);
    let said = varve(&[&arguments[..], &KERNEL].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(number(&runs[1], "seconds") > number(&runs[0], "seconds"));
}

/// What checks load is told, and so their kinds differ on the model as they do here.
#[test]
fn checks_have_their_accesses_on_the_model() {
    let folder = tempfile::tempdir().unwrap();
    // Long enough for optimized code.
    let kernel = ["--", "marray", "--operations", "10000"];
    let of = |checks| {
        result(&ran(
            folder.path(),
            &["--json", "--checks", checks],
            &kernel,
        ))
    };
    let (none, quick, unbiased) = (of("none"), of("quick"), of("unbiased"));
    let accesses = |r: &Value| number(r, "accesses");
    assert!(accesses(&unbiased) > accesses(&quick));
    assert!(accesses(&quick) >= accesses(&none));
    assert!(number(&unbiased, "instructions") > number(&none, "instructions"));
}

#[test]
fn what_means_nothing_on_a_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("lists.region");
    let name = region.to_str().unwrap();
    for (options, said) in [
        (
            &["--durable", name, "--domain", "memory"][..],
            "--domain is for WebAssembly programs on this machine",
        ),
        (
            &["--durable", name, "--sync", "10ms"],
            "--sync is for WebAssembly programs on this machine",
        ),
        (
            &["--check-stats"],
            "--check-stats is for WebAssembly programs on this machine",
        ),
        (
            &["--durable", name, "--checks", "none"],
            "without checks no object can survive",
        ),
    ] {
        let refused = modelled(folder.path(), options);
        assert_eq!(refused.code, 2, "{options:?}");
        assert!(refused.err.contains(said), "{options:?}: {}", refused.err);
    }
    for machine in ["haswell-2620v3", "cxl-spr", "optane-6230-memory-mode"] {
        let arguments = format!("run {DURABLE} --machine {machine} --plan dram --durable {name}");
        let arguments = typed(&arguments);
        let refused = varve(&[&arguments[..], &KERNEL].concat());
        assert_eq!(refused.code, 2, "{machine}");
        assert!(
            refused.err.contains("no persistent memory beside its DRAM"),
            "{}",
            refused.err
        );
    }
    assert!(!region.exists());
    std::fs::write(&region, "not a region").unwrap();
    let foreign = modelled(folder.path(), &["--durable", name]);
    assert_eq!(foreign.code, 2, "{}", foreign.err);
    assert_eq!(std::fs::read(&region).unwrap(), b"not a region");
}
