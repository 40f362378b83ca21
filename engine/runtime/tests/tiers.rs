//! The two compilers: code that is replaced under an activation.

#[path = "common/program.rs"]
mod program;

use program::Program;
use varve_runtime::*;

/// Optimizes after a few calls or iterations, at once.
fn early() -> Config {
    Config {
        hot: 100,
        background: false,
        ..Config::default()
    }
}

fn load(config: Config, wat: &str) -> Program {
    Program::with_number(config, wat, 0)
}

/// The sum of the numbers below the parameter, of which the operand stack holds one part.
const SUM: &str = r#"(module
    (func (export "sum") (param $n i32) (result i64) (local $i i32) (local $s i64)
        (i64.const 1000)
        (loop $l
            (local.set $s (i64.add (local.get $s) (i64.extend_i32_u (local.get $i))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $s)
        (i64.add)))"#;

#[test]
fn one_long_call_goes_on_in_optimized_code() {
    let mut p = load(early(), SUM);
    assert_eq!(
        p.call::<i32, i64>("sum", 1_000_000).unwrap(),
        1000 + 499_999_500_000
    );
    let stats = p.stats();
    assert_eq!(
        (stats.baseline, stats.optimized, stats.hot_loops),
        (1, 1, 1),
        "{stats:?}"
    );
}

#[test]
fn the_baseline_stays_when_it_is_asked_to() {
    let config = Config {
        tier: Tier::Baseline,
        ..early()
    };
    let mut p = load(config, SUM);
    assert_eq!(
        p.call::<i32, i64>("sum", 1_000_000).unwrap(),
        1000 + 499_999_500_000
    );
    assert_eq!(p.stats().optimized, 0);
}

#[test]
fn the_optimizing_compiler_comes_first_when_it_is_asked_to() {
    let config = Config {
        tier: Tier::Optimizing,
        ..early()
    };
    let mut p = load(config, SUM);
    assert_eq!(p.call::<i32, i64>("sum", 10).unwrap(), 1045);
    assert_eq!(p.stats().baseline, 0);
}

#[test]
fn code_comes_from_another_thread_in_time() {
    let mut p = load(
        Config {
            background: true,
            ..early()
        },
        SUM,
    );
    let mut calls = 0;
    while p.stats().optimized == 0 {
        assert_eq!(p.call::<i32, i64>("sum", 1000).unwrap(), 1000 + 499_500);
        calls += 1;
        assert!(calls < 10_000_000, "no code came");
    }
}

/// Loops in loops: the inner one becomes hot while the outer one runs in baseline code.
#[test]
fn a_loop_around_goes_on_too() {
    let mut p = load(
        early(),
        r#"(module (func (export "f") (param $n i32) (result i32) (local $i i32) (local $j i32) (local $s i32)
            (loop $outer
                (local.set $j (i32.const 0))
                (loop $inner
                    (local.set $s (i32.add (local.get $s) (i32.xor (local.get $i) (local.get $j))))
                    (local.set $j (i32.add (local.get $j) (i32.const 1)))
                    (br_if $inner (i32.lt_u (local.get $j) (local.get $n))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $outer (i32.lt_u (local.get $i) (local.get $n))))
            (local.get $s)))"#,
    );
    let n = 300;
    let wanted: i32 = (0..n).flat_map(|i| (0..n).map(move |j| i ^ j)).sum();
    assert_eq!(p.call::<i32, i32>("f", n).unwrap(), wanted);
    assert!(p.stats().hot_loops >= 1, "{:?}", p.stats());
}

/// `call_ref` of a function that the counters know, until another one comes; its caller is inlined, within a `try_table`
/// that keeps a value on the operand stack.
const DISPATCH: &str = r#"(module
    (type $f (func (param i32) (result i32)))
    (type $box (struct (field i32)))
    (tag $t (param i32))
    (global $which (mut (ref null $f)) (ref.null $f))
    (func $one (type $f) (i32.add (local.get 0) (i32.const 1)))
    (func $two (type $f) (i32.mul (local.get 0) (i32.const 2)))
    (func $bad (type $f) (throw $t (i32.const 70)))
    (elem declare func $one $two $bad)
    (func (export "choose") (param i32)
        (global.set $which (ref.func $one))
        (if (i32.eq (local.get 0) (i32.const 2)) (then (global.set $which (ref.func $two))))
        (if (i32.eq (local.get 0) (i32.const 3)) (then (global.set $which (ref.func $bad)))))
    (func $apply (param $x i32) (result i32) (local $b (ref null $box))
        (local.set $b (struct.new $box (i32.const 5)))
        (i32.add
            (i32.mul (local.get $x) (i32.const 1000))
            (call_ref $f (local.get $x) (global.get $which)))
        (struct.get $box 0 (local.get $b))
        (i32.add))
    (func $outer (export "outer") (param $x i32) (result i32)
        (i32.const 1000000)
        (block $h (result i32)
            (try_table (result i32) (catch $t $h)
                (call $apply (local.get $x))))
        (i32.add)))"#;

#[test]
fn a_guard_that_fails_in_an_inlined_function_loses_nothing() {
    let mut p = load(
        Config {
            gc_stress: true,
            ..early()
        },
        DISPATCH,
    );
    p.call::<i32, ()>("choose", 1).unwrap();
    for x in 0..50 {
        assert_eq!(
            p.call::<i32, i32>("outer", x).unwrap(),
            1_000_000 + x * 1000 + x + 1 + 5
        );
    }
    assert_eq!(p.stats().failed_guards, 0);
    assert!(p.stats().optimized > 0);
    // Another target: baseline code goes on, in both functions.
    p.call::<i32, ()>("choose", 2).unwrap();
    assert_eq!(
        p.call::<i32, i32>("outer", 7).unwrap(),
        1_000_000 + 7000 + 14 + 5
    );
    assert!(p.stats().failed_guards > 0, "{:?}", p.stats());
    // One that throws: the handler around the inlined call gets it.
    p.call::<i32, ()>("choose", 3).unwrap();
    assert_eq!(p.call::<i32, i32>("outer", 7).unwrap(), 1_000_070);
    // After many, the code is given up, and made anew with what was learnt.
    p.call::<i32, ()>("choose", 2).unwrap();
    for x in 0..200 {
        assert_eq!(
            p.call::<i32, i32>("outer", x).unwrap(),
            1_000_000 + x * 1000 + x * 2 + 5
        );
    }
    let before = p.stats();
    assert!(before.given_up > 0, "{before:?}");
    for x in 0..200 {
        assert_eq!(
            p.call::<i32, i32>("outer", x).unwrap(),
            1_000_000 + x * 1000 + x * 2 + 5
        );
    }
    assert_eq!(p.stats().failed_guards, before.failed_guards);
}

#[test]
fn a_trap_names_the_functions_that_were_inlined() {
    let mut p = load(
        early(),
        r#"(module
            (func $divide (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
            (func $middle (param i32) (result i32) (call $divide (i32.const 100) (local.get 0)))
            (func $top (export "top") (param i32) (result i32) (call $middle (local.get 0))))"#,
    );
    let trap = |p: &mut Program| match p.call::<i32, i32>("top", 0) {
        Err(Error::Trap(trap)) => trap,
        other => panic!("{other:?}"),
    };
    let before = trap(&mut p);
    for _ in 0..100 {
        assert_eq!(p.call::<i32, i32>("top", 4).unwrap(), 25);
    }
    assert!(p.stats().optimized > 0);
    let after = trap(&mut p);
    assert_eq!(before.kind, after.kind);
    let places = |t: &Trap| {
        t.frames
            .iter()
            .map(|f| (f.function.clone(), f.offset))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&before).len(), 3);
    assert_eq!(places(&before), places(&after));
}

#[test]
fn deep_recursion_overflows_in_optimized_code_too() {
    let mut p = load(
        early(),
        r#"(module (func $f (export "f") (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))
                (else (i32.const 0)))))"#,
    );
    for _ in 0..100 {
        assert_eq!(p.call::<i32, i32>("f", 100).unwrap(), 100);
    }
    match p.call::<i32, i32>("f", i32::MAX) {
        Err(Error::Trap(t)) => assert_eq!(t.kind, TrapKind::StackOverflow),
        other => panic!("{other:?}"),
    }
}

#[test]
fn leaves_are_instructions_and_functions_alike() {
    for tier in [Tier::Baseline, Tier::Optimizing] {
        let mut p = load(
            Config { tier, ..early() },
            r#"(module
                (type $u (func (param f64) (result f64)))
                (import "math" "sqrt" (func $sqrt (type $u)))
                (import "math" "hypot" (func $hypot (param f64 f64) (result f64)))
                (elem declare func $sqrt)
                (func (export "direct") (param f64) (result f64) (call $sqrt (local.get 0)))
                (func (export "reference") (param f64) (result f64) (call_ref $u (local.get 0) (ref.func $sqrt)))
                (func (export "two") (param f64 f64) (result f64) (call $hypot (local.get 0) (local.get 1))))"#,
        );
        assert_eq!(p.call::<f64, f64>("direct", 81.0).unwrap(), 9.0);
        assert_eq!(p.call::<f64, f64>("reference", 81.0).unwrap(), 9.0);
        assert_eq!(p.call::<(f64, f64), f64>("two", (3.0, 4.0)).unwrap(), 5.0);
    }
}

/// The type of an object is learnt from a test in one arm, and must not be believed in the other.
#[test]
fn what_one_arm_learns_the_other_does_not_know() {
    let mut p = load(
        Config {
            tier: Tier::Optimizing,
            ..early()
        },
        r#"(module
            (type $a (sub (struct (field i32))))
            (type $b (sub $a (struct (field i32) (field i32))))
            (func $f (param $x (ref null $a)) (result i32)
                (if (result i32) (ref.test (ref $b) (local.get $x))
                    (then (struct.get $b 1 (ref.cast (ref $b) (local.get $x))))
                    (else (struct.get $b 1 (ref.cast (ref $b) (local.get $x))))))
            (func (export "good") (result i32) (call $f (struct.new $b (i32.const 1) (i32.const 2))))
            (func (export "bad") (result i32) (call $f (struct.new $a (i32.const 1)))))"#,
    );
    assert_eq!(p.call::<(), i32>("good", ()).unwrap(), 2);
    match p.call::<(), i32>("bad", ()) {
        Err(Error::Trap(t)) => assert_eq!(t.kind, TrapKind::CastFailure),
        other => panic!("{other:?}"),
    }
}

/// An index that was checked in one iteration is checked again in the next.
#[test]
fn bounds_are_checked_in_each_iteration() {
    let mut p = load(
        early(),
        r#"(module
            (type $v (array (mut i32)))
            (func (export "fill") (param $len i32) (param $n i32) (result i32) (local $a (ref null $v)) (local $i i32)
                (local.set $a (array.new_default $v (local.get $len)))
                (loop $l
                    (array.set $v (local.get $a) (local.get $i)
                        (i32.add (array.get $v (local.get $a) (local.get $i)) (i32.const 3)))
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
                (array.get $v (local.get $a) (i32.sub (local.get $n) (i32.const 1)))))"#,
    );
    assert_eq!(p.call::<(i32, i32), i32>("fill", (5000, 5000)).unwrap(), 3);
    match p.call::<(i32, i32), i32>("fill", (5000, 5001)) {
        Err(Error::Trap(t)) => assert_eq!(t.kind, TrapKind::ArrayOutOfBounds),
        other => panic!("{other:?}"),
    }
}

/// The input of `perf`: each piece of code with its function's name and compiler.
#[test]
fn perf_is_told_the_names_of_compiled_functions() {
    let names = std::sync::Arc::new(PerfMap::create().unwrap());
    let config = Config {
        perf_map: Some(names.clone()),
        ..early()
    };
    let mut p = load(config, SUM);
    p.call::<i32, i64>("sum", 1_000_000).unwrap();
    let text = std::fs::read_to_string(names.path()).unwrap();
    std::fs::remove_file(names.path()).unwrap();
    let pieces: Vec<(usize, usize, &str)> = text
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let mut number = || usize::from_str_radix(parts.next().unwrap(), 16).unwrap();
            (number(), number(), parts.next().unwrap())
        })
        .collect();
    let named = |end: &str| {
        let is = |name: &str| name.contains("sum") && name.ends_with(end);
        pieces.iter().filter(|(.., name)| is(name)).count()
    };
    assert_eq!(named("[baseline]"), 1, "{text}");
    // The rest of the loop in which it was when it became hot.
    assert!(named("[optimized]") >= 1, "{text}");
    for (start, bytes, name) in &pieces {
        let inside = pieces.iter().any(|(s, ..)| s > start && *s < start + bytes);
        assert!(*bytes > 0 && !inside, "{name}: {text}");
    }
}

/// The code of Java compilers for `a[i]`, where `a` has four elements: the element, -1 below the first, and -2 after the last. The code after it
/// reads and writes it again, where the checks are known to pass.
const RANGE: &str = r#"(module
    (type $a (array (mut i32)))
    (global $made (mut (ref null $a)) (ref.null $a))
    (func $init (global.set $made (array.new_fixed $a 4 (i32.const 10) (i32.const 11) (i32.const 12) (i32.const 13))))
    (start $init)
    (func (export "at") (param $i i32) (result i32) (local $a (ref $a))
        (local.set $a (ref.as_non_null (global.get $made)))
        (block $in
            (block $out
                (br_if $out (i32.lt_s (local.get $i) (i32.const 0)))
                (br_if $in (i32.lt_s (local.get $i) (array.len (local.get $a)))))
            (return (select (i32.const -1) (i32.const -2) (i32.lt_s (local.get $i) (i32.const 0)))))
        (block $again
            (br_if $again (i32.lt_s (local.get $i) (array.len (local.get $a))))
            unreachable)
        (if (i32.lt_s (local.get $i) (i32.const 0)) (then unreachable))
        (if (ref.is_null (local.get $a)) (then unreachable))
        (array.set $a (local.get $a) (local.get $i)
            (i32.add (array.get $a (local.get $a) (local.get $i)) (i32.const 0)))
        (array.get $a (local.get $a) (local.get $i))))"#;

#[test]
fn one_comparison_says_what_two_said() {
    for tier in [Tier::Baseline, Tier::Optimizing, Tier::Auto] {
        let mut p = load(Config { tier, ..early() }, RANGE);
        // In range until that is all that was ever seen, then everything else.
        for i in (0..400).map(|n| n % 4) {
            assert_eq!(p.call::<i32, i32>("at", i).unwrap(), 10 + i, "{tier:?}");
        }
        for round in 0..50 {
            for (i, expected) in [(-1, -1), (i32::MIN, -1), (4, -2), (i32::MAX, -2), (3, 13)] {
                let found = p.call::<i32, i32>("at", i).unwrap();
                assert_eq!(found, expected, "{tier:?}, round {round}: {i}");
            }
        }
    }
}

/// Copies `len` bytes within an array of 64, or to another of 64, both of which begin as their indices; then the sum of products of what
/// is there and where.
const COPY: &str = r#"(module
    (type $b (array (mut i8)))
    (func $bytes (result (ref $b)) (local $i i32) (local $b (ref $b))
        (local.set $b (array.new_default $b (i32.const 64)))
        (loop $l
            (array.set $b (local.get $b) (local.get $i) (local.get $i))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 64))))
        (local.get $b))
    (func (export "copy") (param $same i32) (param $to i32) (param $from i32) (param $len i32) (result i32)
        (local $a (ref $b)) (local $b (ref $b)) (local $i i32) (local $sum i32)
        (local.set $a (call $bytes))
        (local.set $b (select (result (ref $b)) (local.get $a) (call $bytes) (local.get $same)))
        (array.copy $b $b (local.get $b) (local.get $to) (local.get $a) (local.get $from) (local.get $len))
        (loop $l
            (local.set $sum (i32.add (local.get $sum)
                (i32.mul (array.get_u $b (local.get $b) (local.get $i)) (i32.add (local.get $i) (i32.const 3)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 64))))
        (local.get $sum)))"#;

#[test]
fn elements_are_copied_as_by_the_runtime() {
    let mut p = load(
        Config {
            tier: Tier::Optimizing,
            ..early()
        },
        COPY,
    );
    for same in [0, 1] {
        for (to, from) in [(0, 0), (0, 5), (5, 0), (56, 1), (64, 0), (3, 64)] {
            for len in [0, 1, 2, 7, 8, 9, 31, 59, 60, 64, 65, -1] {
                let mut bytes: Vec<i32> = (0..64).collect();
                let all = |start: i32| (start as u64) + u64::from(len as u32) <= 64;
                let found = p.call::<(i32, i32, i32, i32), i32>("copy", (same, to, from, len));
                if !all(to) || !all(from) {
                    let trap = found.expect_err("out of bounds").to_string();
                    assert!(trap.contains("array"), "{trap}");
                    continue;
                }
                bytes.copy_within(from as usize..(from + len) as usize, to as usize);
                let sum: i32 = bytes
                    .iter()
                    .enumerate()
                    .map(|(i, b)| b * (i as i32 + 3))
                    .sum();
                assert_eq!(found.unwrap(), sum, "{same} {to} {from} {len}");
            }
        }
    }
}

#[test]
fn a_constant_of_64_bits_is_zero_in_all_of_them() {
    let wat = r#"(module (func (export "f") (result i32)
        (i32.add
            (i32.mul (i32.const 10) (i64.eqz (i64.const 0x100000000)))
            (i64.eqz (i64.const 0)))))"#;
    for tier in [Tier::Baseline, Tier::Optimizing] {
        let mut p = load(Config { tier, ..early() }, wat);
        assert_eq!(p.call::<(), i32>("f", ()).unwrap(), 1, "{tier:?}");
    }
}

/// Compiles on another thread, and optimizes nothing.
fn ahead() -> Config {
    Config {
        background: true,
        hot: u32::MAX,
        ..Config::default()
    }
}

/// Function `f0` calls `f1`, that calls the next, and so on; each adds one. The last has no caller.
fn chain(functions: usize) -> String {
    let mut wat = String::from("(module\n");
    for i in 0..functions {
        wat += &format!(
            "(func $f{i} (export \"f{i}\") (param i32) (result i32)
                (i32.add (i32.const 1) (call $f{} (local.get 0))))\n",
            i + 1
        );
    }
    wat += &format!("(func $f{functions} (param i32) (result i32) (local.get 0))\n");
    wat + "(func $never (param i32) (result i32) (call $f0 (local.get 0))))"
}

#[test]
fn what_is_about_to_be_called_is_asked_for_before() {
    let mut p = load(ahead(), &chain(100));
    assert_eq!(p.call::<i32, i32>("f0", 7).unwrap(), 107);
    let stats = p.stats();
    assert_eq!((stats.baseline, stats.ahead), (101, 100), "{stats:?}");
    let config = Config {
        background: false,
        ..ahead()
    };
    let mut p = load(config, &chain(100));
    assert_eq!(p.call::<i32, i32>("f0", 7).unwrap(), 107);
    assert_eq!((p.stats().baseline, p.stats().ahead), (101, 0));
}

#[test]
fn functions_that_call_each_other_are_asked_for_once() {
    let wat = r#"(module
        (func $even (export "even") (param i32) (result i32)
            (block $end (loop
                (br_if $end (i32.eqz (local.get 0)))
                (return (call $odd (i32.sub (local.get 0) (i32.const 1))))))
            (i32.const 1))
        (func $odd (param i32) (result i32)
            (block $end (loop
                (br_if $end (i32.eqz (local.get 0)))
                (return (call $even (i32.sub (local.get 0) (i32.const 1))))))
            (i32.const 0)))"#;
    let mut p = load(ahead(), wat);
    assert_eq!(p.call::<i32, i32>("even", 100).unwrap(), 1);
    assert_eq!((p.stats().baseline, p.stats().ahead), (2, 1));
}

/// A path that ends in an exception or a trap is seldom taken, and what it calls would be translated for nothing.
#[test]
fn what_only_a_failure_calls_is_not_asked_for() {
    let wat = r#"(module
        (tag $failed (param i32))
        (func $describe (param i32) (result i32) (i32.const 3))
        (func $clean_up)
        (func $usual (param i32) (result i32) (local.get 0))
        (func (export "run") (param $what i32) (result i32)
            (block $fine
                (br_if $fine (i32.ne (local.get $what) (i32.const 1)))
                (throw $failed (call $describe (local.get $what))))
            (block $fine
                (br_if $fine (i32.ne (local.get $what) (i32.const 2)))
                (call $clean_up)
                (unreachable))
            (call $usual (local.get $what))))"#;
    let mut p = load(ahead(), wat);
    assert_eq!(p.call::<i32, i32>("run", 5).unwrap(), 5);
    assert_eq!((p.stats().baseline, p.stats().ahead), (2, 1));
    assert!(p.call::<i32, i32>("run", 1).is_err());
    assert!(p.call::<i32, i32>("run", 2).is_err());
    assert_eq!((p.stats().baseline, p.stats().ahead), (4, 1));
}

/// An arm of an `if` may never run, nor what a branch leads over. The body of a loop most likely does.
#[test]
fn what_only_some_ways_call_is_not_asked_for() {
    let wat = r#"(module
        (func $arm (param i32) (result i32) (local.get 0))
        (func $skipped (param i32) (result i32) (local.get 0))
        (func $looped (param i32) (result i32) (i32.sub (local.get 0) (i32.const 1)))
        (func $last (param i32) (result i32) (i32.add (local.get 0) (i32.const 7)))
        (func (export "run") (param $x i32) (result i32)
            (if (i32.eq (local.get $x) (i32.const 100))
                (then (local.set $x (call $arm (local.get $x)))))
            (block $skip
                (br_if $skip (i32.ne (local.get $x) (i32.const 100)))
                (local.set $x (call $skipped (local.get $x))))
            (block $done
                (loop $next
                    (br_if $done (i32.eqz (local.get $x)))
                    (local.set $x (call $looped (local.get $x)))
                    (br $next)))
            (call $last (local.get $x))))"#;
    let mut p = load(ahead(), wat);
    assert_eq!(p.call::<i32, i32>("run", 3).unwrap(), 7);
    assert_eq!((p.stats().baseline, p.stats().ahead), (3, 2));
    assert_eq!(p.call::<i32, i32>("run", 100).unwrap(), 7);
    assert_eq!((p.stats().baseline, p.stats().ahead), (5, 2));
}

/// Of the arms of a `switch` few are taken soon. The code after it is.
#[test]
fn what_many_arms_call_is_not_asked_for() {
    let arms: String = (0..6)
        .map(|i| {
            format!(
                "(block $skip (br_if $skip (i32.eqz (local.get $x)))
                    (local.set $x (call $arm{i} (local.get $x))))
                (br $done))"
            )
        })
        .collect();
    let functions: String = (0..6)
        .map(|i| {
            format!(
                "(func $arm{i} (param i32) (result i32) (i32.add (local.get 0) (i32.const {i})))"
            )
        })
        .collect();
    let blocks: String = (0..6).rev().map(|i| format!("(block $a{i} ")).collect();
    let wat = format!(
        r#"(module {functions}
            (func $before (param i32) (result i32) (local.get 0))
            (func $after (param i32) (result i32) (i32.mul (local.get 0) (i32.const 10)))
            (func (export "run") (param $x i32) (result i32)
                (local.set $x (call $before (local.get $x)))
                (block $done
                    {blocks}
                        (br_table $a0 $a1 $a2 $a3 $a4 $a5 $done (local.get $x)))
                    {arms}
                (call $after (local.get $x))))"#
    );
    let mut p = load(ahead(), &wat);
    assert_eq!(p.call::<i32, i32>("run", 3).unwrap(), 60);
    // `run` and the third arm were compiled when they were called.
    assert_eq!((p.stats().baseline, p.stats().ahead), (4, 2));
    assert_eq!(p.call::<i32, i32>("run", 5).unwrap(), 100);
    assert_eq!(p.call::<i32, i32>("run", 9).unwrap(), 90);
    assert_eq!((p.stats().baseline, p.stats().ahead), (5, 2));
}

#[test]
fn a_store_may_end_while_its_functions_wait() {
    let engine = Engine::new(ahead());
    let bytes = wat::parse_str(chain(200)).unwrap();
    for round in 0..20 {
        let module = Module::new(&engine, &bytes).unwrap();
        let mut store = Store::new(&engine, ()).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let name = format!("f{}", 10 * round);
        let f = instance.get_func(&mut store, &name).unwrap();
        let f = f.typed::<i32, i32>(&mut store).unwrap();
        assert_eq!(f.call(&mut store, 0).unwrap(), 200 - 10 * round);
    }
}

/// Sites of code that was generated ahead are not those of what ran.
#[test]
fn allocation_sites_are_those_of_functions_that_were_called() {
    let wat = r#"(module
        (type $point (struct (field i32)))
        (func $make (result i32) (drop (struct.new $point (i32.const 1))) (i32.const 1))
        (func (export "run") (param i32) (result i32)
            (block $end (loop
                (br_if $end (i32.eqz (local.get 0)))
                (return (call $make))))
            (i32.const 0)))"#;
    let mut p = load(ahead(), wat);
    assert_eq!(p.call::<i32, i32>("run", 0).unwrap(), 0);
    assert_eq!(p.store.allocation_sites().len(), 0);
    assert_eq!(p.call::<i32, i32>("run", 1).unwrap(), 1);
    assert_eq!(p.stats().ahead, 1);
    assert_eq!(p.store.allocation_sites().len(), 1);
}
