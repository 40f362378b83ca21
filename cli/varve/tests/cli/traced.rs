//! Programs of others, traced: they end well, crash, fork, and are compared.

use crate::common::{can_trace, command, has, typed, varve};
use std::fs;

#[test]
fn a_program_is_recorded_and_replayed() {
    if !can_trace() || !has("sort", "coreutils") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..5000u32)
        .map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761)))
        .collect();
    fs::write(folder.path().join("words"), text).unwrap();
    let done = command(&["trace", "--", "sort", "words"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&done.stdout).lines().count(),
        5000,
        "the program's own output comes through"
    );
    let file = folder.path().join("sort.trace");
    let info = varve(&["trace", "info", file.to_str().unwrap(), "--json"])
        .well()
        .json();
    assert!(info["ops"].as_u64().is_some_and(|n| n > 100_000), "{info}");
    varve(&["run", file.to_str().unwrap(), "--machine", "cxl-spr"]).well();
}

#[test]
fn a_command_runs_under_every_policy_and_leaves_nothing() {
    if !can_trace() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let run = || {
        let words = typed("run --machine optane-6230 --json -- /bin/echo hello");
        let done = command(&words)
            .env("TMPDIR", scratch.path())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        // Standard output is one document; what the program says goes beside it.
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.lines().any(|line| line == "hello"), "{said}");
        String::from_utf8(done.stdout).unwrap()
    };
    let out = run();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(
        report["table"]["title"]
            .as_str()
            .unwrap()
            .starts_with("/bin/echo hello on"),
        "{}",
        report["table"]
    );
    assert!(
        fs::read_dir(scratch.path()).unwrap().next().is_none(),
        "the recorded copy is gone"
    );
}

/// Under one policy a command is on the model as it runs, and its threads' time is the model's, not the host's.
#[test]
fn a_command_runs_on_the_model_as_it_goes() {
    if !can_trace() {
        return;
    }
    let words = typed("run --machine cxl-spr --policy first-touch --json -- /bin/true");
    let report = varve(&words).well().json();
    let ns = report["table"]["rows"][0]["values"][0].as_f64().unwrap();
    assert!(ns > 1_000.0 && ns < 100e6, "{ns} ns for doing nothing");
}

#[test]
fn a_program_that_crashes_is_recorded_up_to_its_crash() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.trace");
    let words = [
        "trace",
        "-o",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "kill -SEGV $$",
    ];
    let said = varve(&words);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("signal 11"), "{}", said.err);
    let info = varve(&["trace", "info", file.to_str().unwrap()]).well().out;
    assert!(info.contains("signal 11"), "{info}");
    varve(&["run", file.to_str().unwrap(), "--policy", "static"]).well();
}

#[test]
fn a_program_that_fails_says_so() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.trace");
    let said = varve(&[
        "trace",
        "-o",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "exit 7",
    ]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("exit code 7"), "{}", said.err);
}

/// The children of a program run and are recorded with it.
#[test]
fn a_program_that_forks_ends_well() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fork.trace");
    let words = [
        "trace",
        "-o",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "(echo child); /bin/echo other; echo parent",
    ];
    let done = command(&words).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{err}");
    let mut lines: Vec<String> = String::from_utf8_lossy(&done.stdout)
        .lines()
        .map(String::from)
        .collect();
    lines.sort();
    assert_eq!(lines, ["child", "other", "parent"]);
    varve(&["trace", "info", file.to_str().unwrap()]).well();
}

#[test]
fn what_cannot_be_traced_is_refused() {
    varve(&["trace", "--"]).refuses(2, &["nothing to record"]);
    if can_trace() {
        varve(&["trace", "--", "no-such-program"]).refuses(2, &["no-such-program"]);
    }
}

#[test]
fn a_compiled_program_is_traced_without_qemu() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) || !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("sum.c");
    let text = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
            long n = 100000, sum = 0;
            long *a = malloc(n * sizeof *a);
            for (long i = 0; i < n; i++) a[i] = i;
            for (long i = 0; i < n; i++) sum += a[(i * 7919) % n];
            printf("%ld\n", sum);
        }"#;
    fs::write(&source, text).unwrap();
    let program = folder.path().join("sum");
    let words = format!("cc -O2 -o {} {}", program.display(), source.display());
    varve(&words).well();
    let said = varve(&format!("run --machine cxl-spr -- {}", program.display())).well();
    assert!(said.out.starts_with("4999950000\n"), "{}", said.out);
    assert!(said.out.contains("Advice"), "{}", said.out);
    // Without Varve around it is an ordinary program.
    let alone = std::process::Command::new(&program).output().unwrap();
    assert_eq!(alone.stdout, b"4999950000\n");
}
