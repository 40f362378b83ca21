//! A WebAssembly program's access to the system, and the end of one that requests more.

use crate::common::{Said, has, home, typed, varve, varve_in};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Modules that do one thing each: opens the file `f` below descriptor 3 and ends with the error's number; loops; grows its memory
/// until it is refused, and ends with code 3.
const MODULES: [(&str, &str); 6] = [
    (
        "opens",
        r#"(data (i32.const 64) "f")
        (func (export "_start") (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16))))"#,
    ),
    (
        "makes",
        r#"(data (i32.const 64) "made")
        (func (export "_start") (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 64) (i32.const 4) (i32.const 1)
            (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 16))))"#,
    ),
    (
        "climbs",
        r#"(data (i32.const 64) "../f")
        (func (export "_start") (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 64) (i32.const 4) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16))))"#,
    ),
    ("loops", r#"(func (export "_start") (loop $l (br $l)))"#),
    (
        "waits",
        r#"(func (export "_start") (i32.store (i32.const 0) (i32.const 128)) (i32.store (i32.const 4) (i32.const 1))
            (call $exit (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))))"#,
    ),
    (
        "grows",
        r#"(func (export "_start")
            (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (call $exit (i32.const 3)))"#,
    ),
];

/// Prints its environment.
const ENVIRONMENT: &str = r#"(func (export "_start")
        (drop (call $environ_sizes (i32.const 0) (i32.const 4)))
        (drop (call $environ (i32.const 64) (i32.const 8192)))
        (i32.store (i32.const 8) (i32.const 8192))
        (i32.store (i32.const 12) (i32.load (i32.const 4)))
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16))))"#;

const PRELUDE: &str = r#"
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)"#;

/// A folder with the modules, and in `here` a file `f`.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let modules = MODULES.iter().chain([&("environment", ENVIRONMENT)]);
        for (name, text) in modules {
            let bytes = wat::parse_str(format!("(module {PRELUDE} {text})")).unwrap();
            fs::write(folder.path().join(format!("{name}.wasm")), bytes).unwrap();
        }
        fs::create_dir(folder.path().join("here")).unwrap();
        fs::write(folder.path().join("here/f"), "").unwrap();
        Place(folder)
    }

    fn here(&self) -> PathBuf {
        self.0.path().join("here")
    }

    /// Runs a module in `here`.
    fn run(&self, module: &str, options: &[&str]) -> Said {
        let file = format!("../{module}.wasm");
        varve_in(&self.here(), &[&["run", &file], options].concat())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn relative_paths_are_those_of_the_folder_where_varve_was_started() {
    let place = Place::new();
    assert_eq!(place.run("opens", &[]).well().err, "");
    place.run("makes", &[]).well();
    assert!(place.here().join("made").exists());
}

#[test]
fn folders_that_are_given_take_the_place_of_the_one_where_varve_was_started() {
    let place = Place::new();
    let other = tempfile::tempdir().unwrap();
    assert_eq!(place.run("opens", &["--dir", text(other.path())]).code, 44);
    place.run("opens", &["--dir", "."]).well();
    let named = format!("{}::other", text(other.path()));
    place.run("makes", &["--dir", &named]).well();
    assert!(other.path().join("made").exists());
    assert_eq!(place.run("opens", &["--no-dir"]).code, 8, "no descriptor 3");
}

#[test]
fn a_folder_that_is_only_to_be_read_stays_as_it_is() {
    let place = Place::new();
    place.run("opens", &["--dir", ".:ro"]).well();
    assert_eq!(place.run("makes", &["--dir", ".:ro"]).code, 69);
    assert!(!place.here().join("made").exists());
}

#[test]
fn a_path_that_leads_out_is_named_with_the_option_that_gives_it() {
    let place = Place::new();
    let said = place.run("climbs", &[]);
    assert_eq!(said.code, 76);
    assert!(
        said.err.contains("note: ../f is outside") && said.err.contains("--dir . --dir .."),
        "{}",
        said.err
    );
    let here = place.here();
    let file = here.join("f");
    let elsewhere = tempfile::tempdir().unwrap();
    // The user has named a file, and the program did not find it.
    let graph = home().join("programs/dist/graph.wasm");
    let words = ["run", text(&graph), "--", "pagerank", text(&file)];
    let said = varve_in(elsewhere.path(), &words);
    assert_eq!(said.code, 1);
    let option = format!("--dir . --dir {}", text(&here));
    assert!(
        said.err.contains(text(&file)) && said.err.contains(&option),
        "{}",
        said.err
    );
    // What the note says helps.
    let words = format!(
        "run {} --dir . --dir {} -- components {}",
        graph.display(),
        here.display(),
        file.display()
    );
    let words = typed(&words);
    let said = varve_in(elsewhere.path(), &words);
    assert!(
        !said.err.contains("note:") && !said.err.contains("cannot read"),
        "{}",
        said.err
    );
}

#[test]
fn folders_that_cannot_be_given_are_refused_before_the_program_runs() {
    let place = Place::new();
    fs::create_dir(place.here().join("sub")).unwrap();
    for (options, words) in [
        (
            &["--dir", "none"][..],
            &["--dir none", "no such folder"][..],
        ),
        (&["--dir", "f"], &["--dir f", "a file, and no folder"]),
        (
            &["--dir", ".", "--dir", "sub::/"],
            &["same name as .", "--dir sub::NAME"],
        ),
        (
            &["--dir", "sub", "--dir", "./sub/"],
            &["same name", "--dir ./sub/"],
        ),
        (&["--env", "=x"], &["--env =x", "names no variable"]),
        (
            &["--env", "VARVE_NO_SUCH"],
            &["--env VARVE_NO_SUCH", "--env VARVE_NO_SUCH=VALUE"],
        ),
    ] {
        place.run("opens", options).refuses(2, words);
    }
    for words in [
        &["--dir", ""][..],
        &["--timeout", "soon"],
        &["--timeout", "0"],
    ] {
        let said = place.run("opens", words);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(words[0]), "{}", said.err);
    }
    for option in [
        &["--dir", "."][..],
        &["--no-dir"],
        &["--env", "A=1"],
        &["--inherit-env"],
        &["--timeout", "1s"],
    ] {
        varve(&[&["run", "gups:updates=2k"], option].concat())
            .refuses(2, &[option[0], "for WebAssembly programs"]);
    }
}

#[test]
fn a_program_sees_the_variables_that_it_is_given() {
    let place = Place::new();
    let out = |options: &[&str]| place.run("environment", options).well().out;
    assert_eq!(out(&[]), "");
    assert_eq!(out(&["--env", "A=1", "--env", "B="]), "A=1\0B=\0");
    let path = format!("PATH={}\0", std::env::var("PATH").unwrap());
    assert_eq!(out(&["--env", "PATH"]), path);
    let all = out(&["--inherit-env", "--env", "A=mine"]);
    assert!(all.contains(&path) && all.ends_with("A=mine\0"), "{all}");
}

#[test]
fn a_program_without_end_ends_with_the_code_of_timeout() {
    let place = Place::new();
    for tier in ["baseline", "optimizing", "auto"] {
        let said = place.run("loops", &["--timeout", "300ms", "--tier", tier]);
        said.refuses(
            124,
            &["loops.wasm", "--timeout 300ms", "in function `_start`"],
        );
    }
    let file = place.0.path().join("loops.wasm");
    let sites = place.here().join("p.sites");
    let words = format!(
        "profile {} -o {} --timeout 300ms",
        file.display(),
        sites.display()
    );
    varve(&words).refuses(124, &["--timeout 300ms"]);
    assert!(!sites.exists());
    let words = format!(
        "run {} --machine cxl-spr --plan dram --timeout 300ms",
        file.display()
    );
    varve(&words).refuses(124, &["--timeout 300ms"]);
    assert_eq!(place.run("opens", &["--timeout", "1m"]).code, 0, "in time");
}

/// It waits for its input, which never comes, and does not see that it is stopped.
#[test]
fn a_program_that_waits_is_ended_too() {
    let place = Place::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_varve"))
        .args(["run", "../waits.wasm", "--timeout", "300ms"])
        .current_dir(place.here())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let open = child.stdin.take();
    let said = Said::of(child.wait_with_output().unwrap());
    drop(open);
    said.refuses(124, &["waits.wasm", "--timeout 300ms"]);
}

#[test]
fn memory_without_end_ends_at_heap_max() {
    let place = Place::new();
    assert_eq!(place.run("grows", &["--heap-max", "64MiB"]).code, 3);
    let file = place.0.path().join("large.wasm");
    let text_form = r#"(module (memory (export "memory") 2048) (func (export "_start")))"#;
    fs::write(&file, wat::parse_str(text_form).unwrap()).unwrap();
    place.run("large", &["--heap-max", "64MiB"]).refuses(
        2,
        &[
            "large.wasm",
            "134217728 bytes of linear memory",
            "--heap-max",
        ],
    );
    place.run("large", &["--heap-max", "128MiB"]).well();
}

/// `tests/wasi/run` on tests of ours: what is given, what is expected, and what is left out.
#[test]
fn the_runner_of_wasi_tests_knows_passes_from_failures() {
    if !has("python3", "python3") {
        return;
    }
    let place = Place::new();
    let suite = tempfile::tempdir().unwrap();
    let (ours, other) = (suite.path().join("ours"), suite.path().join("other"));
    for folder in [&ours, &other] {
        fs::create_dir_all(folder.join("root")).unwrap();
        fs::write(folder.join("root/f"), "").unwrap();
        fs::copy(place.0.path().join("opens.wasm"), folder.join("finds.wasm")).unwrap();
        fs::copy(place.0.path().join("opens.wasm"), folder.join("lacks.wasm")).unwrap();
        fs::copy(
            place.0.path().join("environment.wasm"),
            folder.join("prints.wasm"),
        )
        .unwrap();
        fs::write(
            folder.join("finds.json"),
            r#"{"root": "root", "exit_code": 0}"#,
        )
        .unwrap();
        let prints = r#"{"env": {"A": "1"}, "stdout": "A=1\u0000"}"#;
        fs::write(folder.join("prints.json"), prints).unwrap();
    }
    fs::write(
        other.join("manifest.json"),
        r#"{"version": "wasm32-wasip3"}"#,
    )
    .unwrap();
    let run = |names: &[&str]| {
        let mut c = std::process::Command::new(home().join("tests/wasi/run"));
        c.arg(suite.path()).args(names);
        Said::of(
            c.env("VARVE", env!("CARGO_BIN_EXE_varve"))
                .output()
                .unwrap(),
        )
    };
    let said = run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.out.contains("FAIL  lacks: exit code 8, not 0"),
        "{}",
        said.out
    );
    assert!(
        said.out.ends_with("2 pass, 1 fail, 1 not as known\n"),
        "{}",
        said.out
    );
    assert_eq!(run(&["finds", "prints"]).code, 0);
    assert_eq!(run(&["none"]).code, 2);
}
