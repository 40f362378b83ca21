//! Throws that code leaves out, as compilers of Java write them for null checks and bounds checks.

#[path = "common/program.rs"]
mod program;

use program::Program;
use varve_runtime::*;

/// `f(which, x)` looks into objects, deep down in calls, and says what it found or caught: with an exception, 1000 times its number, and how
/// often one was made so far.
const CHECKS: &str = r#"(module
    (type $box (struct (field $v (mut i32))))
    (type $ints (array (mut i32)))
    (type $thrown (struct (field $n i32)))
    (tag $java (param (ref null $thrown)))
    (global $made (mut i32) (i32.const 0))
    (global $divisor (export "divisor") (mut i32) (i32.const 1))

    (func $npe (result (ref null $thrown))
        (drop (i32.div_s (i32.const 1) (global.get $divisor)))
        (drop (array.new $ints (i32.const 7) (i32.const 100)))
        (global.set $made (i32.add (global.get $made) (i32.const 1)))
        (struct.new $thrown (i32.const 1)))
    (func $aiobe (result (ref null $thrown))
        (drop (struct.new $box (i32.const 7)))
        (global.set $made (i32.add (global.get $made) (i32.const 1)))
        (struct.new $thrown (i32.const 2)))

    (func $value (param $x i32) (param $b (ref null $box)) (result i32)
        (local.get $x)
        (local.get $b)
        (block (param (ref null $box)) (result (ref null $box))
            (br_on_non_null 0)
            (throw $java (call $npe)))
        (struct.get $box $v)
        (i32.add))
    (func $cast (param $x i32) (param $b (ref null any)) (result i32)
        (local.get $b)
        (ref.cast (ref null $box))
        (block (param (ref null $box)) (result (ref null $box))
            (br_on_non_null 0)
            (throw $java (call $npe)))
        (struct.get $box $v)
        (local.get $x)
        (i32.add))
    (func $element (param $i i32) (param $a (ref null $ints)) (result i32) (local $some (ref $ints))
        (local.set $some (ref.as_non_null (local.get $a)))
        (block
            (block
                (br_if 0 (i32.lt_s (local.get $i) (i32.const 0)))
                (br_if 1 (i32.lt_s (local.get $i) (array.len (local.get $some)))))
            (throw $java (call $aiobe)))
        (array.get $ints (local.get $some) (local.get $i)))
    (func $other (param $i i32) (param $a (ref null $ints)) (result i32)
        ;; the throw is behind an `if`, and something is on the stack below
        (local.get $i)
        (if (i32.ge_u (local.get $i) (array.len (local.get $a))) (then (throw $java (call $aiobe))))
        (array.get $ints (local.get $a) (local.get $i))
        (i32.add))
    (func $many (param i64 i64 i64 i64 i64 i64 i64 i64 i64) (param $b (ref null $box)) (result i32)
        (local.get $b)
        (block (param (ref null $box)) (result (ref null $box))
            (br_on_non_null 0)
            (throw $java (call $npe)))
        (struct.get $box $v)
        (i32.add (i32.wrap_i64 (i64.add (local.get 0) (local.get 8)))))

    (func $middle (param $which i32) (param $x i32) (result i32)
        (local $b (ref null $box)) (local $a (ref null $ints)) (local $depth i32)
        (if (i32.gt_s (local.get $which) (i32.const 100)) (then
            (return (i32.add (i32.const 1) (call $middle (i32.sub (local.get $which) (i32.const 100)) (local.get $x))))))
        (if (i32.eqz (i32.and (local.get $which) (i32.const 1))) (then
            (local.set $b (struct.new $box (i32.const 30)))))
        (local.set $a (array.new $ints (i32.const 40) (i32.const 10)))
        (block $many (block $other (block $element (block $cast (block $value
            (br_table $value $cast $element $other $many (i32.shr_u (local.get $which) (i32.const 1))))
            (return (call $value (local.get $x) (local.get $b))))
            (return (call $cast (local.get $x) (local.get $b))))
            (return (call $element (local.get $x) (local.get $a))))
            (return (call $other (local.get $x) (local.get $a))))
        (call $many (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8)
            (i64.extend_i32_s (local.get $x)) (local.get $b)))

    (func $catching (param $which i32) (param $x i32) (result i32)
        (struct.get $thrown $n (block $caught (result (ref null $thrown))
            (try_table (catch $java $caught)
                (return (call $middle (local.get $which) (local.get $x))))
            (unreachable)))
        (i32.mul (i32.const 1000))
        (i32.add (global.get $made)))
    (func (export "f") (param i32 i32) (result i32) (call $catching (local.get 0) (local.get 1)))
    (func (export "uncaught") (param i32 i32) (result i32) (call $middle (local.get 0) (local.get 1))))"#;

/// What `f` gives; `made` is how many exceptions were made.
fn wanted(which: i32, x: i32, made: &mut i32) -> i32 {
    let (mut deep, mut which) = (0, which);
    while which > 100 {
        (deep, which) = (deep + 1, which - 100);
    }
    let is_null = which & 1 != 0;
    let is_out = !(0..10).contains(&x);
    let (thrown, value) = match which >> 1 {
        0 | 1 => (is_null.then_some(1), x + 30),
        2 => (is_out.then_some(2), 40),
        3 => (is_out.then_some(2), x + 40),
        _ => (is_null.then_some(1), 1 + x + 30),
    };
    match thrown {
        Some(n) => {
            *made += 1;
            1000 * n + *made
        }
        None => value + deep,
    }
}

fn configurations() -> Vec<Config> {
    let early = Config {
        hot: 20,
        background: false,
        ..Config::default()
    };
    let of = |tier| Config {
        tier,
        ..Config::default()
    };
    vec![
        Config::default(),
        of(Tier::Baseline),
        of(Tier::Optimizing),
        Config {
            gc_stress: true,
            ..early.clone()
        },
        early,
    ]
}

/// All is well for a while, and only then something is thrown, so that some code is optimized by then; or from the beginning.
#[test]
fn what_is_left_out_is_thrown_after_all() {
    for config in configurations() {
        for quiet in [0, 3, 60] {
            let mut p = Program::with_number(config.clone(), CHECKS, 0);
            let mut made = 0;
            let mut check = |which: i32, x: i32| {
                let found = p.call::<(i32, i32), i32>("f", (which, x)).unwrap();
                let wanted = wanted(which, x, &mut made);
                assert_eq!(found, wanted, "f({which}, {x}) after {quiet}, {config:?}");
            };
            for _ in 0..quiet {
                (0..5).for_each(|kind| check(2 * kind, 3));
                check(304, 3);
            }
            for round in 0..40 {
                for kind in 0..5 {
                    check(2 * kind, round % 10);
                    check(2 * kind + 1, -1);
                    check(2 * kind + 201, 10 + round);
                }
            }
        }
    }
}

#[test]
fn a_function_that_throws_once_has_its_throws_from_then_on() {
    let config = Config {
        tier: Tier::Baseline,
        ..Config::default()
    };
    let mut p = Program::with_number(config, CHECKS, 0);
    for _ in 0..50 {
        p.call::<(i32, i32), i32>("f", (0, 0)).unwrap();
    }
    assert_eq!(p.stats().throws, 0);
    for made in 1..=50 {
        let thrown = p.call::<(i32, i32), i32>("f", (1, 0)).unwrap();
        assert_eq!(thrown, 1000 + made);
    }
    assert_eq!(p.stats().throws, 1, "{:?}", p.stats());
}

#[test]
fn optimized_code_is_given_up_if_it_throws_often() {
    for background in [false, true] {
        let config = Config {
            hot: 20,
            background,
            ..Config::default()
        };
        let mut p = Program::with_number(config, CHECKS, 0);
        while p.stats().optimized == 0 {
            p.call::<(i32, i32), i32>("uncaught", (0, 0)).unwrap();
        }
        let throw = |p: &mut Program| {
            for _ in 0..1000 {
                let end = p.call::<(i32, i32), i32>("uncaught", (1, 0));
                assert!(matches!(end, Err(Error::Exception { .. })), "{end:?}");
            }
        };
        throw(&mut p);
        let before = p.stats();
        throw(&mut p);
        assert_eq!(p.stats().throws, before.throws, "{before:?}");
        assert!((1..60).contains(&before.throws), "{before:?}");
    }
}

/// A trap where the exception is made names all functions around, as if the throw had been there: also those that are inlined.
#[test]
fn the_stack_is_that_of_code_with_the_throw() {
    for config in configurations() {
        let mut stacks = Vec::new();
        let mut p = Program::with_number(config.clone(), CHECKS, 0);
        for round in 0..4 {
            for _ in 0..20 * round {
                p.call::<(i32, i32), i32>("uncaught", (0, 0)).unwrap();
            }
            let divisor = p.instance.get_global(&mut p.store, "divisor").unwrap();
            divisor.set(&mut p.store, Val::I32(0)).unwrap();
            let Err(Error::Trap(thrown)) = p.call::<(i32, i32), i32>("uncaught", (1, 0)) else {
                panic!("{config:?}");
            };
            divisor.set(&mut p.store, Val::I32(1)).unwrap();
            let frames = thrown.frames.iter();
            stacks.push(
                frames
                    .map(|f| (f.function.clone(), f.offset))
                    .collect::<Vec<_>>(),
            );
        }
        let names: Vec<_> = stacks[0].iter().map(|f| f.0.as_str()).collect();
        assert_eq!(names, ["`npe`", "`value`", "`middle`", "`uncaught`"], "{config:?}");
        assert!(stacks.iter().all(|s| *s == stacks[0]), "{stacks:?}");
    }
}

#[test]
fn an_exception_that_nobody_catches_is_the_hosts() {
    for config in configurations() {
        let mut p = Program::with_number(config, CHECKS, 0);
        for _ in 0..30 {
            let end = p.call::<(i32, i32), i32>("uncaught", (5, 10));
            assert!(matches!(end, Err(Error::Exception { .. })), "{end:?}");
        }
    }
}

#[test]
fn kept_code_throws_what_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        code_cache: Some(folder.path().into()),
        ..Config::default()
    };
    let quiet = |p: &mut Program| p.call::<(i32, i32), i32>("f", (0, 5)).unwrap();
    let mut first = Program::with_number(config.clone(), CHECKS, 0);
    assert_eq!(quiet(&mut first), 35);
    drop(first);
    // The second run keeps the code that it makes anew.
    for (throws, made) in [(1, 2), (0, 2)] {
        let mut p = Program::with_number(config.clone(), CHECKS, 0);
        assert_eq!(quiet(&mut p), 35);
        for n in 1..=made {
            let thrown = p.call::<(i32, i32), i32>("f", (1, 0)).unwrap();
            assert_eq!(thrown, 1000 + n);
        }
        let stats = p.stats();
        assert!(stats.kept > 0, "{stats:?}");
        assert_eq!(stats.throws, throws, "{stats:?}");
    }
}
