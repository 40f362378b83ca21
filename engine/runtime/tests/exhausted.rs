//! Full heaps and full stacks: modules that export functions which throw get an exception, all others a trap.

mod common;

use common::{Shared, console, ended};
use std::fs;
use std::io::Cursor;
use std::path::Path;
use varve_runtime::host::{State, Wasi, teavm};
use varve_runtime::*;

/// Fills the stack or the heap; catches, counts, and goes on.
const PROGRAM: &str = r#"(module
    (tag $t (param (ref $note)))
    (type $note (struct (field i32)))
    (type $node (struct (field (ref null $node)) (field i64)))
    (type $words (array (mut i64)))
    (type $chars (array (mut i16)))
    (data $text "abcdefgh")
    (func $deep (param i32) (result i32)
        (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
    ;; What the exception holds, or -1.
    (func (export "recursion") (result i32)
        (block $h (result (ref $note))
            (try_table (catch $t $h) (drop (call $deep (i32.const 0))))
            (return (i32.const -1)))
        (struct.get $note 0))
    ;; Links nodes until the heap is full. The local is what it was when that was.
    (func (export "nodes") (result i32) (local $head (ref null $node)) (local $n i32)
        (block $h (result (ref $note))
            (try_table (catch $t $h)
                (loop $l
                    (local.set $head (struct.new $node (local.get $head) (i64.const 7)))
                    (local.set $n (i32.add (local.get $n) (i32.const 1)))
                    (br $l)))
            (unreachable))
        (drop)
        (local.set $head (ref.null $node))
        (i32.gt_u (local.get $n) (i32.const 1000)))
    ;; An array that is too large for any heap, in a function that is inlined.
    (func $words (param i32) (result i32)
        (block $h (result (ref $note))
            (try_table (catch $t $h)
                (return (array.len (array.new_default $words (local.get 0)))))
            (unreachable))
        (struct.get $note 0))
    (func (export "arrays") (result i32) (local $i i32) (local $sum i32)
        (loop $l
            (local.set $sum (i32.add (local.get $sum)
                (call $words (select (i32.const 0x7000_0000) (i32.const 1) (i32.and (local.get $i) (i32.const 1))))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
        (local.get $sum))
    ;; Fills the heap with arrays from a segment.
    (func (export "text") (result i32) (local $head (ref null $link)) (local $n i32)
        (block $h (result (ref $note))
            (try_table (catch $t $h)
                (loop $l
                    (local.set $head (struct.new $link
                        (array.new_data $chars $text (i32.const 0) (i32.const 4)) (local.get $head)))
                    (local.set $n (i32.add (local.get $n) (i32.const 1)))
                    (br $l)))
            (unreachable))
        (drop)
        (i32.gt_u (local.get $n) (i32.const 1000)))
    (type $link (struct (field (ref $chars)) (field (ref null $link))))
    (func $note (param i32) (throw $t (struct.new $note (local.get 0))))
    THROWERS)"#;

const THROWERS: &str = r#"
    (func (export "varve.outOfMemory") (call $note (i32.const 11)))
    (func (export "varve.stackOverflow") (call $note (i32.const 22)))"#;

struct Program {
    store: Store<()>,
    instance: Instance,
}

impl Program {
    fn new(config: Config, throwers: &str) -> Program {
        let engine = Engine::new(config);
        let wasm = wat::parse_str(PROGRAM.replace("THROWERS", throwers)).unwrap();
        let module = Module::new(&engine, &wasm).unwrap();
        let mut store = Store::new(&engine, ()).unwrap();
        let instance = Linker::new(&engine)
            .instantiate(&mut store, &module)
            .unwrap();
        Program { store, instance }
    }

    fn call(&mut self, name: &str) -> Result<i32> {
        let f = self
            .instance
            .get_typed_func::<(), i32>(&mut self.store, name)?;
        f.call(&mut self.store, ())
    }

    fn trap(&mut self, name: &str) -> TrapKind {
        self.call(name).unwrap_err().trap().expect("a trap").kind
    }
}

fn small() -> Config {
    Config {
        heap_max: 4 << 20,
        nursery: 256 << 10,
        stack: 256 << 10,
        hot: 100,
        background: false,
        ..Config::default()
    }
}

/// Both compilers, and what changes from one to the other; every kind of plan.
fn configs() -> Vec<Config> {
    let tiers = [Tier::Auto, Tier::Baseline, Tier::Optimizing];
    let plans = ["kg-n", "kg-w", "slow-copy"].map(|plan| Some(plan.to_owned()));
    let tiers = tiers.map(|tier| Config { tier, ..small() });
    let plans = plans.map(|plan| Config { plan, ..small() });
    tiers.into_iter().chain(plans).collect()
}

#[test]
fn what_is_thrown_is_caught_again_and_again() {
    for config in configs() {
        let what = format!("{:?} {:?}", config.tier, config.plan);
        let mut p = Program::new(config, THROWERS);
        for _ in 0..100 {
            assert_eq!(p.call("recursion").unwrap(), 22, "{what}");
        }
        for _ in 0..2 {
            assert_eq!(p.call("nodes").unwrap(), 1, "{what}");
            assert_eq!(p.call("text").unwrap(), 1, "{what}");
        }
        assert_eq!(p.call("arrays").unwrap(), 500 * (11 + 1), "{what}");
    }
}

#[test]
fn and_while_every_allocation_moves_everything() {
    let config = Config {
        gc_stress: true,
        heap_max: 1 << 20,
        nursery: 64 << 10,
        nursery_max: 64 << 10,
        ..small()
    };
    let mut p = Program::new(config, THROWERS);
    assert_eq!(p.call("recursion").unwrap(), 22);
    assert_eq!(p.call("arrays").unwrap(), 500 * (11 + 1));
}

#[test]
fn a_module_without_such_functions_traps() {
    let other_type = r#"(func (export "varve.outOfMemory") (param i32)) (func (export "varve.stackOverflow") (result i32) (i32.const 1))"#;
    for throwers in ["", other_type] {
        let mut p = Program::new(small(), throwers);
        assert_eq!(p.trap("recursion"), TrapKind::StackOverflow);
        assert_eq!(p.trap("nodes"), TrapKind::OutOfMemory);
        assert_eq!(p.trap("arrays"), TrapKind::OutOfMemory);
    }
    let config = Config {
        throw_exhaustion: false,
        ..small()
    };
    let mut p = Program::new(config, THROWERS);
    assert_eq!(p.trap("recursion"), TrapKind::StackOverflow);
    assert_eq!(p.trap("nodes"), TrapKind::OutOfMemory);
}

#[test]
fn functions_that_do_not_throw_leave_the_trap() {
    let return_ = r#"(func (export "varve.outOfMemory")) (func (export "varve.stackOverflow") (unreachable))"#;
    // These find no room either.
    let fill = r#"
        (func (export "varve.stackOverflow") (drop (call $deep (i32.const 0))))
        (func (export "varve.outOfMemory") (local $head (ref null $node))
            (loop $l
                (local.set $head (struct.new $node (local.get $head) (i64.const 7)))
                (br $l)))"#;
    for throwers in [return_, fill] {
        let mut p = Program::new(small(), throwers);
        for _ in 0..3 {
            assert_eq!(p.trap("recursion"), TrapKind::StackOverflow);
            assert_eq!(p.trap("nodes"), TrapKind::OutOfMemory);
        }
    }
}

#[test]
fn what_nobody_catches_reaches_the_host() {
    let text = r#"(module (tag $t) (func $f (export "f") (call $f) (call $f))
        (func (export "varve.stackOverflow") (throw $t)))"#;
    let engine = Engine::new(small());
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let f = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
    for _ in 0..3 {
        let e = f.call(&mut store, ()).unwrap_err();
        assert!(matches!(e, Error::Exception { .. }), "{e}");
    }
}

#[test]
fn a_host_function_that_panics_meanwhile_does_so_in_the_host() {
    let text = r#"(module (import "host" "fail" (func $fail))
        (func $f (export "f") (call $f) (call $f))
        (export "varve.stackOverflow" (func $fails))
        (func $fails (call $fail)))"#;
    let engine = Engine::new(small());
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let mut linker = Linker::new(&engine);
    linker.func_any("host", "fail", (0, 0), |_, _, _| panic!("on purpose"));
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
    for _ in 0..2 {
        let call = std::panic::AssertUnwindSafe(|| f.call(&mut store, ()));
        let panic = std::panic::catch_unwind(call).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    }
}

/// A program that keeps all exceptions that it gets does not grow for ever.
#[test]
fn exceptions_that_are_kept_end_in_a_trap() {
    let text = r#"(module (tag $t (param (ref $keep)))
        (type $words (array (mut i64)))
        (type $keep (struct (field (ref null $keep)) (field (ref $words))))
        (global $kept (mut (ref null $keep)) (ref.null $keep))
        (func (export "f") (result i32) (local $n i32)
            (loop $l
                (block $h (result (ref $keep))
                    (try_table (catch $t $h)
                        (loop $fill
                            (global.set $kept (struct.new $keep (global.get $kept) (array.new_default $words (i32.const 1))))
                            (br $fill)))
                    (unreachable))
                (global.set $kept)
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $l (i32.lt_u (local.get $n) (i32.const 10_000))))
            (local.get $n))
        (func (export "varve.outOfMemory")
            (throw $t (struct.new $keep (global.get $kept) (array.new_default $words (i32.const 100))))))"#;
    let engine = Engine::new(Config {
        heap_max: 1 << 20,
        ..small()
    });
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let f = instance.get_typed_func::<(), i32>(&mut store, "f").unwrap();
    let e = f.call(&mut store, ()).unwrap_err();
    assert_eq!(e.trap().map(|t| t.kind), Some(TrapKind::OutOfMemory), "{e}");
}

/// A host function that calls back: exceptions pass through it.
#[test]
fn a_host_function_between_passes_it_on() {
    let text = r#"(module (tag $t)
        (import "host" "back" (func $back (param i32)))
        (func (export "again") (param i32) (call $back (i32.add (local.get 0) (i32.const 1))))
        (func (export "f") (result i32)
            (block $h (try_table (catch $t $h) (call $back (i32.const 0))) (return (i32.const 0)))
            (i32.const 1))
        (func (export "varve.stackOverflow") (throw $t)))"#;
    let engine = Engine::new(small());
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let mut linker = Linker::new(&engine);
    linker.func_any("host", "back", (1, 0), |mut c, params, _| {
        let again = c.get_export("again").and_then(Extern::into_func).unwrap();
        again.call(&mut c, params, &mut [])
    });
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<(), i32>(&mut store, "f").unwrap();
    for _ in 0..3 {
        assert_eq!(f.call(&mut store, ()).unwrap(), 1);
    }
}

fn java(config: Config, args: &[&str]) -> (i32, String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/dist/errors.wasm");
    let engine = Engine::new(config);
    let module = Module::new(&engine, &fs::read(file).unwrap()).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(Cursor::new(""), &out, &err),
        wasi: Wasi::new(),
        clock: Default::default(),
    };
    let mut store = Store::new(&engine, state).unwrap();
    let args: Vec<String> = args.iter().map(|&a| a.into()).collect();
    let outcome = teavm::run_main(&mut store, &module, &args);
    let (code, last) = ended(outcome);
    (code, out.text(), err.text() + &last)
}

/// In every plan and both compilers, a Java program fills a heap of 4 MiB six times and goes on.
#[test]
fn java_programs_go_on_after_a_full_heap() {
    for config in configs() {
        let what = format!("{:?} {:?}", config.tier, config.plan);
        let config = Config {
            heap_max: 4 << 20,
            stack: 8 << 20,
            hot: 1000,
            ..config
        };
        let (code, out, err) = java(config, &["full"]);
        assert_eq!(code, 0, "{what}: {err}");
        let rounds = (0..6).map(|i| format!("round {i}: -1, then 499500\n"));
        let wanted =
            rounds.collect::<String>() + "java.lang.OutOfMemoryError\nkept by hand: true\n";
        assert_eq!(out, wanted, "{what}");
    }
}

#[test]
fn what_no_java_code_catches_ends_the_program_with_its_stack() {
    let (code, _, err) = java(small(), &["recursion"]);
    assert_eq!(code, 1);
    let begin = "Exception in thread \"main\" java.lang.StackOverflowError\n\tat varve.errors.Failures.down";
    assert!(err.starts_with(begin), "{err}");
    let (code, _, err) = java(small(), &["memory"]);
    assert_eq!(code, 1);
    let begin = "Exception in thread \"main\" java.lang.OutOfMemoryError: the heap is full (see --heap-max)\n\tat ";
    assert!(err.starts_with(begin), "{err}");
    assert!(err.contains("\tat varve.errors.Failures.fail\n"), "{err}");
}
