//! Throws that code leaves out, as compilers of Java write them for null checks and bounds checks.

#[path = "common/program.rs"]
mod program;

use program::Program;
use proptest::prelude::*;
use varve_runtime::*;

/// `f(which, x)` reads objects, deep down in calls, and says what it found or caught: with an exception, 1000 times its number, and how
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

/// The result of `f`; `made` counts the exceptions that were made.
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
        // Code that was asked for before the last of them, and comes from another thread later, may still leave the throw out.
        let (mut before, mut quiet) = (p.stats(), 0);
        for _ in 0..60 {
            throw(&mut p);
            let now = p.stats();
            quiet = if now.throws == before.throws {
                quiet + 1
            } else {
                0
            };
            before = now;
            if quiet == 3 {
                break;
            }
        }
        assert_eq!(quiet, 3, "it goes on: {before:?}");
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
        assert_eq!(
            names,
            ["`npe`", "`value`", "`middle`", "`uncaught`"],
            "{config:?}"
        );
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

/// A step of functions of generated programs, with a number `$x`, a box that may be null, an array of ten, and a sum.
#[derive(Clone, Debug)]
enum Step {
    /// The box's value is added.
    Null,
    /// The same through a cast.
    Cast,
    /// An element is added, and perhaps replaced by the sum; the index may be out of bounds.
    Element(i32, bool),
    /// The same with another form of the check.
    Other(i32),
    If(u8, Vec<Step>),
    Loop(u8, Vec<Step>),
    /// A function further on is called with another number, with the box or without; perhaps what it throws is caught.
    Call(u8, i32, bool, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Null),
        2 => Just(Step::Cast),
        2 => (0..16i32, any::<bool>()).prop_map(|(k, write)| Step::Element(k, write)),
        1 => (0..16i32).prop_map(Step::Other),
        4 => (1..4u8, 0..64i32, any::<bool>(), any::<bool>())
            .prop_map(|(further, x, keeps, catches)| Step::Call(further, x, keeps, catches)),
    ];
    let steps = prop::collection::vec(step, 1..5);
    steps.prop_recursive(2, 12, 4, |inner| {
        let nested = prop_oneof![
            (0..6u8, inner.clone()).prop_map(|(bit, steps)| Step::If(bit, steps)),
            (1..4u8, inner).prop_map(|(times, steps)| Step::Loop(times, steps)),
        ];
        prop::collection::vec(nested, 1..4)
    })
}

const FUNCTIONS: usize = 6;

/// The steps of function `at`; `depth` is how many loops are around.
fn text(steps: &[Step], at: usize, depth: usize) -> String {
    let null_check = "(block (param (ref null $box)) (result (ref null $box))
        (br_on_non_null 0) (throw $java (call $npe)))";
    let add = |value: &str| {
        format!("(local.set $s (i32.add (i32.mul (local.get $s) (i32.const 3)) {value}))")
    };
    let index = |k: &i32| {
        format!(
            "(local.set $i (i32.sub (i32.and (i32.add (local.get $x) (i32.const {k})) (i32.const 15)) (i32.const 3)))"
        )
    };
    let element = "(array.get $ints (local.get $a) (local.get $i))";
    let mut wat = String::new();
    for step in steps {
        wat += &match step {
            Step::Null => format!(
                "(local.get $s) (local.get $b) {null_check} (struct.get $box $v) (i32.add) (local.set $s)"
            ),
            Step::Cast => format!(
                "(ref.cast (ref null $box) (local.get $any)) {null_check} (struct.get $box $v) (local.set $i) {}",
                add("(local.get $i)")
            ),
            Step::Element(k, write) => {
                let set = match write {
                    true => "(array.set $ints (local.get $a) (local.get $i) (local.get $s))",
                    false => "",
                };
                format!(
                    "{} (block (block
                        (br_if 0 (i32.lt_s (local.get $i) (i32.const 0)))
                        (br_if 1 (i32.lt_s (local.get $i) (array.len (local.get $a)))))
                        (throw $java (call $aiobe))) {} {set}",
                    index(k),
                    add(element)
                )
            }
            Step::Other(k) => format!(
                "{} (if (i32.ge_u (local.get $i) (array.len (local.get $a))) (then (throw $java (call $aiobe)))) {}",
                index(k),
                add(element)
            ),
            Step::If(bit, steps) => format!(
                "(if (i32.and (i32.shr_u (local.get $x) (i32.const {bit})) (i32.const 1)) (then {}))",
                text(steps, at, depth)
            ),
            Step::Loop(times, steps) => format!(
                "(local.set $n{depth} (i32.const {times})) (loop $l{depth} {}
                    (br_if $l{depth} (local.tee $n{depth} (i32.sub (local.get $n{depth}) (i32.const 1)))))",
                text(steps, at, depth + 1)
            ),
            Step::Call(further, x, keeps, catches) => {
                let callee = at + usize::from(*further);
                if callee >= FUNCTIONS {
                    continue;
                }
                let object = if *keeps { "(local.get $b)" } else { "(ref.null $box)" };
                let call = format!(
                    "(call $f{callee} (i32.xor (local.get $x) (i32.const {x})) {object} (local.get $a))"
                );
                match catches {
                    false => add(&call),
                    true => add(&format!(
                        "(block $done (result i32) (struct.get $thrown $n (block $caught (result (ref null $thrown))
                            (try_table (catch $java $caught) (br $done {call})) (unreachable))))"
                    )),
                }
            }
        };
    }
    wat
}

fn module(functions: &[Vec<Step>]) -> String {
    let mut wat = String::from(
        r#"(module
        (type $box (struct (field $v (mut i32))))
        (type $ints (array (mut i32)))
        (type $thrown (struct (field $n i32)))
        (tag $java (param (ref null $thrown)))
        (global $made (mut i32) (i32.const 0))
        (func $make (param i32) (result (ref null $thrown))
            (global.set $made (i32.add (global.get $made) (local.get 0)))
            (struct.new $thrown (global.get $made)))
        (func $npe (result (ref null $thrown)) (call $make (i32.const 100)))
        (func $aiobe (result (ref null $thrown)) (call $make (i32.const 10007)))
        (func (export "run") (param $x i32) (param $null i32) (result i32)
            (call $f0 (local.get $x)
                (if (result (ref null $box)) (local.get $null)
                    (then (ref.null $box)) (else (struct.new $box (local.get $x))))
                (array.new $ints (i32.const 5) (i32.const 10))))"#,
    );
    for (at, steps) in functions.iter().enumerate() {
        wat += &format!(
            "(func $f{at} (param $x i32) (param $b (ref null $box)) (param $a (ref $ints)) (result i32)
                (local $s i32) (local $i i32) (local $n0 i32) (local $n1 i32) (local $n2 i32) (local $any anyref)
                (local.set $any (local.get $b))
                {} (local.get $s))",
            text(steps, at, 0)
        );
    }
    wat + ")"
}

/// The results of calls of a program.
fn outcomes(config: Config, wat: &str, calls: &[(i32, i32)]) -> Vec<Option<i32>> {
    let mut p = Program::with_number(config, wat, 0);
    let mut call = |&what: &(i32, i32)| match p.call::<(i32, i32), i32>("run", what) {
        Ok(sum) => Some(sum),
        Err(Error::Exception { .. }) => None,
        Err(e) => panic!("{e}"),
    };
    calls.iter().map(&mut call).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// The optimizing compiler by itself leaves nothing out.
    #[test]
    fn programs_do_the_same_with_and_without_their_throws(
        functions in prop::collection::vec(steps(), FUNCTIONS),
        rare in prop::collection::vec((0..64i32, 0..12i32), 60..120),
    ) {
        let calls: Vec<_> = rare.into_iter().map(|(x, null)| (x, i32::from(null == 0))).collect();
        let wat = module(&functions);
        let alone = Config { tier: Tier::Optimizing, ..Config::default() };
        let wanted = outcomes(alone, &wat, &calls);
        for hot in [10, 100, 20_000] {
            for gc_stress in [false, true] {
                let config = Config { hot, background: false, gc_stress, ..Config::default() };
                prop_assert_eq!(&outcomes(config, &wat, &calls), &wanted, "hot {}, {}\n{}", hot, gc_stress, wat);
            }
        }
    }
}
