//! Java and Kotlin programs from `programs/dist`: every line of `programs/cases` prints what the JDK prints for the same sources.

mod common;

use common::{Shared, console, ended};
use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use varve_runtime::host::{State, Wasi, teavm, wasi};
use varve_runtime::*;

/// Cases that the engine cannot run yet, each with the reason. There are none.
const SKIPPED: &[(&str, &str)] = &[];

fn programs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../programs")
        .canonicalize()
        .unwrap()
}

/// A line of `cases`: how a program is called, and the code that it ends with.
struct Case {
    name: String,
    code: i32,
    input: Vec<u8>,
    program: String,
    args: Vec<String>,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(programs().join("cases")).unwrap();
    let lines = text
        .lines()
        .filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let mut next = || words.next().unwrap_or_else(|| panic!("too short: {line}"));
            Case {
                name: next(),
                code: next().parse().unwrap_or_else(|e| panic!("{line}: {e}")),
                input: match next().as_str() {
                    "-" => Vec::new(),
                    file => fs::read(programs().join(file)).unwrap(),
                },
                program: next(),
                args: words.collect(),
            }
        })
        .collect()
}

/// Runs cases, each module loaded once; whatever is not as expected, a line each.
fn failures<'a>(config: Config, cases: impl Iterator<Item = &'a Case>) -> Vec<String> {
    let engine = Engine::new(config);
    let mut modules = HashMap::new();
    let mut failures = Vec::new();
    for case in cases {
        let module = modules.entry(case.program.clone()).or_insert_with(|| {
            let file = programs().join(format!("dist/{}.wasm", case.program));
            Module::new(&engine, &fs::read(file).unwrap()).unwrap()
        });
        failures.extend(failure(&engine, module, case).map(|f| format!("{}: {f}", case.name)));
    }
    failures
}

/// These write files, each its own, which all tests that run the cases would write at the same time.
const WRITERS: [&str; 2] = ["errors-write", "graph-shards"];
static WRITER: Mutex<()> = Mutex::new(());

fn failure(engine: &Engine, module: &Module, case: &Case) -> Option<String> {
    let _alone = WRITERS
        .contains(&case.name.as_str())
        .then(|| WRITER.lock().unwrap_or_else(PoisonError::into_inner));
    let (out, err) = (Shared::default(), Shared::default());
    let here = programs();
    let state = State {
        console: console(Cursor::new(case.input.clone()), &out, &err),
        wasi: Wasi::new().preopen(&here, ".").unwrap(),
        clock: Default::default(),
    };
    let mut store = Store::new(engine, state).unwrap();
    let outcome = match teavm::is_teavm(module) {
        true => teavm::run_main(&mut store, module, &case.args),
        false => wasi::run_command(&mut store, module),
    };
    let (code, last) = ended(outcome);
    let (out, err) = (out.text(), err.text() + &last);
    if code != case.code {
        return Some(format!("exit code {code}, expected {}: {err}", case.code));
    }
    let expected = here.join("expected").join(&case.name);
    let wanted = fs::read_to_string(expected.with_extension("out")).unwrap();
    if out != wanted {
        return Some(format!("printed\n{out}\nexpected\n{wanted}"));
    }
    let part = fs::read_to_string(expected.with_extension("err")).unwrap_or_default();
    let part = part.trim_end();
    (!err.contains(part)).then(|| format!("standard error lacks `{part}`: {err}"))
}

#[test]
fn every_case_prints_what_the_jdk_prints() {
    let cases = cases();
    assert!(cases.len() > 30, "only {} cases found", cases.len());
    for (name, reason) in SKIPPED {
        assert!(cases.iter().any(|c| c.name == *name), "no case {name}");
        varve_skip::skip!("{name}: {reason}");
    }
    let run = cases
        .iter()
        .filter(|c| SKIPPED.iter().all(|(name, _)| *name != c.name));
    let failures = failures(Config::default(), run);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_program_in_dist_has_a_case() {
    let cases = cases();
    for file in fs::read_dir(programs().join("dist")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // Beside a module there is its source map.
        if let Some(program) = name.strip_suffix(".wasm") {
            assert!(cases.iter().any(|c| c.program == program), "{program}");
        }
    }
}

#[test]
fn and_in_a_small_heap_with_many_collections_by_several_threads() {
    let config = Config {
        heap_max: 24 << 20,
        nursery: 256 << 10,
        gc_threads: Some(4),
        ..Config::default()
    };
    let cases = cases();
    let names = ["collections", "strings", "trees", "kv", "graph-ranks"];
    let run: Vec<_> = cases
        .iter()
        .filter(|c| names.contains(&c.name.as_str()))
        .collect();
    assert_eq!(run.len(), names.len());
    let failures = failures(config, run.into_iter());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Wherever objects may begin.
#[test]
fn and_with_objects_that_are_aligned_to_more() {
    let cases = cases();
    for (bytes, tier, nursery) in [
        (16, Tier::Auto, 256 << 10),
        (64, Tier::Optimizing, 4 << 20),
        (256, Tier::Auto, 1 << 20),
    ] {
        let config = Config {
            object_align: ObjectAlign::new(bytes).unwrap(),
            heap_max: 4 << 30,
            nursery,
            tier,
            hot: 1000,
            ..Config::default()
        };
        let failures = failures(config, cases.iter());
        assert!(failures.is_empty(), "{bytes}: {}", failures.join("\n\n"));
    }
}

/// Wherever objects are, and however often they move while the program runs: it prints the same.
#[test]
fn and_under_plans_that_go_by_marks_and_intervals() {
    let cases = cases();
    let graphs = || cases.iter().filter(|c| c.program == "graph");
    assert!(graphs().count() > 5);
    let sampled = "alpha=1,intervals=1,hold-off=0s";
    let plans = [
        "hints".into(),
        format!("pima:{sampled}"),
        format!("hints+pima:{sampled}"),
    ];
    for plan in plans {
        let config = Config {
            plan: Some(plan.clone()),
            nursery: 256 << 10,
            ..Config::default()
        };
        let failures = failures(config, graphs());
        assert!(failures.is_empty(), "{plan}: {}", failures.join("\n\n"));
    }
}

#[test]
fn and_in_optimized_code() {
    let config = Config {
        tier: Tier::Optimizing,
        ..Config::default()
    };
    let failures = failures(config, cases().iter());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Hot after a few calls: the counters have seen little then, and guards fail all the time.
#[test]
fn and_while_code_is_optimized_too_early() {
    let config = Config {
        hot: 30,
        background: false,
        nursery: 256 << 10,
        ..Config::default()
    };
    let failures = failures(config, cases().iter());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Code that earlier runs have left, and what they counted: it is used, and does the same.
#[test]
fn and_with_compiled_code_of_earlier_runs() {
    let usual = Config {
        background: false,
        ..Config::default()
    };
    let early = Config {
        hot: 30,
        nursery: 256 << 10,
        // It keeps while it runs, again and again.
        code_cache_after: Duration::from_millis(5),
        ..usual.clone()
    };
    for config in [usual, early] {
        let kept = tempfile::tempdir().unwrap();
        let config = Config {
            code_cache: Some(kept.path().into()),
            ..config
        };
        for run in 1..=3 {
            let failures = failures(config.clone(), cases().iter());
            assert!(failures.is_empty(), "run {run}: {}", failures.join("\n\n"));
        }
        let files = fs::read_dir(kept.path()).unwrap().count();
        assert!(files >= 10, "{files} files of code");
    }
}

#[test]
fn an_import_of_another_shape_than_the_hosts_is_refused() {
    let engine = Engine::default();
    let shapes = [
        ("teavmConsole", "putcharStdout", "(func)"),
        ("teavmMath", "pow", "(func (param f64) (result f64))"),
        ("teavmMath", "sin", "(func (param f64))"),
        ("wasm:js-string", "length", "(func (param externref))"),
        ("teavmJso", "wrapInt", "(memory 1)"),
    ];
    for (module, name, shape) in shapes {
        let text = format!(
            r#"(module (import "{module}" "{name}" {shape}) (import "teavmDate" "currentTimeMillis" (func (result f64))))"#
        );
        let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
        let mut store = quiet(&engine, Box::new(std::io::sink()));
        let e = teavm::run_main(&mut store, &module, &[]).unwrap_err();
        assert!(matches!(e, Error::ImportType { .. }), "{name}: {e}");
    }
    let text = r#"(module (import "teavm" "x" (func))
        (@custom "teavm.memoryRequirements" "{\"dataSize\":4294967295,\"min\":4294967295}"))"#;
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let e =
        teavm::run_main(&mut quiet(&engine, Box::new(std::io::sink())), &module, &[]).unwrap_err();
    assert!(e.to_string().contains("4294967295 bytes of data"), "{e}");
}

#[test]
fn a_disk_that_is_full_is_named_as_that_of_standard_output() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let engine = Engine::default();
    let file = programs().join("dist/hello.wasm");
    let module = Module::new(&engine, &fs::read(file).unwrap()).unwrap();
    let e = teavm::run_main(&mut quiet(&engine, Box::new(Full)), &module, &[]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "writing standard output failed: no storage space"
    );
}

/// A store without input whose output goes there.
fn quiet(engine: &Engine, out: Box<dyn std::io::Write + Send>) -> Store<State> {
    let mut console = console(Cursor::new(""), &Shared::default(), &Shared::default());
    console.out = varve_runtime::host::Output::new(out);
    let wasi = Wasi::new();
    Store::new(
        engine,
        State {
            console,
            wasi,
            clock: Default::default(),
        },
    )
    .unwrap()
}

#[test]
fn an_exception_that_escapes_prints_its_stack() {
    let engine = Engine::default();
    let file = programs().join("dist/errors.wasm");
    let module = Module::new(&engine, &fs::read(file).unwrap()).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(Cursor::new(""), &out, &err),
        wasi: Wasi::new(),
        clock: Default::default(),
    };
    let mut store = Store::new(&engine, state).unwrap();
    let args = ["throw".to_owned()];
    assert_eq!(teavm::run_main(&mut store, &module, &args).unwrap(), 1);
    let err = err.text();
    assert!(!err.contains(".java:"), "no lines without a map: {err}");
    let begin = "Exception in thread \"main\" java.lang.IllegalStateException: gave up with code 42\n\tat varve.errors.Failures.outer";
    assert!(err.starts_with(begin), "{err}");
}

#[test]
fn the_stack_has_lines_if_somebody_knows_them() {
    let engine = Engine::default();
    let file = programs().join("dist/errors.wasm");
    let bytes = fs::read(file).unwrap();
    let module = Module::new(&engine, &bytes).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(Cursor::new(""), &out, &err),
        wasi: Wasi::new(),
        clock: Default::default(),
    };
    let mut store = Store::new(&engine, state).unwrap();
    store.source_lines(move |offset| Some(format!("Failures.java:{}", bytes[offset as usize])));
    let args = ["throw".to_owned()];
    assert_eq!(teavm::run_main(&mut store, &module, &args).unwrap(), 1);
    let err = err.text();
    // The bytes at the offsets of the callers are those of calls.
    let outer = "\tat varve.errors.Failures.outer(Failures.java:16)";
    assert!(err.contains(outer), "{err}");
}
