//! Code that relies on nothing being durable, when something becomes so: in the middle of loops, of inlined functions, and of calls that
//! throw. Afterwards it behaves as code with checks does, and its stores survive.

use std::path::Path;
use varve_runtime::host::placement;
use varve_runtime::*;

/// Functions of a number of rounds and the round in which the list in hand becomes durable. They store to it by references from before.
const PROGRAMS: &str = r#"(module
    (type $cell (struct (field $n (mut i32)) (field $next (mut (ref null $cell)))))
    (type $visit (func (param (ref $cell)) (param i32) (param i32)))
    (import "varve" "root_unit" (func $unit (param i32)))
    (import "varve" "set_root" (func $set_root (param (ref null $cell))))
    (import "varve" "root" (func $get_root (result (ref null $cell))))
    (tag $stop)
    (table 5 funcref)
    (elem (i32.const 0) $ignore $set $publish $deep $publish_and_throw)

    (func $root (result (ref null $cell)) (call $unit (i32.const 114)) (call $get_root))
    (func $list (result (ref $cell)) (local $i i32) (local $c (ref null $cell))
        (loop $more
            (local.set $c (struct.new $cell (local.get $i) (local.get $c)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (i32.const 5))))
        (ref.as_non_null (local.get $c)))
    (func $add (param $c (ref $cell)) (param $i i32)
        (struct.set $cell $n (local.get $c) (i32.add (local.get $i) (struct.get $cell $n (local.get $c)))))

    (func $ignore (param $c (ref $cell)) (param $i i32) (param $when i32))
    (func $set (param $c (ref $cell)) (param $i i32) (param $when i32)
        (call $unit (i32.const 114))
        (call $set_root (local.get $c)))
    ;; By a table, which no compiler sees through: code that calls it is not left before the call.
    (func $publish (param $c (ref $cell)) (param $i i32) (param $when i32)
        (call_indirect (type $visit) (local.get $c) (local.get $i) (local.get $when)
            (i32.eq (local.get $i) (local.get $when))))
    (func $publish_and_throw (param $c (ref $cell)) (param $i i32) (param $when i32)
        (call $publish (local.get $c) (local.get $i) (local.get $when))
        (if (i32.and (local.get $i) (i32.const 1)) (then (throw $stop))))
    (func $deep (param $c (ref $cell)) (param $i i32) (param $when i32)
        (call $deeper (local.get $c) (local.get $i) (local.get $when))
        (call $add (local.get $c) (local.get $i)))
    (func $deeper (param $c (ref $cell)) (param $i i32) (param $when i32)
        (call $publish (local.get $c) (local.get $i) (local.get $when))
        (call $add (ref.as_non_null (struct.get $cell $next (local.get $c))) (i32.const 3)))
    (func $catches (param $c (ref $cell)) (param $i i32) (param $when i32)
        (block $caught
            (try_table (catch_all $caught)
                (call $publish_and_throw (local.get $c) (local.get $i) (local.get $when))
                (call $add (local.get $c) (i32.const 9))))
        (call $add (local.get $c) (i32.const 11)))

    ;; What can be reached from the root.
    (func (export "total") (result i32) (call $sum (call $root)))
    (func $sum (param $c (ref null $cell)) (result i32) (local $sum i32)
        (block $end (loop $more
            (br_if $end (ref.is_null (local.get $c)))
            (local.set $sum (i32.add
                (i32.mul (local.get $sum) (i32.const 31))
                (struct.get $cell $n (local.get $c))))
            (local.set $c (struct.get $cell $next (local.get $c)))
            (br $more)))
        (local.get $sum))
PROGRAM)"#;

/// Each is a loop's body, with the list in `$c`, the same in `$d`, its second cell in `$second`, and the round in `$i`.
const BODIES: [(&str, &str); 10] = [
    ("a call", "(call $publish (local.get $c) (local.get $i) (local.get $when))"),
    ("inlined calls", "(call $deep (local.get $c) (local.get $i) (local.get $when))"),
    (
        "a loop in the loop",
        "(local.set $j (i32.const 3))
         (loop $inner
            (call $add (local.get $d) (local.get $j))
            (call $publish (local.get $c) (i32.mul (local.get $i) (local.get $j)) (local.get $when))
            (call $add (local.get $second) (local.get $j))
            (br_if $inner (local.tee $j (i32.sub (local.get $j) (i32.const 1)))))",
    ),
    (
        "an exception",
        "(block $caught
            (try_table (catch_all $caught)
                (call $publish_and_throw (local.get $c) (local.get $i) (local.get $when))
                (call $add (local.get $d) (i32.const 5))))",
    ),
    (
        "an exception after which the loop begins again",
        "(block $after
            (block $caught
                (try_table (catch_all $caught)
                    (call_indirect (type $visit) (local.get $c) (local.get $i) (local.get $when) (i32.const 4)))
                (br $after))
            (br_if $more (i32.lt_u
                (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                (local.get $rounds))))",
    ),
    ("an exception in a function", "(call $catches (local.get $c) (local.get $i) (local.get $when))"),
    (
        "an exception in a loop",
        "(local.set $j (i32.const 3))
         (block $caught
            (try_table (catch_all $caught)
                (loop $inner
                    (call $add (local.get $d) (local.get $j))
                    (call $publish_and_throw (local.get $c) (local.get $i) (local.get $when))
                    (br_if $inner (local.tee $j (i32.sub (local.get $j) (i32.const 1)))))))",
    ),
    (
        "a reference",
        "(call_indirect (type $visit) (local.get $c) (local.get $i) (local.get $when) (i32.add (i32.const 2) (i32.and (local.get $i) (i32.const 1))))",
    ),
    (
        "a comparison",
        "(call $publish (local.get $c) (local.get $i) (local.get $when))
         (if (ref.eq (local.get $d) (call $root)) (then (call $add (local.get $second) (i32.const 100))))
         (if (ref.eq (local.get $second) (struct.get $cell $next (local.get $c)))
            (then (call $add (local.get $second) (i32.const 1))))",
    ),
    (
        "a new cell",
        "(local.set $new (struct.new $cell (local.get $i) (struct.get $cell $next (local.get $second))))
         (call $publish (local.get $c) (local.get $i) (local.get $when))
         (struct.set $cell $next (local.get $second) (local.get $new))
         (call $add (ref.as_non_null (local.get $new)) (i32.const 7))",
    ),
];

const ROUNDS: i32 = 300;

fn program(body: &str) -> String {
    let program = format!(
        r#"(func (export "run") (param $rounds i32) (param $when i32) (result i32)
            (local $i i32) (local $j i32) (local $c (ref null $cell)) (local $d (ref null $cell))
            (local $second (ref null $cell)) (local $new (ref null $cell))
            (local.set $c (call $list))
            (local.set $d (local.get $c))
            (local.set $second (struct.get $cell $next (local.get $c)))
            (loop $more
                (call $add (local.get $d) (i32.const 1))
                {body}
                (call $add (local.get $second) (i32.const 2))
                (call $add (local.get $d) (local.get $i))
                (br_if $more (i32.lt_u
                    (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                    (local.get $rounds))))
            (call $sum (local.get $c)))"#
    );
    // References in hand are never null.
    let program = ["$c", "$d", "$second"].iter().fold(program, |p, local| {
        p.replace(
            &format!("(local.get {local})"),
            &format!("(ref.as_non_null (local.get {local}))"),
        )
    });
    PROGRAMS.replace("PROGRAM", &program)
}

struct Outcome {
    result: i32,
    /// The expected contents of the region, before and after it was reopened.
    total: [i32; 2],
    optimized: u64,
}

fn config(folder: &Path, checks: Checks, tier: Tier, gc_stress: bool) -> Config {
    Config {
        durable: Some(DurableFile::new(folder.join("cells"), Medium::Memory)),
        checks: Some(checks),
        tier,
        hot: 60,
        background: false,
        gc_stress,
        ..Config::default()
    }
}

fn open(wat: &str, config: &Config) -> Result<(Store<()>, Instance)> {
    let engine = Engine::new(config.clone());
    let module = Module::new(&engine, &wat::parse_str(wat).unwrap())?;
    let mut linker = Linker::new(&engine);
    placement::link(&mut linker);
    let mut store = Store::new(&engine, ())?;
    let instance = linker.instantiate(&mut store, &module)?;
    Ok((store, instance))
}

fn run(wat: &str, when: i32, checks: Checks, tier: Tier, stress: bool) -> Result<Outcome> {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), checks, tier, stress);
    let (result, before, optimized) = {
        let (mut store, instance) = open(wat, &config)?;
        let result = call(&mut store, &instance, "run", &[ROUNDS, when])?;
        let total = call(&mut store, &instance, "total", &[])?;
        (result, total, store.compiler_stats().optimized)
    };
    let (mut store, instance) = open(wat, &config)?;
    let after = call(&mut store, &instance, "total", &[])?;
    Ok(Outcome {
        result,
        total: [before, after],
        optimized,
    })
}

fn call(store: &mut Store<()>, instance: &Instance, name: &str, arguments: &[i32]) -> Result<i32> {
    let arguments: Vec<Val> = arguments.iter().map(|&n| Val::I32(n)).collect();
    let mut result = [Val::I32(0)];
    let f = instance.get_func(&mut *store, name).unwrap();
    f.call(&mut *store, &arguments, &mut result)?;
    match result[0] {
        Val::I32(n) => Ok(n),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn code_that_relies_on_nothing_being_durable_is_left_when_something_becomes_so() {
    for (name, body) in BODIES {
        let wat = program(body);
        // In the first round, before and after code is hot, in the last round, never.
        for when in [0, 6, 45, 121, 250, ROUNDS - 1, -1] {
            let expected = run(&wat, when, Checks::Unlikely, Tier::Baseline, false).unwrap();
            for checks in [Checks::Quick, Checks::Profiled, Checks::Deopt] {
                for stress in [false, true] {
                    let what = format!("{name} in round {when}, {checks:?}, stress {stress}");
                    let ran = run(&wat, when, checks, Tier::Auto, stress).unwrap();
                    assert_eq!(ran.result, expected.result, "{what}");
                    assert_eq!(ran.total, expected.total, "{what}");
                    assert!(ran.optimized > 0, "{what}");
                    // Unless it never became durable.
                    let survives = ran.total[0] == ran.result;
                    assert_eq!(survives, when >= 0, "{what}");
                    assert_eq!(ran.total[0], ran.total[1], "{what}");
                }
            }
        }
    }
}

/// A program with an enumeration of two colours, numbered as given.
fn colours(a: i32, b: i32) -> String {
    format!(
        r#"(module
        (type $chars (array (mut i16)))
        (type $java.lang.Object (sub (struct)))
        (type $java.lang.Enum (sub $java.lang.Object (struct
            (field $name (mut (ref null $chars))) (field $ordinal (mut i32)))))
        (type $Colour (sub $java.lang.Enum (struct
            (field $name (mut (ref null $chars))) (field $ordinal (mut i32)) (field $uses (mut i32)))))
        (import "varve" "root_unit" (func $unit (param i32)))
        (import "varve" "set_root" (func $set_root (param (ref null $Colour))))
        (import "varve" "root" (func $root (result (ref null $Colour))))
        (global $a (mut (ref null $Colour)) (ref.null $Colour))
        (global $b (mut (ref null $Colour)) (ref.null $Colour))
        (func $name (param $c (ref $Colour)) (param $letter i32) (param $ordinal i32)
            (struct.set $java.lang.Enum $name (local.get $c) (array.new_fixed $chars 1 (local.get $letter)))
            (struct.set $java.lang.Enum $ordinal (local.get $c) (local.get $ordinal)))
        (func $colour (param $letter i32) (param $ordinal i32) (result (ref $Colour)) (local $c (ref null $Colour))
            (local.set $c (struct.new_default $Colour))
            (call $name (ref.as_non_null (local.get $c)) (local.get $letter) (local.get $ordinal))
            (ref.as_non_null (local.get $c)))
        (func (export "run") (param $rounds i32) (param $when i32) (result i32)
            (global.set $a (call $colour (i32.const 97) (i32.const {a})))
            (global.set $b (call $colour (i32.const 98) (i32.const {b})))
            (loop $more
                (struct.set $Colour $uses (global.get $a)
                    (i32.add (i32.const 1) (struct.get $Colour $uses (global.get $a))))
                (if (i32.eq (local.get $rounds) (local.get $when)) (then
                    (call $unit (i32.const 99))
                    (call $set_root (global.get $a))))
                (br_if $more (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
            (struct.get $Colour $uses (global.get $a)))
        ;; Which constant the root is, with its number and its uses.
        (func (export "total") (result i32) (local $c (ref null $Colour))
            (call $unit (i32.const 99))
            (local.set $c (call $root))
            (if (ref.is_null (local.get $c)) (then (return (i32.const -1))))
            (i32.add
                (i32.add
                    (i32.mul (i32.const 10000) (ref.eq (local.get $c) (global.get $a)))
                    (i32.mul (i32.const 20000) (ref.eq (local.get $c) (global.get $b))))
                (i32.add
                    (i32.mul (i32.const 1000) (struct.get $Colour $ordinal (local.get $c)))
                    (struct.get $Colour $uses (local.get $c))))))"#
    )
}

/// A new build may number constants otherwise: they are known by their names.
#[test]
fn constants_are_found_by_name_and_take_their_new_numbers() {
    for checks in [Checks::Quick, Checks::Unbiased] {
        for stress in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let run = |wat: &str, rounds: i32, when: i32| {
                let (mut store, instance) =
                    open(wat, &config(folder.path(), checks, Tier::Auto, stress)).unwrap();
                let uses = call(&mut store, &instance, "run", &[rounds, when]).unwrap();
                (uses, call(&mut store, &instance, "total", &[]).unwrap())
            };
            // Used 100 times; durable from the 60th on.
            assert_eq!(run(&colours(0, 1), 100, 40), (100, 10_100));
            assert_eq!(run(&colours(0, 1), 50, -1), (150, 10_150));
            assert_eq!(run(&colours(5, 0), 50, -1), (200, 15_200));
        }
    }
}

const COUNTER: &str = r#"(module
    (type $cell (struct (field $n (mut i32))))
    (import "varve" "root_unit" (func $unit (param i32)))
    (import "varve" "set_root" (func $set_root (param (ref null $cell))))
    (import "varve" "root" (func $get_root (result (ref null $cell))))
    (func $root (result (ref null $cell)) (call $unit (i32.const 114)) (call $get_root))
    (func (export "begin") (result i32)
        (call $unit (i32.const 114))
        (call $set_root (struct.new $cell (i32.const 0)))
        (i32.const 0))
    (func (export "put") (param $n i32) (result i32)
        (struct.set $cell $n (ref.as_non_null (call $root)) (local.get $n))
        (local.get $n))
    (func (export "get") (result i32) (struct.get $cell $n (ref.as_non_null (call $root)))))"#;

/// A copy of the file has the state that a crash would have left at that instant.
#[test]
fn grouped_stores_survive_from_the_next_commit_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| Config {
        // A copy of a region that is open is refused otherwise.
        durable: Some(DurableFile {
            verify: name == "copy",
            ..DurableFile::new(folder.path().join(name), Medium::File(None))
        }),
        checks: Some(Checks::Quick),
        ..Config::default()
    };
    let left = || -> i32 {
        let (path, copy) = (folder.path().join("counter"), folder.path().join("copy"));
        std::fs::copy(path, copy).unwrap();
        let (mut store, instance) = open(COUNTER, &at("copy")).unwrap();
        call(&mut store, &instance, "get", &[]).unwrap()
    };
    let (mut store, instance) = open(COUNTER, &at("counter")).unwrap();
    call(&mut store, &instance, "begin", &[]).unwrap();
    call(&mut store, &instance, "put", &[1]).unwrap();
    assert_eq!(left(), 1);
    store.group_durable(true).unwrap();
    for n in 2..5 {
        call(&mut store, &instance, "put", &[n]).unwrap();
        assert!(store.uncommitted());
        assert_eq!(left(), 1);
    }
    store.commit_durable().unwrap();
    assert!(!store.uncommitted());
    assert_eq!(left(), 4);
    call(&mut store, &instance, "put", &[5]).unwrap();
    assert_eq!(left(), 4);
    store.group_durable(false).unwrap();
    assert_eq!(left(), 5);
    call(&mut store, &instance, "put", &[6]).unwrap();
    assert_eq!(left(), 6);
    // Without a region there is nothing to commit.
    let none = Config::default();
    let mut store = Store::new(&Engine::new(none), ()).unwrap();
    store.group_durable(true).unwrap();
    store.commit_durable().unwrap();
    assert!(!store.uncommitted());
}
