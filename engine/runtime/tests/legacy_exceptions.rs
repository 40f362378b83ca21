//! Exceptions as they were before WebAssembly 3.0: `try` with clauses, `rethrow`, `delegate`.

#[path = "legacy/program.rs"]
mod program;

use program::{Run, functions, module};
use proptest::prelude::*;
use varve_runtime::*;

/// Both compilers, and code that changes under its activations while everything moves.
fn configurations() -> Vec<Config> {
    let change = Config {
        hot: 2,
        background: false,
        gc_stress: true,
        ..Config::default()
    };
    let optimizing = Config {
        tier: Tier::Optimizing,
        ..Config::default()
    };
    vec![Config::default(), optimizing, change]
}

fn instance(config: Config, wat: &str) -> (Store<()>, Instance) {
    let engine = Engine::new(config);
    let bytes = wat::parse_str(wat).unwrap_or_else(|e| panic!("{e}\n{wat}"));
    let module = Module::new(&engine, &bytes).unwrap_or_else(|e| panic!("{e}\n{wat}"));
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    (store, instance)
}

/// The results of `f` for each of the arguments, several times over, in every configuration.
fn gives(wat: &str, expected: &[(i32, i32)]) {
    for config in configurations() {
        let (mut store, instance) = instance(config.clone(), wat);
        let f = instance
            .get_typed_func::<i32, i32>(&mut store, "f")
            .unwrap();
        for _ in 0..6 {
            for &(x, y) in expected {
                assert_eq!(f.call(&mut store, x).unwrap(), y, "f({x}) with {config:?}");
            }
        }
    }
}

const TAGS: &str = "(tag $a (param i32)) (tag $b (param i32 i64)) (tag $none)
    (func $throw (param i32) (result i32)
        (if (i32.eq (local.get 0) (i32.const 1)) (then (throw $a (i32.const 10))))
        (if (i32.eq (local.get 0) (i32.const 2)) (then (throw $b (i32.const 20) (i64.const 200))))
        (if (i32.eq (local.get 0) (i32.const 3)) (then (throw $none)))
        (i32.const 5))";

#[test]
fn the_first_clause_that_wants_an_exception_takes_it() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32)
            try (result i32)
                (call $throw (local.get 0))
            catch $b
                i32.wrap_i64 i32.add
            catch $a
            catch $a
                drop (i32.const -1)
            catch_all
                (i32.const 99)
            end))"
    );
    gives(&wat, &[(0, 5), (1, 10), (2, 220), (3, 99)]);
}

#[test]
fn what_no_clause_wants_goes_to_the_try_around_and_a_clause_is_outside_of_its_own_body() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32)
            try (result i32)
                try (result i32)
                    (call $throw (local.get 0))
                catch $a
                    drop (call $throw (i32.const 2))
                catch $none
                    (throw $a (i32.const 77))
                end
            catch $a
                (i32.add (i32.const 1000))
            catch $b
                i32.wrap_i64 i32.sub
            end))"
    );
    gives(&wat, &[(0, 5), (1, -180), (2, -180), (3, 1077)]);
}

#[test]
fn a_clause_throws_on_what_it_or_one_around_it_caught() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32)
            try (result i32)
                try (result i32)
                    (call $throw (i32.const 1))
                catch_all
                    try (result i32)
                        (call $throw (local.get 0))
                    catch_all
                        block
                            (br_if 0 (i32.eq (local.get 0) (i32.const 2)))
                            rethrow 1
                        end
                        rethrow 1
                    end
                end
            catch $a
            catch $b
                i32.wrap_i64 i32.add
            catch $none
                (i32.const 3)
            end))"
    );
    // Of the second exception the inner clause gives one back, and for number 2 the outer clause's.
    gives(&wat, &[(0, 5), (1, 10), (2, 10), (3, 3)]);
}

#[test]
fn delegate_leaves_out_the_handlers_between() {
    let wat = format!(
        "(module {TAGS}
        (func $inner (param i32) (result i32)
            try (result i32)
                try (result i32)
                    try (result i32)
                        (call $throw (local.get 0))
                    delegate 1
                catch_all
                    (i32.const -1)
                end
            catch $a
            end)
        (func $past (param i32) (result i32)
            try (result i32)
                try (result i32)
                    (call $throw (local.get 0))
                delegate 1
            catch_all
                (i32.const -2)
            end)
        (func (export \"f\") (param i32) (result i32)
            try (result i32)
                (call $inner (local.get 0))
                (call $past (i32.sub (local.get 0) (i32.const 4)))
                i32.add
            catch $a
                (i32.add (i32.const 500))
            catch $b
                i32.wrap_i64 i32.add
            catch $none
                (i32.const 3)
            end))"
    );
    gives(
        &wat,
        &[
            (0, 10),
            (1, 15),
            (2, 220),
            (3, 3),
            (5, 510),
            (6, 220),
            (7, 3),
        ],
    );
}

#[test]
fn delegate_to_a_clause_or_a_block_goes_to_the_next_try_around() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32)
            try (result i32)
                try (result i32)
                    (throw $none)
                catch_all
                    try (result i32)
                        (call $throw (local.get 0))
                    delegate 0
                end
                block (param i32) (result i32)
                    try (param i32) (result i32)
                        drop (call $throw (local.get 0))
                    delegate 0
                end
            catch $a
            catch_all
                (i32.const 4)
            end))"
    );
    gives(&wat, &[(0, 5), (1, 10), (2, 4), (3, 4)]);
}

#[test]
fn a_try_takes_parameters_and_branches_out_of_it_give_its_result() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32)
            (i32.const 1000)
            (local.get 0)
            try (param i32) (result i32)
                (br_if 0 (i32.const 30) (i32.eqz (local.get 0)))
                drop
                call $throw
            catch $a
                (br 0)
            catch_all
                (br_if 0 (i32.const 40) (i32.eq (local.get 0) (i32.const 3)))
                drop
                (return (i32.const -3))
            end
            i32.add))"
    );
    gives(&wat, &[(0, 1030), (1, 1010), (2, -3), (3, 1040)]);
}

#[test]
fn a_loop_in_a_clause_goes_on_in_better_code_and_still_knows_what_was_caught() {
    let wat = format!(
        "(module {TAGS} (func (export \"f\") (param i32) (result i32) (local $i i32)
            try (result i32)
                try (result i32)
                    (call $throw (local.get 0))
                catch_all
                    (loop $l
                        (local.set $i (i32.add (local.get $i) (i32.const 1)))
                        (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
                    rethrow 0
                end
            catch $a
                (i32.add (local.get $i))
            catch_all
                (local.get $i)
            end))"
    );
    gives(&wat, &[(0, 5), (1, 1010), (2, 1000), (3, 1000)]);
}

#[test]
fn the_caller_takes_what_a_call_in_place_of_the_return_throws() {
    let wat = format!(
        "(module {TAGS}
        (func $tail (param i32) (result i32)
            try
                (return_call $throw (local.get 0))
            catch_all
            end
            (i32.const -1))
        (func (export \"f\") (param i32) (result i32)
            try (result i32) (call $tail (local.get 0)) catch $a catch_all (i32.const 9) end))"
    );
    gives(&wat, &[(0, 5), (1, 10), (2, 9), (3, 9)]);
}

#[test]
fn traps_are_not_caught_and_what_nobody_catches_reaches_the_host() {
    let wat = format!(
        "(module {TAGS}
        (func (export \"trap\") (result i32)
            try (result i32) unreachable catch_all (i32.const 1) end)
        (func (export \"throw\") (result i32)
            try (result i32) (call $throw (i32.const 2)) catch $a end))"
    );
    for config in configurations() {
        let (mut store, instance) = instance(config, &wat);
        let mut call = |name: &str| {
            let f = instance
                .get_typed_func::<(), i32>(&mut store, name)
                .unwrap();
            f.call(&mut store, ())
        };
        assert!(matches!(call("trap"), Err(Error::Trap(t)) if t.kind == TrapKind::Unreachable));
        assert!(matches!(call("throw"), Err(Error::Exception { .. })));
    }
}

/// Runs of a program, and what the state is after each.
fn runs(config: Config, wat: &str) -> Vec<(bool, i32)> {
    let (mut store, instance) = instance(config, wat);
    let run = instance
        .get_typed_func::<(), ()>(&mut store, "run")
        .unwrap();
    let state = instance.get_global(&mut store, "state").unwrap();
    (0..RUNS)
        .map(|_| {
            let threw = match run.call(&mut store, ()) {
                Ok(()) => false,
                Err(Error::Exception { .. }) => true,
                Err(e) => panic!("{e}\n{wat}"),
            };
            let Ok(Val::I32(state)) = state.get(&mut store) else {
                panic!("the state is a number")
            };
            (threw, state)
        })
        .collect()
}

const RUNS: usize = 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_nesting_does_what_its_meaning_is(functions in functions()) {
        let wat = module(&functions);
        let mut meaning = Run { functions: &functions, state: 1 };
        let expected: Vec<_> = (0..RUNS)
            .map(|_| (meaning.call(0).is_err(), meaning.state))
            .collect();
        for config in configurations() {
            prop_assert_eq!(runs(config.clone(), &wat), expected.clone(), "{:?}\n{}", config, wat);
        }
    }
}
