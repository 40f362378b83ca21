//! Baseline code is written in one pass: its corners, each beside optimized code, which Cranelift makes.

#[path = "common/program.rs"]
mod program;

use program::Program;
use proptest::prelude::*;
use std::fmt::Write;
use varve_runtime::*;

fn load(tier: Tier, wat: &str) -> Program {
    let config = Config {
        tier,
        background: false,
        ..Config::default()
    };
    Program::with_number(config, wat, 0)
}

/// The result of the function `f` in both compilers' code, which must be the same.
fn both(wat: &str, n: i64) -> i64 {
    let [baseline, optimized] = [Tier::Baseline, Tier::Optimizing].map(|tier| {
        let mut p = load(tier, wat);
        p.call::<i64, i64>("f", n).unwrap()
    });
    assert_eq!(baseline, optimized, "f({n}) in\n{wat}");
    baseline
}

#[test]
fn variables_change_places_in_a_loop() {
    let wat = r#"(module (func (export "f") (param $n i64) (result i64)
        (local $a i64) (local $b i64) (local $c i64) (local $d i64)
        (local.set $a (i64.const 1)) (local.set $b (i64.const 2)) (local.set $c (i64.const 3))
        (loop $l
            (local.set $d (local.get $a))
            (local.set $a (local.get $b))
            (local.set $b (local.get $c))
            (local.set $c (local.get $d))
            (local.set $n (i64.sub (local.get $n) (i64.const 1)))
            (br_if $l (i64.gt_s (local.get $n) (i64.const 0))))
        (i64.add (i64.mul (local.get $a) (i64.const 100))
            (i64.add (i64.mul (local.get $b) (i64.const 10)) (local.get $c)))))"#;
    assert_eq!(both(wat, 1), 231);
    assert_eq!(both(wat, 2), 312);
    assert_eq!(both(wat, 3), 123);
}

/// The results of `f` while code of both compilers calls one another.
fn mixed(wat: &str, calls: i64) -> Vec<i64> {
    let config = Config {
        hot: 50,
        background: false,
        ..Config::default()
    };
    let mut p = Program::with_number(config, wat, 0);
    let all = (0..calls).map(|n| p.call::<i64, i64>("f", n).unwrap());
    let all = all.collect();
    assert!(p.stats().optimized > 0);
    all
}

#[test]
fn more_arguments_than_registers_are_on_the_stack() {
    let params: String = (0..10).map(|i| format!("(param $p{i} i64) ")).collect();
    let sum = (0..10).fold("(i64.const 0)".to_string(), |sum, i| {
        format!("(i64.add (i64.mul {sum} (i64.const 3)) (local.get $p{i}))")
    });
    let args: String = (0..10)
        .map(|i| format!("(i64.add (local.get $n) (i64.const {i})) "))
        .collect();
    let wat = format!(
        r#"(module (func $g {params} (result i64) {sum})
            (func (export "f") (param $n i64) (result i64) (call $g {args})))"#
    );
    let expected = |n| (0..10).fold(0, |sum, i| sum * 3 + n + i);
    assert_eq!(both(&wat, 5), expected(5));
    assert_eq!(mixed(&wat, 200), (0..200).map(expected).collect::<Vec<_>>());
}

#[test]
fn arguments_of_all_kinds_are_on_the_stack_in_a_loop_with_recursion() {
    let kinds = ["i64", "f64", "i32", "f32"];
    let params: String = (0..44)
        .map(|i| format!("(param $p{i} {}) ", kinds[i % 4]))
        .collect();
    let term = |i: usize| match i % 4 {
        0 => format!("(local.get $p{i})"),
        1 => format!("(i64.trunc_f64_s (local.get $p{i}))"),
        2 => format!("(i64.extend_i32_s (local.get $p{i}))"),
        _ => format!("(i64.trunc_f32_s (local.get $p{i}))"),
    };
    let sum = (0..44).fold("(i64.const 0)".to_string(), |sum, i| {
        format!("(i64.add (i64.mul {sum} (i64.const 7)) {})", term(i))
    });
    // Each argument of the recursion is another's value.
    let turned: String = (0..44)
        .map(|i| match i {
            0 => "(i64.sub (local.get $p0) (i64.const 1)) ".into(),
            1..4 => format!("(local.get $p{i}) "),
            _ => format!("(local.get $p{}) ", if i < 8 { i + 36 } else { i - 4 }),
        })
        .collect();
    let args: String = (1..44)
        .map(|i| format!("({}.const {}) ", kinds[i % 4], (i as i64 * 37) % 41 - 20))
        .collect();
    let wat = format!(
        r#"(module (type $g (func {params} (result i64))) (elem declare func $g)
            (func $g (type $g) {params} (result i64)
                (if (i64.le_s (local.get $p0) (i64.const 0)) (then (return {sum})))
                (i64.add {sum} (call $g {turned})))
            (func (export "f") (param $n i64) (result i64) (local $i i32) (local $x i64)
                (loop $l
                    (local.set $x (i64.add
                        (i64.mul (local.get $x) (i64.const 5))
                        (call_ref $g (local.get $n) {args} (ref.func $g))))
                    (br_if $l (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                        (i32.const 100))))
                (local.get $x)))"#
    );
    let all: Vec<i64> = (0..30).map(|n| both(&wat, n)).collect();
    assert_eq!(mixed(&wat, 30), all);
}

#[test]
fn tail_calls_with_arguments_on_the_stack_give_back_what_they_took() {
    let params = |n: usize| -> String { (0..n).map(|i| format!("(param $p{i} i64) ")).collect() };
    let sum = |n: usize| {
        (0..n).fold("(i64.const 0)".to_string(), |sum, i| {
            format!("(i64.add (i64.mul {sum} (i64.const 3)) (local.get $p{i}))")
        })
    };
    // From few arguments to many and back, so that callers and callees have different numbers of them on the stack.
    let wat = format!(
        r#"(module
            (func $many {} (result i64)
                (if (i64.gt_s (local.get $p0) (i64.const 3))
                    (then (return_call $some (i64.sub (local.get $p0) (i64.const 1))
                        {} (local.get $p9))))
                {})
            (func $some {} (result i64)
                (return_call $many (i64.sub (local.get $p0) (i64.const 1))
                    {} (local.get $p7) (local.get $p0) (local.get $p1)))
            (func $few (param $p0 i64) (param $p1 i64) (result i64)
                (return_call $some (local.get $p0) {}))
            (func (export "f") (param $n i64) (result i64) (local $i i64) (local $x i64)
                (loop $l
                    (local.set $x (i64.add (local.get $x)
                        (call $few (local.get $n) (local.get $i))))
                    (br_if $l (i64.lt_s
                        (local.tee $i (i64.add (local.get $i) (i64.const 1))) (i64.const 500))))
                (local.get $x)))"#,
        params(10),
        (1..7)
            .map(|i| format!("(local.get $p{i}) "))
            .collect::<String>(),
        sum(10),
        params(8),
        (1..7)
            .map(|i| format!("(local.get $p{i}) "))
            .collect::<String>(),
        "(local.get $p1) ".repeat(7),
    );
    let all: Vec<i64> = (0..40).map(|n| both(&wat, n)).collect();
    assert_eq!(mixed(&wat, 40), all);
}

#[test]
fn what_a_callee_with_arguments_on_the_stack_throws_is_caught_in_a_loop() {
    let params: String = (0..9).map(|i| format!("(param $p{i} i64) ")).collect();
    let args = "(local.get $n) ".repeat(9);
    let wat = format!(
        r#"(module (tag $t (param i64))
            (func $throws {params} (result i64)
                (if (i64.eqz (i64.and (local.get $p8) (i64.const 1)))
                    (then (throw $t (local.get $p8))))
                (i64.add (local.get $p7) (local.get $p8)))
            (func (export "f") (param $n i64) (result i64) (local $i i64) (local $x i64)
                (loop $l
                    (local.set $x (i64.add (local.get $x)
                        (block $caught (result i64)
                            (try_table (result i64) (catch $t $caught) (call $throws {args})))))
                    (local.set $n (i64.add (local.get $n) (i64.const 1)))
                    (br_if $l (i64.lt_s
                        (local.tee $i (i64.add (local.get $i) (i64.const 1))) (i64.const 2000))))
                (local.get $x)))"#
    );
    let expected = |n: i64| -> i64 { (n..n + 2000).map(|n| n + (n & 1) * n).sum() };
    assert_eq!(both(&wat, 3), expected(3));
    assert_eq!(mixed(&wat, 100), (0..100).map(expected).collect::<Vec<_>>());
}

#[test]
fn references_among_arguments_on_the_stack_survive_collections() {
    let params: String = (0..9)
        .map(|i| format!("(param $p{i} (ref null $box)) "))
        .collect();
    let args: String = (0..9)
        .map(|i| format!("(struct.new $box (i64.add (local.get $n) (i64.const {i}))) "))
        .collect();
    let sum = (0..9).fold("(i64.const 0)".to_string(), |sum, i| {
        format!("(i64.add (i64.mul {sum} (i64.const 3)) (struct.get $box 0 (local.get $p{i})))")
    });
    let wat = format!(
        r#"(module (type $box (struct (field (mut i64))))
            (type $words (array (mut i64)))
            (func $g {params} (param $n i32) (result i64)
                (loop $l
                    (drop (array.new $words (i64.const 1) (i32.const 1000)))
                    (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
                {sum})
            (func (export "f") (param $n i64) (result i64) (call $g {args} (i32.const 3000))))"#
    );
    let expected = (0..9).fold(0, |sum, i| sum * 3 + 5 + i);
    assert_eq!(both(&wat, 5), expected);
}

#[test]
fn a_caller_has_its_registers_again_after_something_was_caught() {
    // Optimized code calls baseline code, which catches. Many values live across the calls.
    let names: Vec<String> = (0..12).map(|i| format!("$v{i}")).collect();
    let locals: String = names.iter().map(|n| format!("(local {n} i64) ")).collect();
    let sets: String = (0i64..)
        .zip(&names)
        .map(|(i, n)| format!("(local.set {n} (i64.mul (local.get $n) (i64.const {i}))) "))
        .collect();
    let sum = names
        .iter()
        .fold("(call $catches)".into(), |sum: String, n| {
            format!("(i64.add {sum} (local.get {n}))")
        });
    let wat = format!(
        r#"(module (tag $t (param i64))
            (func $throws (throw $t (i64.const 7)))
            (func $catches (result i64)
                (block $caught (result i64)
                    (try_table (catch $t $caught) (call $throws))
                    (i64.const 1)))
            (func (export "f") (param $n i64) (result i64) {locals} {sets} {sum}))"#
    );
    assert_eq!(both(&wat, 10), 7 + 10 * 66);
    let config = Config {
        hot: 50,
        background: false,
        ..Config::default()
    };
    let mut p = Program::with_number(config, &wat, 0);
    for n in 0..200 {
        assert_eq!(p.call::<i64, i64>("f", n).unwrap(), 7 + n * 66);
    }
    assert!(p.stats().optimized > 0);
}

#[test]
fn a_table_of_branches_hands_values_on() {
    let wat = r#"(module (func (export "f") (param $n i64) (result i64) (local $x i64)
        (local.set $x (i64.mul (local.get $n) (local.get $n)))
        (block $c (result i64)
            (block $b (result i64)
                (block $a (result i64)
                    (br_table $a $b $c (local.get $x) (i32.wrap_i64 (local.get $n))))
                (return (i64.add (i64.const 1000))))
            (return (i64.add (i64.const 2000))))
        (i64.add (local.get $x))))"#;
    let all: Vec<i64> = [0, 1, 2, 3, -1, i64::MAX]
        .iter()
        .map(|&n| both(wat, n))
        .collect();
    assert_eq!(all, [1000, 2001, 8, 18, 2, 2]);
}

/// A step of a random function: the variables that it reads, the one that it sets, and how.
#[derive(Clone, Debug)]
struct Step {
    op: usize,
    from: [usize; 3],
    to: usize,
    constant: i64,
}

const VARIABLES: usize = 14;

/// Operations of two 64-bit numbers.
const WIDE: &[&str] = &[
    "add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr",
];
const COMPARISONS: &[&str] = &[
    "eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u",
];
const DIVISIONS: &[&str] = &["div_s", "div_u", "rem_s", "rem_u"];
const FLOATS: &[&str] = &["add", "sub", "mul", "div", "min", "max", "copysign"];
const FLOAT_COMPARISONS: &[&str] = &["eq", "ne", "lt", "gt", "le", "ge"];
const KINDS: usize = 8;

fn step() -> impl Strategy<Value = Step> {
    let constant = prop_oneof![
        -3i64..4,
        any::<i64>(),
        any::<i32>().prop_map(i64::from),
        (0u32..64).prop_map(|bit| 1i64 << bit),
    ];
    let variable = 0..VARIABLES;
    let from = [variable.clone(), variable.clone(), variable.clone()];
    (0usize..400, from, variable, constant).prop_map(|(op, from, to, constant)| Step {
        op,
        from,
        to,
        constant,
    })
}

impl Step {
    /// The step as text. NaNs are replaced by 1, as their bits may differ.
    fn write(&self, text: &mut String) {
        let get = |i: usize| format!("(local.get $v{})", self.from[i]);
        let constant = format!("(i64.const {})", self.constant);
        let second = if self.op.is_multiple_of(3) {
            &constant
        } else {
            &get(1)
        };
        let pick = |all: &[&'static str]| all[self.op / KINDS % all.len()];
        let half = |value: &str| format!("(i32.wrap_i64 {value})");
        let float = |value: &str| format!("(f64.convert_i64_s {value})");
        let value = match self.op % KINDS {
            0 => format!("(i64.{} {} {second})", pick(WIDE), get(0)),
            1 => format!(
                "(i64.extend_i32_s (i32.{} {} {}))",
                pick(WIDE),
                half(&get(0)),
                half(second)
            ),
            2 => format!(
                "(i64.extend_i32_u (i64.{} {} {second}))",
                pick(COMPARISONS),
                get(0)
            ),
            3 => format!(
                "(select {} {} (i32.{} {} {}))",
                get(2),
                get(1),
                pick(COMPARISONS),
                half(&get(0)),
                half(second)
            ),
            // By what is neither 0 nor -1.
            4 => format!(
                "(i64.{} {} (i64.or (i64.const 2) (i64.and (i64.const 0xffff) {second})))",
                pick(DIVISIONS),
                get(0)
            ),
            5 => format!(
                "(i64.trunc_sat_f64_s (f64.{} {} {}))",
                pick(FLOATS),
                float(&get(0)),
                float(second)
            ),
            6 => format!(
                "(i64.extend_i32_u (f64.{} {} {}))",
                pick(FLOAT_COMPARISONS),
                float(&get(0)),
                float(second)
            ),
            _ => format!(
                "(if (result i64) (i32.{} {} {}) (then {}) (else (i64.xor {} {second})))",
                pick(COMPARISONS),
                half(&get(0)),
                half(second),
                get(1),
                get(2)
            ),
        };
        writeln!(text, "(local.set $v{} {value})", self.to).expect("text has room");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// More variables than registers, in a loop, with branches: both compilers' code comes to the same.
    #[test]
    fn random_functions_come_to_the_same(steps in prop::collection::vec(step(), 1..60), n in any::<i64>()) {
        let mut body = String::new();
        for step in &steps {
            step.write(&mut body);
        }
        let locals: String = (0..VARIABLES).map(|i| format!("(local $v{i} i64) ")).collect();
        let begin: String = (0..VARIABLES)
            .map(|i| format!("(local.set $v{i} (i64.rotl (local.get $n) (i64.const {}))) ", i * 5))
            .collect();
        let sum = (0..VARIABLES).fold("(i64.const 0)".to_string(), |sum, i| {
            format!("(i64.add (i64.mul {sum} (i64.const 31)) (local.get $v{i}))")
        });
        let wat = format!(
            "(module (func (export \"f\") (param $n i64) (result i64) (local $turns i32) {locals} {begin}
                (loop $l {body}
                    (local.set $turns (i32.add (local.get $turns) (i32.const 1)))
                    (br_if $l (i32.lt_u (local.get $turns) (i32.const 3))))
                {sum}))"
        );
        both(&wat, n);
    }
}
