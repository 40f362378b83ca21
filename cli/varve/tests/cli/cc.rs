//! `varve cc` as the compiler that it stands for.

use crate::common::{command, has};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MAIN: &str = "#include <stdio.h>\nint main(void) { puts(\"well\"); return 0; }\n";

/// Runs `varve cc`, with `$CC` if it is given.
fn cc(folder: &Path, words: &[&str], variable: Option<&str>) -> Output {
    let mut compiler = command(&[&["cc"], words].concat());
    compiler
        .current_dir(folder)
        .env_remove("CC")
        .stdin(Stdio::null());
    if let Some(variable) = variable {
        compiler.env("CC", variable);
    }
    compiler.output().unwrap()
}

fn well(done: &Output) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
}

fn says_well(program: &Path) {
    let said = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "well\n");
}

#[test]
fn each_command_line_does_what_it_does_for_the_compiler() {
    if !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    std::fs::write(home.join("main.c"), MAIN).unwrap();
    std::fs::write(home.join("program"), MAIN).unwrap();
    std::fs::write(
        home.join("part.c"),
        "#include <stdlib.h>\nint *make(void) { return calloc(1, sizeof(int)); }\n",
    )
    .unwrap();
    std::fs::write(home.join("words"), "-O1 \"main.c\"\n-o answer").unwrap();
    for (words, program) in [
        ("-x c program -o language", "language"),
        ("@words", "answer"),
        ("-O1 -MD -MF main.dep main.c -o beside", "beside"),
        ("-save-temps main.c part.c -o both", "both"),
    ] {
        well(&cc(home, &words.split(' ').collect::<Vec<_>>(), None));
        says_well(&home.join(program));
    }
    assert!(home.join("main.dep").exists(), "what it writes beside");
    // A library that may have no undefined functions, neither the probe's nor those of the C library.
    let library = "-shared -fPIC -Wl,-z,defs part.c -o libpart.so";
    well(&cc(home, &library.split(' ').collect::<Vec<_>>(), None));
    // What stands on standard input.
    let mut compiler = command(&["cc", "-x", "c", "-", "-o", "typed"]);
    let compiler = compiler
        .current_dir(home)
        .env_remove("CC")
        .stdin(Stdio::piped());
    let mut child = compiler.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(MAIN.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    says_well(&home.join("typed"));
}

#[test]
fn a_variable_that_names_varve_itself_leads_to_the_usual_compiler() {
    if !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    std::fs::write(home.join("main.c"), MAIN).unwrap();
    let varve = env!("CARGO_BIN_EXE_varve");
    let script = home.join("wrapped");
    std::fs::write(&script, format!("#!/bin/sh\nexec '{varve}' cc \"$@\"\n")).unwrap();
    let mut rights = std::fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
    std::fs::set_permissions(&script, rights).unwrap();
    // As make has it, as CMake has it, and as a script.
    for variable in [&format!("{varve} cc"), varve, script.to_str().unwrap()] {
        well(&cc(home, &["main.c", "-o", "main"], Some(variable)));
        says_well(&home.join("main"));
    }
}

#[test]
fn programs_that_cannot_have_the_probe_are_refused_in_one_line() {
    if !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    std::fs::write(home.join("main.c"), MAIN).unwrap();
    for option in ["-static", "-flto", "-m32", "-fsanitize=address"] {
        let done = cc(home, &[option, "main.c", "-o", "main"], None);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{option}: {said}");
        assert!(
            said.lines().count() == 1 && said.contains("leave"),
            "{option}: {said}"
        );
        assert!(!home.join("main").exists(), "{option}");
    }
}
