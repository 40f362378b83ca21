//! The optimizing compiler's knowledge of the path that control took: truth values, functions in globals, types without subtypes, calls of
//! a function by itself.

use varve_runtime::*;

/// Code that is optimized after a few calls, always, and never.
fn settings() -> [Config; 3] {
    [Tier::Auto, Tier::Optimizing, Tier::Baseline].map(|tier| Config {
        tier,
        hot: 50,
        background: false,
        ..Config::default()
    })
}

struct Program {
    store: Store<()>,
    instance: Instance,
}

impl Program {
    fn new(engine: &Engine, wat: &str) -> Program {
        let module = Module::new(engine, &wat::parse_str(wat).unwrap()).unwrap();
        let mut store = Store::new(engine, ()).unwrap();
        let instance = Linker::new(engine)
            .instantiate(&mut store, &module)
            .unwrap();
        Program { store, instance }
    }

    fn call<P: WasmTypes, R: WasmResults>(&mut self, name: &str, params: P) -> Result<R> {
        let f = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, name)?;
        f.call(&mut self.store, params)
    }
}

fn trap<R: std::fmt::Debug>(outcome: Result<R>) -> Box<Trap> {
    match outcome {
        Err(Error::Trap(trap)) => trap,
        other => panic!("{other:?}"),
    }
}

/// `$is` leaves a 0, a 1, another number or a comparison; its callers branch on it, negate it, pass it on, count with it.
const TRUTH: &str = r#"(module
    (func $is (param $x i32) (result i32)
        (if (i32.lt_s (local.get $x) (i32.const 3)) (then (return (i32.const 0))))
        (if (i32.lt_s (local.get $x) (i32.const 6)) (then (return (i32.const 1))))
        (if (i32.lt_s (local.get $x) (i32.const 9)) (then (return (i32.const 7))))
        (i32.eq (local.get $x) (i32.const 11)))
    (func $always (param $x i32) (result i32)
        (if (i32.lt_s (local.get $x) (i32.const 5)) (then (return (i32.const 1))))
        (i32.const 1))
    (func $passes (param $x i32) (result i32)
        (if (result i32) (i32.and (local.get $x) (i32.const 1))
            (then (call $is (local.get $x)))
            (else (i32.eqz (call $is (local.get $x))))))
    (func (export "if") (param $x i32) (result i32)
        (if (result i32) (call $is (local.get $x)) (then (i32.const 100)) (else (local.get $x))))
    (func (export "if_not") (param $x i32) (result i32) (local $r i32)
        (local.set $r (i32.const 40))
        (if (i32.eqz (call $is (local.get $x))) (then (local.set $r (local.get $x))))
        (local.get $r))
    (func (export "br_if") (param $x i32) (result i32)
        (block $b (result i32)
            (drop (br_if $b (i32.const 5) (call $is (local.get $x))))
            (br_if $b (i32.const 6) (i32.eqz (i32.eqz (call $passes (local.get $x)))))
            (drop)
            (i32.const 7)))
    (func (export "number") (param $x i32) (result i32)
        (i32.add (call $is (local.get $x)) (i32.mul (i32.const 10) (i32.eqz (call $passes (local.get $x))))))
    (func (export "twice") (param $x i32) (result i32)
        (i32.add (i32.const 20) (i32.eqz (i32.eqz (call $is (local.get $x))))))
    (func (export "always") (param $x i32) (result i32)
        (if (result i32) (call $always (local.get $x)) (then (i32.const 1)) (else (unreachable))))
    (func (export "passed") (param $x i32) (result i32) (return (i32.eqz (call $passes (local.get $x)))))
    (func (export "local") (param $x i32) (result i32) (local $t i32) (local $n i32)
        (block $done
            (if (i32.lt_s (local.get $x) (i32.const 4))
                (then (local.set $t (i32.const 1)) (br $done)))
            (if (i32.lt_s (local.get $x) (i32.const 8))
                (then (local.set $t (i32.and (local.get $x) (i32.const 2))) (br $done)))
            (local.set $t (i32.const 0)))
        (local.get $t)
        (i32.eqz)
        (if (then (local.set $n (i32.const 50))))
        (i32.add (local.get $n) (local.get $t)))
    (func (export "loop") (param $x i32) (result i32) (local $t i32) (local $n i32)
        (loop $again
            (block $found
                (if (i32.ge_s (local.get $n) (local.get $x)) (then (local.set $t (i32.const 1)) (br $found)))
                (local.set $t (i32.const 0)))
            (local.get $t)
            (if (then (return (local.get $n))))
            (local.set $n (i32.add (local.get $n) (i32.const 3)))
            (br $again))
        (unreachable)))"#;

#[test]
fn truth_values_mean_the_same_however_they_are_asked() {
    let is = |x: i32| match x {
        ..3 => 0,
        3..6 => 1,
        6..9 => 7,
        _ => i32::from(x == 11),
    };
    let passes = |x: i32| {
        if x & 1 == 1 {
            is(x)
        } else {
            i32::from(is(x) == 0)
        }
    };
    let local = |x: i32| {
        let t = match x {
            ..4 => 1,
            4..8 => x & 2,
            _ => 0,
        };
        t + if t == 0 { 50 } else { 0 }
    };
    for config in settings() {
        let mut p = Program::new(&Engine::new(config), TRUTH);
        for x in (0..16).cycle().take(400) {
            let wanted = [
                ("if", if is(x) != 0 { 100 } else { x }),
                ("if_not", if is(x) == 0 { x } else { 40 }),
                (
                    "br_if",
                    if is(x) != 0 {
                        5
                    } else if passes(x) != 0 {
                        6
                    } else {
                        7
                    },
                ),
                ("number", is(x) + 10 * i32::from(passes(x) == 0)),
                ("twice", 20 + i32::from(is(x) != 0)),
                ("always", 1),
                ("passed", i32::from(passes(x) == 0)),
                ("local", local(x)),
                ("loop", (x + 2) / 3 * 3),
            ];
            for (name, wanted) in wanted {
                assert_eq!(
                    p.call::<i32, i32>(name, x).unwrap(),
                    wanted,
                    "{name} of {x}"
                );
            }
        }
    }
}

/// The facts of a path hold on its side of the branch, and nowhere else: a test for null in an inlined function.
#[test]
fn what_a_path_knows_is_known_on_its_side_alone() {
    for config in settings() {
        let mut p = Program::new(
            &Engine::new(config),
            r#"(module
                (type $s (struct (field (mut i32))))
                (func $has (param $s (ref null $s)) (result i32)
                    (if (ref.is_null (local.get $s)) (then (return (i32.const 0))))
                    (i32.const 1))
                (func (export "get") (param $null i32) (result i32) (local $s (ref null $s))
                    (if (i32.eqz (local.get $null)) (then (local.set $s (struct.new $s (i32.const 4)))))
                    (if (result i32) (call $has (local.get $s))
                        (then (struct.get $s 0 (local.get $s)))
                        (else (i32.const -1))))
                (func (export "wrong") (param $null i32) (result i32) (local $s (ref null $s))
                    (if (i32.eqz (local.get $null)) (then (local.set $s (struct.new $s (i32.const 4)))))
                    (if (result i32) (i32.eqz (call $has (local.get $s)))
                        (then (struct.get $s 0 (local.get $s)))
                        (else (i32.const -1)))))"#,
        );
        for i in 0..400 {
            let null = i32::from(i % 3 == 0);
            assert_eq!(p.call::<i32, i32>("get", null).unwrap(), 4 - 5 * null);
            assert_eq!(p.call::<i32, i32>("wrong", 0).unwrap(), -1);
        }
        let trap = trap(p.call::<i32, i32>("wrong", 1));
        assert_eq!(trap.kind, TrapKind::NullReference);
    }
}

/// Functions in globals, as compilers of Java keep initializers: the first call puts another function there.
#[test]
fn a_function_in_a_global_is_looked_up_again_once_it_may_have_changed() {
    for config in settings() {
        let mut p = Program::new(
            &Engine::new(config),
            r#"(module
                (type $f (func (result i32)))
                (global $g (mut (ref $f)) (ref.func $one))
                (global $n (mut i32) (i32.const 0))
                (elem declare func $one $two $switch)
                (func $one (type $f) (i32.const 1))
                (func $two (type $f) (i32.const 20))
                (func $switch (type $f) (global.set $g (ref.func $two)) (i32.const 300))
                (func $set (param $which i32)
                    (if (i32.eq (local.get $which) (i32.const 1)) (then (global.set $g (ref.func $switch))))
                    (if (i32.eq (local.get $which) (i32.const 2)) (then (global.set $g (ref.func $two)))))
                (func (export "twice") (param $which i32) (result i32) (local $sum i32)
                    (global.set $g (ref.func $one))
                    (local.set $sum (i32.add (call_ref $f (global.get $g)) (call_ref $f (global.get $g))))
                    (call $set (local.get $which))
                    (i32.add (local.get $sum)
                        (i32.add (call_ref $f (global.get $g)) (call_ref $f (global.get $g)))))
                (func (export "loop") (param $which i32) (result i32) (local $sum i32)
                    (global.set $g (ref.func $one))
                    (global.set $n (i32.const 0))
                    (loop $l
                        (local.set $sum (i32.add (local.get $sum) (call_ref $f (global.get $g))))
                        (global.set $n (i32.add (global.get $n) (i32.const 1)))
                        (if (i32.eq (global.get $n) (i32.const 3)) (then (call $set (local.get $which))))
                        (br_if $l (i32.lt_s (global.get $n) (i32.const 6))))
                    (local.get $sum)))"#,
        );
        for i in 0..600 {
            // The other functions come late, where the code knows one alone, and then often.
            let which = if i < 200 { 0 } else { i % 3 };
            let after = [[1, 1, 1], [300, 20, 20], [20, 20, 20]][which as usize];
            let twice: i32 = 2 + after[0] + after[1];
            assert_eq!(
                p.call::<i32, i32>("twice", which).unwrap(),
                twice,
                "call {i}"
            );
            let all: i32 = 3 + after.iter().sum::<i32>();
            assert_eq!(p.call::<i32, i32>("loop", which).unwrap(), all, "call {i}");
        }
    }
}

/// A cast to a type that nothing extended when the code was made, of objects of another type, of null, of integers, and at last of a type
/// from a module that came later.
#[test]
fn a_type_may_be_extended_after_casts_to_it_were_compiled() {
    const TYPES: &str = "
        (type $a (sub (struct (field i32))))
        (type $b (sub $a (struct (field i32) (field i32))))";
    for config in settings() {
        let engine = Engine::new(config);
        let casts = format!(
            r#"(module {TYPES}
                (type $v (sub (array i32)))
                (global $late (export "late") (mut anyref) (ref.null any))
                (func $cast (param anyref) (result i32) (struct.get $b 1 (ref.cast (ref $b) (local.get 0))))
                (func $maybe (param anyref) (result i32)
                    (ref.is_null (ref.cast (ref null $b) (local.get 0))))
                (func (export "good") (result i32) (call $cast (struct.new $b (i32.const 1) (i32.const 2))))
                (func (export "null_or") (param i32) (result i32)
                    (if (result i32) (local.get 0)
                        (then (call $maybe (ref.null any)))
                        (else (call $maybe (struct.new $b (i32.const 1) (i32.const 2))))))
                (func (export "array") (result i32)
                    (array.len (ref.cast (ref $v) (global.get $late))))
                (func (export "bad") (param i32) (result i32)
                    (if (i32.eq (local.get 0) (i32.const 0)) (then (return (call $cast (struct.new $a (i32.const 1))))))
                    (if (i32.eq (local.get 0) (i32.const 1)) (then (return (call $cast (ref.null any)))))
                    (if (i32.eq (local.get 0) (i32.const 2)) (then (return (call $cast (ref.i31 (i32.const 3))))))
                    (if (i32.eq (local.get 0) (i32.const 3)) (then (return (call $maybe (ref.i31 (i32.const 3))))))
                    (call $maybe (array.new_default $v (i32.const 3))))
                (func (export "given") (result i32) (call $cast (global.get $late))))"#
        );
        let mut p = Program::new(&engine, &casts);
        for i in 0..200 {
            assert_eq!(p.call::<(), i32>("good", ()).unwrap(), 2);
            assert_eq!(p.call::<i32, i32>("null_or", i & 1).unwrap(), i & 1);
        }
        for _ in 0..60 {
            for which in 0..5 {
                let trap = trap(p.call::<i32, i32>("bad", which));
                assert_eq!(trap.kind, TrapKind::CastFailure, "{which}");
            }
        }
        let late = format!(
            r#"(module {TYPES}
                (type $c (sub $b (struct (field i32) (field i32) (field i64))))
                (import "casts" "late" (global $late (mut anyref)))
                (func (export "give") (param i32)
                    (global.set $late (struct.new $c (i32.const 1) (local.get 0) (i64.const 3)))))"#
        );
        let module = Module::new(&engine, &wat::parse_str(late).unwrap()).unwrap();
        let mut linker = Linker::new(&engine);
        let global = p.instance.get_global(&mut p.store, "late").unwrap();
        linker.define("casts", "late", global);
        let other = linker.instantiate(&mut p.store, &module).unwrap();
        let give = other
            .get_typed_func::<i32, ()>(&mut p.store, "give")
            .unwrap();
        for i in 0..200 {
            give.call(&mut p.store, i).unwrap();
            assert_eq!(p.call::<(), i32>("given", ()).unwrap(), i);
            assert_eq!(p.call::<(), i32>("good", ()).unwrap(), 2);
        }
        let trap = trap(p.call::<(), i32>("array", ()));
        assert_eq!(trap.kind, TrapKind::CastFailure);
    }
}

/// Trees by recursion, with exceptions thrown from deep within, and a path that is taken only once the code is optimized.
const RECURSION: &str = r#"(module
    (type $t (struct (field $key i32) (field $left (mut (ref null $t))) (field $right (mut (ref null $t)))))
    (tag $found (param i32))
    (func $insert (param $t (ref null $t)) (param $key i32) (result (ref $t))
        (if (ref.is_null (local.get $t))
            (then (return (struct.new $t (local.get $key) (ref.null $t) (ref.null $t)))))
        (if (i32.lt_s (local.get $key) (struct.get $t $key (local.get $t)))
            (then (struct.set $t $left (local.get $t)
                (call $insert (struct.get $t $left (local.get $t)) (local.get $key))))
            (else (struct.set $t $right (local.get $t)
                (call $insert (struct.get $t $right (local.get $t)) (local.get $key)))))
        (ref.as_non_null (local.get $t)))
    (func $sum (param $t (ref null $t)) (param $find i32) (result i32)
        (if (ref.is_null (local.get $t)) (then (return (i32.const 0))))
        (if (i32.eq (struct.get $t $key (local.get $t)) (local.get $find))
            (then
                (if (i32.ge_s (local.get $find) (i32.const 500))
                    (then (return (i32.div_s (i32.const 1) (i32.sub (local.get $find) (i32.const 500))))))
                (throw $found (local.get $find))))
        (i32.add (struct.get $t $key (local.get $t))
            (i32.add (call $sum (struct.get $t $left (local.get $t)) (local.get $find))
                (call $sum (struct.get $t $right (local.get $t)) (local.get $find)))))
    (func (export "run") (param $n i32) (param $find i32) (result i32)
        (local $t (ref null $t)) (local $i i32) (local $x i32)
        (loop $l
            (local.set $x (i32.rem_u (i32.mul (local.get $i) (i32.const 37)) (i32.const 101)))
            (local.set $t (call $insert (local.get $t) (local.get $x)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_s (local.get $i) (local.get $n))))
        (local.set $t (call $insert (local.get $t) (i32.const 500)))
        (block $caught (result i32)
            (try_table (result i32) (catch $found $caught) (call $sum (local.get $t) (local.get $find)))
            (return))))"#;

#[test]
fn recursion_that_is_inlined_throws_traps_and_adds_up_as_before() {
    let mut traps = Vec::new();
    for config in settings() {
        let mut p = Program::new(&Engine::new(config), RECURSION);
        let sum: i32 = (0..60).map(|i| i * 37 % 101).sum::<i32>() + 500;
        for _ in 0..100 {
            assert_eq!(p.call::<(i32, i32), i32>("run", (60, -1)).unwrap(), sum);
        }
        // Paths that never ran.
        for find in (0..60).map(|i| i * 37 % 101) {
            let found = p.call::<(i32, i32), i32>("run", (60, find));
            assert_eq!(found.unwrap(), find);
        }
        let trap = trap(p.call::<(i32, i32), i32>("run", (60, 500)));
        assert_eq!(trap.kind, TrapKind::IntegerDivisionByZero);
        let frames = trap.frames.iter().map(|f| (f.function.clone(), f.offset));
        traps.push(frames.collect::<Vec<_>>());
    }
    assert_eq!(traps[0], traps[2]);
    assert_eq!(traps[1], traps[2]);
    assert!(traps[0].len() > 3, "{traps:?}");
}

/// A cast lets null pass, and the operators after it ask for null: both find out on the same path.
const CAST_AND_ASKED: &str = r#"(module
    (type $a (sub (struct (field (mut i32)))))
    (type $b (sub $a (struct (field (mut i32)) (field i32))))
    (type $c (sub (struct (field i64))))
    (func $value (param $x (ref null struct)) (result i32)
        (ref.cast (ref null $a) (local.get $x))
        (block $some (param (ref null $a)) (result (ref $a))
            (br_on_non_null $some)
            (return (i32.const -1)))
        (struct.get $a 0))
    (func $made (param $i i32) (result (ref null struct))
        (block $null (block $b (block $a
            (br_table $a $b $null (i32.rem_u (local.get $i) (i32.const 3))))
            (return (struct.new $a (local.get $i))))
            (return (struct.new $b (local.get $i) (i32.const 7))))
        (ref.null struct))
    (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $s i32)
        (loop $l
            (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 3)) (call $value (call $made (local.get $i)))))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (local.get $s))
    (func (export "null") (result i32) (call $value (ref.null struct)))
    (func (export "other") (result i32) (call $value (struct.new $c (i64.const 5)))))"#;

#[test]
fn a_value_that_is_cast_and_asked_for_null_is_null_or_of_its_type() {
    for config in settings() {
        let mut p = Program::new(&Engine::new(config), CAST_AND_ASKED);
        for n in [1, 2, 3, 500, 4] {
            let value = |i: i32| if i % 3 == 2 { -1 } else { i };
            let expected = (0..n).fold(0_i32, |s, i| s.wrapping_mul(3).wrapping_add(value(i)));
            assert_eq!(p.call::<i32, i32>("sum", n).unwrap(), expected);
            assert_eq!(p.call::<(), i32>("null", ()).unwrap(), -1);
            let failed = trap(p.call::<(), i32>("other", ()));
            assert_eq!(failed.kind, TrapKind::CastFailure);
        }
    }
}
