//! Stories of what goes wrong: each ends in one clear error, never in the end of the process.

use varve_runtime::*;

fn load(text: &str) -> Result<Module> {
    Module::new(&Engine::default(), &wat::parse_str(text).unwrap())
}

/// Runs the export `run` without arguments.
fn run_with(config: Config, text: &str) -> Result<Vec<Val>> {
    let engine = Engine::new(config);
    let module = Module::new(&engine, &wat::parse_str(text).unwrap())?;
    let mut store = Store::new(&engine, ())?;
    let instance = Linker::new(&engine).instantiate(&mut store, &module)?;
    let run = instance.get_func(&mut store, "run").unwrap();
    let mut results = vec![Val::I32(0); run.ty(&mut store)?.results.len()];
    run.call(&mut store, &[], &mut results)?;
    Ok(results)
}

/// A store with an instance of a module; `define` adds its imports to the linker.
fn made(
    engine: &Engine,
    text: &str,
    define: impl FnOnce(&mut Linker<()>),
) -> (Store<()>, Instance) {
    let module = Module::new(engine, &wat::parse_str(text).unwrap()).unwrap();
    let mut store = Store::new(engine, ()).unwrap();
    let mut linker = Linker::new(engine);
    define(&mut linker);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// An export of it.
fn typed<P: WasmTypes, R: WasmResults>(
    store: &mut Store<()>,
    of: &Instance,
    name: &str,
) -> TypedFunc<P, R> {
    of.get_typed_func(store, name).unwrap()
}

/// A function of the host that calls the export `run` of its caller.
fn run_again(mut caller: Caller<'_, ()>) -> Result<()> {
    let run = caller.get_export("run").and_then(Extern::into_func);
    run.unwrap().call(&mut caller, &[], &mut [])
}

fn run(text: &str) -> Result<Vec<Val>> {
    run_with(Config::default(), text)
}

#[test]
fn a_module_that_does_not_validate_names_function_and_offset() {
    let e = load(r#"(module (func $good) (func $bad (result i32) (i64.const 1)))"#).unwrap_err();
    assert!(
        matches!(&e, Error::Invalid { function: Some(f), .. } if f == "`bad`"),
        "{e}"
    );
    assert_eq!(
        e.to_string(),
        "invalid module: type mismatch: expected i32, found i64 (at offset 0x21 in function `bad`)"
    );
}

#[test]
fn a_truncated_module_says_where_it_ends() {
    let engine = Engine::default();
    let bytes = wat::parse_str(r#"(module (func (export "run") (nop)))"#).unwrap();
    for end in 0..bytes.len() {
        // Some prefixes end between sections and are modules; no other loads, and none panics.
        match Module::new(&engine, &bytes[..end]) {
            Ok(_) => assert!(end >= 8),
            Err(e) => {
                assert!(matches!(e, Error::Invalid { .. }), "{end}: {e}");
                let remedy = "the file is incomplete or damaged, build or copy it again";
                assert!(e.to_string().contains(remedy), "{end}: {e}");
            }
        }
    }
    let e = Module::new(&engine, b"#!/bin/sh").unwrap_err().to_string();
    assert!(
        e.starts_with("invalid module: magic header not detected"),
        "{e}"
    );
}

#[test]
fn names_of_a_module_cannot_break_the_line_of_an_error() {
    let e = load(r#"(module (func $f (export "a\nb") (export "a\nb")))"#).unwrap_err();
    assert!(
        e.to_string().contains(r"duplicate export name `a\nb`"),
        "{e}"
    );
    let text = r#"(module (func (export "run\u{1b}[2J") unreachable))"#;
    let engine = Engine::default();
    let (mut store, instance) = made(&engine, text, |_| ());
    let run = instance.get_func(&mut store, "run\u{1b}[2J").unwrap();
    let e = run.call(&mut store, &[], &mut []).unwrap_err();
    assert!(e.to_string().contains(r"in function `run\u{1b}[2J`"), "{e}");
    let module = wat::parse_str(r#"(module (import "x\0a" "y" (func)))"#).unwrap();
    let e = Linker::new(&engine)
        .instantiate(&mut store, &Module::new(&engine, &module).unwrap())
        .unwrap_err();
    assert!(e.to_string().contains(r"function `x\n` `y`"), "{e}");
}

#[test]
fn all_functions_can_be_compiled_before_they_are_called() {
    let engine = Engine::default();
    let text = r#"(module (import "host" "f" (func $f (result i32)))
        (func (export "run") (result i32) (call $f)) (func (result i32) (call 1)))"#;
    let (mut store, instance) = made(&engine, text, |linker| {
        linker.func_wrap("host", "f", || 7);
    });
    let run = typed::<(), i32>(&mut store, &instance, "run");
    instance.compile(&mut store).unwrap();
    assert_eq!(run.call(&mut store, ()).unwrap(), 7);
    instance.compile(&mut store).unwrap();
    assert_eq!(run.call(&mut store, ()).unwrap(), 7);
    let mut other = Store::new(&engine, ()).unwrap();
    assert!(instance.compile(&mut other).is_err());
}

#[test]
fn unsupported_proposals_are_refused_by_name() {
    for (text, name) in [
        (
            "(module (func (param v128 v128) (result v128)
                (i8x16.relaxed_swizzle (local.get 0) (local.get 1))))",
            "relaxed SIMD",
        ),
        ("(module (memory 1 1 shared))", "threads"),
        ("(component)", "the component model"),
    ] {
        let e = load(text).unwrap_err();
        assert!(
            matches!(&e, Error::Unsupported { feature, .. } if feature == name),
            "{text}: {e}"
        );
    }
}

#[test]
fn a_missing_import_is_named_with_its_kind() {
    let engine = Engine::default();
    let module = Module::new(
        &engine,
        &wat::parse_str(r#"(module (import "env" "now" (func (result f64))))"#).unwrap(),
    )
    .unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let e = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap_err();
    assert_eq!(
        e.to_string(),
        "missing import: the module needs function `env` `now`; define it in the linker"
    );
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "now", || 1i64);
    let e = linker.instantiate(&mut store, &module).unwrap_err();
    assert_eq!(
        e.to_string(),
        "incompatible import type: `env` `now`: the module expects function () -> (f64), given is function () -> (i64)"
    );
}

#[test]
fn a_trap_names_the_functions_and_offsets_that_led_to_it() {
    let e = run(r#"(module
        (func $inner (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
        (func $outer (export "run") (result i32) (call $inner (i32.const 0))))"#)
    .unwrap_err();
    let trap = e.trap().unwrap();
    assert_eq!(trap.kind, TrapKind::IntegerDivisionByZero);
    let names: Vec<_> = trap.frames.iter().map(|f| f.function.as_str()).collect();
    assert_eq!(names, ["`inner`", "`outer`"]);
    assert_eq!(
        e.to_string(),
        "trap: integer divide by zero in function `inner` at offset 0x2b"
    );
    // The offset is that of the instruction: `i32.div_s` is 0x6d.
    let bytes = wat::parse_str(
        r#"(module
        (func $inner (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
        (func $outer (export "run") (result i32) (call $inner (i32.const 0))))"#,
    )
    .unwrap();
    assert_eq!(bytes[trap.frames[0].offset as usize], 0x6d);
    assert_eq!(bytes[trap.frames[1].offset as usize], 0x10, "the call");
}

#[test]
fn endless_recursion_is_a_trap_and_the_store_goes_on() {
    let text = r#"(module
        (func $deeper (param i64 i64 i64) (result i64)
            (i64.add (i64.const 1) (call $deeper (local.get 2) (local.get 0) (local.get 1))))
        (func (export "run") (result i64) (call $deeper (i64.const 1) (i64.const 2) (i64.const 3)))
        (func (export "fine") (result i32) (i32.const 5)))"#;
    let (mut store, instance) = made(&Engine::default(), text, |_| ());
    let run = typed::<(), i64>(&mut store, &instance, "run");
    for _ in 0..3 {
        let e = run.call(&mut store, ()).unwrap_err();
        assert_eq!(e.trap().unwrap().kind, TrapKind::StackOverflow, "{e}");
        assert!(
            e.to_string()
                .starts_with("trap: call stack exhausted in function `deeper`"),
            "{e}"
        );
    }
    let fine = typed::<(), i32>(&mut store, &instance, "fine");
    assert_eq!(fine.call(&mut store, ()).unwrap(), 5);
}

#[test]
fn recursion_through_the_host_ends_the_same_way() {
    let text =
        r#"(module (import "host" "again" (func $again)) (func (export "run") (call $again)))"#;
    let (mut store, instance) = made(&Engine::default(), text, |linker| {
        linker.func_wrap("host", "again", run_again);
    });
    let run = typed::<(), ()>(&mut store, &instance, "run");
    let e = run.call(&mut store, ()).unwrap_err();
    assert_eq!(e.trap().unwrap().kind, TrapKind::StackOverflow, "{e}");
}

#[test]
fn a_full_heap_is_a_trap_and_its_garbage_is_reused() {
    let engine = Engine::new(Config {
        heap_max: 16 << 20,
        nursery: 1 << 20,
        ..Config::default()
    });
    let text = r#"(module
        (type $list (struct (field (ref null $list)) (field i64)))
        (global $kept (mut (ref null $list)) (ref.null $list))
        (func (export "fill") (loop $more
            (global.set $kept (struct.new $list (global.get $kept) (i64.const 1)))
            (br $more)))
        (func (export "clear") (global.set $kept (ref.null $list)))
        (func (export "long") (drop (array.new_default $longs (i32.const -1))))
        (type $longs (array i64))
        (func (export "count") (param i32) (result i32) (local $n i32)
            (loop $more
                (global.set $kept (struct.new $list (global.get $kept) (i64.const 1)))
                (br_if $more (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (local.get 0))))
            (local.get $n)))"#;
    let (mut store, instance) = made(&engine, text, |_| ());
    let fill = typed::<(), ()>(&mut store, &instance, "fill");
    let clear = typed::<(), ()>(&mut store, &instance, "clear");
    let count = typed::<i32, i32>(&mut store, &instance, "count");
    for _ in 0..3 {
        let e = fill.call(&mut store, ()).unwrap_err();
        assert_eq!(e.trap().unwrap().kind, TrapKind::OutOfMemory, "{e}");
        clear.call(&mut store, ()).unwrap();
        assert_eq!(count.call(&mut store, 100_000).unwrap(), 100_000);
        clear.call(&mut store, ()).unwrap();
    }
    let long = typed::<(), ()>(&mut store, &instance, "long");
    let e = long.call(&mut store, ()).unwrap_err();
    assert_eq!(e.trap().unwrap().kind, TrapKind::OutOfMemory, "{e}");
}

#[test]
fn an_error_of_a_host_function_comes_out_as_it_is() {
    let text = r#"(module (import "host" "fail" (func $fail (param i32) (result i32)))
        (func (export "run") (result i32) (i32.add (call $fail (i32.const 3)) (i32.const 1))))"#;
    let (mut store, instance) = made(&Engine::default(), text, |linker| {
        linker.func_wrap("host", "fail", |n: i32| -> Result<i32> {
            if n == 3 {
                Err(Error::host("disk on fire"))
            } else {
                Err(Error::Exit(n))
            }
        });
    });
    let run = typed::<(), i32>(&mut store, &instance, "run");
    assert_eq!(
        run.call(&mut store, ()).unwrap_err().to_string(),
        "host function failed: disk on fire"
    );
}

#[test]
fn a_panic_of_a_host_function_passes_through() {
    let text = r#"(module (import "host" "panic" (func $panic)) (func (export "run") (call $panic))
        (func (export "fine") (result i32) (i32.const 5)))"#;
    let (mut store, instance) = made(&Engine::default(), text, |linker| {
        linker.func_wrap("host", "panic", || -> () { std::panic::panic_any(42i32) });
    });
    let run = typed::<(), ()>(&mut store, &instance, "run");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.call(&mut store, ())))
        .unwrap_err();
    assert_eq!(panic.downcast_ref::<i32>(), Some(&42));
    let fine = typed::<(), i32>(&mut store, &instance, "fine");
    assert_eq!(fine.call(&mut store, ()).unwrap(), 5);
}

#[test]
fn an_uncaught_exception_can_be_looked_into_and_thrown_again() {
    let text = r#"(module
        (tag $t (export "t") (param i32 f64))
        (import "host" "rethrow" (func $rethrow))
        (func (export "run") (throw $t (i32.const 7) (f64.const 2.5)))
        (func (export "catch") (result i32 f64)
            (block $h (result i32 f64)
                (try_table (catch $t $h) (call $rethrow))
                (i32.const 0) (f64.const 0))))"#;
    let (mut store, instance) = made(&Engine::default(), text, |linker| {
        linker.func_wrap("host", "rethrow", run_again);
    });
    let run = instance.get_func(&mut store, "run").unwrap();
    let Err(Error::Exception { exception, .. }) = run.call(&mut store, &[], &mut []) else {
        panic!()
    };
    store.gc().unwrap();
    assert_eq!(exception.field(&mut store, 1).unwrap().i32(), Some(7));
    let caught = typed::<(), (i32, f64)>(&mut store, &instance, "catch");
    assert_eq!(caught.call(&mut store, ()).unwrap(), (7, 2.5));
}

#[test]
fn wrong_arguments_and_names_are_refused_before_anything_runs() {
    let engine = Engine::default();
    let module = Module::new(
        &engine,
        &wat::parse_str(r#"(module (func (export "f") (param i32)))"#).unwrap(),
    )
    .unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let f = instance.get_func(&mut store, "f").unwrap();
    let says = |r: Result<()>| r.unwrap_err().to_string();
    assert_eq!(
        says(f.call(&mut store, &[], &mut [])),
        "function `f` of type (i32) -> () is called with 0 arguments for 0 results"
    );
    assert_eq!(
        says(f.call(&mut store, &[Val::I64(1)], &mut [])),
        "a value of type i64 where i32 is expected"
    );
    let e = instance
        .get_typed_func::<i64, ()>(&mut store, "f")
        .unwrap_err()
        .to_string();
    assert_eq!(
        e,
        "function `f` has type (i32) -> (), which is not that of the typed function"
    );
    let e = instance
        .get_typed_func::<i64, ()>(&mut store, "g")
        .unwrap_err()
        .to_string();
    assert_eq!(e, "the module exports no function `g`");
    let mut other = Store::new(&engine, ()).unwrap();
    assert_eq!(
        says(f.call(&mut other, &[Val::I32(1)], &mut [])),
        "a handle is used with another store than its own"
    );
}

#[test]
fn a_reference_outlives_collections_but_not_its_scope() {
    let engine = Engine::default();
    let mut store = Store::new(&engine, ()).unwrap();
    let kept = Rooted::external(&mut store, String::from("kept")).unwrap();
    let gone = {
        let mut scope = RootScope::new(&mut store);
        Rooted::external(&mut scope, String::from("gone")).unwrap()
    };
    store.gc().unwrap();
    assert_eq!(kept.host_value::<String, _>(&mut store).unwrap(), "kept");
    let again = Rooted::external(&mut store, String::from("again")).unwrap();
    assert_eq!(again.host_value::<String, _>(&mut store).unwrap(), "again");
    assert!(gone.host_value::<String, _>(&mut store).is_none());
}
