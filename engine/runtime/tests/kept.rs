//! Compiled code that is kept from run to run: it is used where it may be, and nowhere else.

#[path = "common/program.rs"]
mod program;

use program::Program;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use varve_runtime::*;

/// Optimizes after a few calls or iterations, at once, and keeps code in a folder.
fn keeping(folder: &Path) -> Config {
    Config {
        hot: 100,
        background: false,
        code_cache: Some(folder.into()),
        ..Config::default()
    }
}

/// A loop, calls through a reference of which one target is hot, floating point of the host, objects that are kept across collections, an exception
/// and a trap.
const PROGRAM: &str = r#"(module
    (import "env" "number" (global $number i32))
    (import "math" "hypot" (func $hypot (param f64 f64) (result f64)))
    (type $op (func (param i32) (result i32)))
    (type $node (struct (field i32) (field (ref null $node))))
    (tag $odd (param i32))
    (elem declare func $double $square)
    (func $double (type $op) (i32.mul (local.get 0) (i32.const 2)))
    (func $square (type $op) (i32.mul (local.get 0) (local.get 0)))
    (func (export "apply") (param $which i32) (param $n i32) (result i32) (local $i i32) (local $s i32)
        (local $f (ref null $op))
        (local.set $f (select (result (ref null $op))
            (ref.func $square) (ref.func $double) (local.get $which)))
        (loop $l
            (local.set $s (i32.add (local.get $s) (call_ref $op (local.get $i) (local.get $f))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_s (local.get $i) (local.get $n))))
        (i32.add (local.get $s) (global.get $number)))
    (func $cons (param i32) (param (ref null $node)) (result (ref $node))
        (struct.new $node (local.get 0) (local.get 1)))
    (func (export "list") (param $n i32) (result i32) (local $l (ref null $node)) (local $s i32)
        (loop $make
            (local.set $l (call $cons (local.get $n) (local.get $l)))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br_if $make (local.get $n)))
        (loop $sum
            (local.set $s (i32.add (local.get $s) (struct.get $node 0 (local.get $l))))
            (local.set $l (struct.get $node 1 (local.get $l)))
            (br_if $sum (i32.eqz (ref.is_null (local.get $l)))))
        (local.get $s))
    (func (export "far") (param f64) (result f64)
        (call $hypot (local.get 0) (f64.const 4)))
    (func $check (param i32)
        (if (i32.and (local.get 0) (i32.const 1)) (then (throw $odd (local.get 0)))))
    (func (export "caught") (param $n i32) (result i32) (local $i i32) (local $s i32)
        (loop $l
            (local.set $s (i32.add (local.get $s)
                (block $caught (result i32)
                    (try_table (catch $odd $caught) (call $check (local.get $i)))
                    (i32.const 0))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_s (local.get $i) (local.get $n))))
        (local.get $s))
    (func $divide (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
    (func (export "trap") (param i32) (result i32)
        (call $divide (i32.const 7) (local.get 0))))"#;

/// The output of a run, so to speak.
fn results(run: &mut Program) -> Vec<String> {
    let mut said = vec![
        format!("{:?}", run.call::<_, i32>("apply", (0, 1000))),
        format!("{:?}", run.call::<i32, i32>("list", 20_000)),
        format!("{:?}", run.call::<i32, i32>("caught", 2000)),
    ];
    for _ in 0..50 {
        let far: f64 = run.call("far", 3.0).unwrap();
        assert_eq!(far, 5.0);
        let seven: i32 = run.call("trap", 1).unwrap();
        assert_eq!(seven, 7);
    }
    let Error::Trap(trap) = run.call::<i32, i32>("trap", 0).unwrap_err() else {
        panic!("it divides by zero");
    };
    let frames = trap.frames.iter();
    let frames = frames.map(|f| format!("{} at {:#x}", f.function, f.offset));
    said.push(format!("{:?} {:?}", trap.kind, frames.collect::<Vec<_>>()));
    said
}

fn files(folder: &TempDir) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.map(|e| e.unwrap().path()).collect()
}

#[test]
fn the_second_run_compiles_nothing_and_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::with_number(keeping(folder.path()), PROGRAM, 5);
    let wanted = results(&mut first);
    let stats = first.stats();
    assert!(stats.baseline > 0 && stats.optimized > 0, "{stats:?}");
    assert_eq!(stats.kept, 0);
    assert_eq!(files(&folder).len(), 0, "the program still runs");
    drop(first);
    assert_eq!(files(&folder).len(), 1);
    for _ in 0..2 {
        let mut next = Program::with_number(keeping(folder.path()), PROGRAM, 5);
        assert_eq!(results(&mut next), wanted);
        let stats = next.stats();
        assert_eq!((stats.baseline, stats.optimized), (0, 0), "{stats:?}");
        assert!(stats.kept > 0);
    }
    assert_eq!(files(&folder).len(), 1);
}

/// A killed process never drops its store.
#[test]
fn what_a_program_compiled_is_kept_while_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        code_cache_after: Duration::ZERO,
        ..keeping(folder.path())
    };
    let mut first = Program::with_number(config, PROGRAM, 5);
    let wanted = results(&mut first);
    // All is compiled now, and the next allocation keeps what is not yet kept.
    assert_eq!(results(&mut first), wanted);
    assert_eq!(files(&folder).len(), 1);
    let written = fs::metadata(&files(&folder)[0])
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(results(&mut first), wanted);
    let again = fs::metadata(&files(&folder)[0])
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(written, again, "nothing new is nothing to keep");

    let mut next = Program::with_number(keeping(folder.path()), PROGRAM, 5);
    assert_eq!(results(&mut next), wanted);
    let stats = next.stats();
    assert_eq!((stats.baseline, stats.optimized), (0, 0), "{stats:?}");
}

#[test]
fn kept_code_survives_collections_at_every_allocation() {
    let folder = tempfile::tempdir().unwrap();
    results(&mut Program::with_number(
        keeping(folder.path()),
        PROGRAM,
        5,
    ));
    let config = Config {
        gc_stress: true,
        ..keeping(folder.path())
    };
    let mut next = Program::with_number(config, PROGRAM, 5);
    assert_eq!(next.call::<i32, i32>("list", 300).unwrap(), 45_150);
    let stats = next.stats();
    assert!(stats.kept > 0 && stats.optimized == 0, "{stats:?}");
}

/// The first run has only seen the one target of the call. The guard in its code fails in the second, whose new code the third one has.
#[test]
fn kept_code_that_expects_something_else_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::with_number(keeping(folder.path()), PROGRAM, 5);
    for _ in 0..20 {
        assert_eq!(first.call::<_, i32>("apply", (0, 300)).unwrap(), 89_705);
    }
    drop(first);
    let squares = |run: &mut Program| {
        for _ in 0..100 {
            assert_eq!(run.call::<_, i32>("apply", (1, 100)).unwrap(), 328_355);
        }
        run.stats()
    };
    let stats = squares(&mut Program::with_number(
        keeping(folder.path()),
        PROGRAM,
        5,
    ));
    assert!(stats.kept > 0 && stats.failed_guards > 0, "{stats:?}");
    let mut last = stats;
    for _ in 0..3 {
        last = squares(&mut Program::with_number(
            keeping(folder.path()),
            PROGRAM,
            5,
        ));
    }
    assert_eq!((last.optimized, last.failed_guards), (0, 0), "{last:?}");
}

#[test]
fn code_of_another_module_import_or_engine_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    drop(Program::with_number(keeping(folder.path()), PROGRAM, 5));
    assert_eq!(files(&folder).len(), 0, "there was no code");
    results(&mut Program::with_number(
        keeping(folder.path()),
        PROGRAM,
        5,
    ));
    let unknown = |config: Config, wat: &str, number: i32, wanted: i32| {
        let mut run = Program::with_number(config, wat, number);
        assert_eq!(run.call::<_, i32>("apply", (0, 1000)).unwrap(), wanted);
        assert_eq!(run.stats().kept, 0);
    };
    let usual = || keeping(folder.path());
    let triple = PROGRAM.replacen("(i32.const 2)", "(i32.const 3)", 1);
    unknown(usual(), &triple, 5, 1_498_505);
    unknown(usual(), PROGRAM, 6, 999_006);
    let interruptible = Config {
        interruptible: true,
        ..usual()
    };
    unknown(interruptible, PROGRAM, 5, 999_005);
    let aligned = Config {
        object_align: ObjectAlign::new(16).unwrap(),
        ..usual()
    };
    unknown(aligned, PROGRAM, 5, 999_005);
    for tier in [Tier::Baseline, Tier::Optimizing] {
        unknown(Config { tier, ..usual() }, PROGRAM, 5, 999_005);
    }
    let checked = Config {
        checks: Some(Checks::Profiled),
        ..usual()
    };
    unknown(checked, PROGRAM, 5, 999_005);
    // Of those, all have files of their own that may keep code: another module, number, interruptible and alignment.
    assert_eq!(files(&folder).len(), 5);
}

#[test]
fn a_damaged_file_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = results(&mut Program::with_number(
        keeping(folder.path()),
        PROGRAM,
        5,
    ));
    let [file] = &files(&folder)[..] else {
        panic!("one file")
    };
    let whole = fs::read(file).unwrap();
    for cut in [0, 3, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(file, &whole[..cut]).unwrap();
        let mut run = Program::with_number(keeping(folder.path()), PROGRAM, 5);
        assert_eq!(results(&mut run), wanted);
        assert_eq!(run.stats().kept, 0, "cut at {cut}");
        drop(run);
        let mut run = Program::with_number(keeping(folder.path()), PROGRAM, 5);
        assert_eq!(results(&mut run), wanted);
        assert!(run.stats().kept > 0, "made anew");
    }
}

#[test]
fn a_folder_that_cannot_be_is_no_failure_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "taken").unwrap();
    results(&mut Program::with_number(
        keeping(&file.join("in it")),
        PROGRAM,
        5,
    ));
    assert_eq!(fs::read_to_string(&file).unwrap(), "taken");
}

#[test]
fn functions_that_a_later_instance_brings_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Program::with_number(keeping(folder.path()), PROGRAM, 5);
    results(&mut run);
    let engine = run.store.engine().clone();
    let other = r#"(module (func (export "f") (result i32) (i32.const 3)))"#;
    let module = Module::new(&engine, &wat::parse_str(other).unwrap()).unwrap();
    let instance = Linker::new(&engine).instantiate(&mut run.store, &module);
    let f = instance
        .unwrap()
        .get_typed_func::<(), i32>(&mut run.store, "f");
    assert_eq!(f.unwrap().call(&mut run.store, ()).unwrap(), 3);
    drop(run);
    assert_eq!(files(&folder).len(), 0);
}
