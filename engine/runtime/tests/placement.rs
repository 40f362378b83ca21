//! Reports of programs, and the reactions of plans: marks at allocation sites, intervals.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use varve_access::{Kind, Op};
use varve_runtime::host::placement;
use varve_runtime::*;

const TIERS: [Tier; 2] = [Tier::Baseline, Tier::Optimizing];

/// The imports of every program here.
const IMPORTS: &str = r#"
    (rec (type $cell (struct (field (mut (ref null $cell))) (field (mut i32)) (field i64))))
    (import "varve" "critical" (func $critical (param (ref null $cell))))
    (import "varve" "sampling" (func $sampling (result i32)))
    (import "varve" "interval" (func $interval (param i64 i64 i64)))
    (global $kept (mut (ref null $cell)) (ref.null $cell))"#;

/// Keeps a number of new objects in a list. `new` leaves one on the stack.
fn list(new: &str) -> String {
    format!(
        r#"(module {IMPORTS}
        (func $init (param (ref null $cell)) (param i32)
            (struct.set $cell 1 (local.get 0) (local.get 1)))
        (func $make (result (ref null $cell))
            (block $b (result (ref null $cell)) (struct.new_default $cell) (br_if $b (ref.is_null (global.get $kept)))))
        (func (export "f") (param i32)
            (local $c (ref null $cell))
            (loop $more
                {new}
                (local.set $c)
                (struct.set $cell 0 (local.get $c) (global.get $kept))
                (global.set $kept (local.get $c))
                (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
                (br_if $more (local.get 0)))))"#
    )
}

/// Without a mark.
const PLAIN: &str = "(local.set $c (struct.new_default $cell)) (call $init (local.get $c) (local.get 0)) (local.get $c)";
/// As compilers of Java have it: allocation, constructor, mark, the three of them around blocks.
const MARKED: &str =
    "(local.set $c (struct.new_default $cell)) (call $init (local.get $c) (local.get 0))
    (block $b (br_if $b (local.get 0)) (unreachable))
    (call $critical (local.get $c)) (local.get $c)";
/// The same without the mark.
const BLOCK: &str =
    "(local.set $c (struct.new_default $cell)) (call $init (local.get $c) (local.get 0))
    (block $b (br_if $b (local.get 0)) (unreachable))
    (local.get $c)";
/// The object comes from a function, by one of two ways: where it was allocated is seen at run time.
const MADE: &str = "(local.set $c (call $make)) (call $critical (local.get $c)) (local.get $c)";

fn config(plan: &str, tier: Tier) -> Config {
    Config {
        plan: Some(plan.into()),
        nursery: 64 << 10,
        tier,
        background: false,
        ..Config::default()
    }
}

fn run(config: Config, wat: &str, argument: i32) -> (Store<()>, Result<()>) {
    let engine = Engine::new(config);
    let store = Store::new(&engine, ()).unwrap();
    run_in(store, wat, argument)
}

fn run_in(mut store: Store<()>, wat: &str, argument: i32) -> (Store<()>, Result<()>) {
    let engine = store.engine().clone();
    let module = Module::new(&engine, &wat::parse_str(wat).unwrap()).unwrap();
    let mut linker = Linker::new(&engine);
    placement::link(&mut linker);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_func(&mut store, "f").unwrap();
    let outcome = f.call(&mut store, &[Val::I32(argument)], &mut []);
    (store, outcome)
}

/// Bytes of old objects in fast and in slow memory after everything was collected.
fn old(store: &mut Store<()>) -> [u64; 2] {
    store.gc().unwrap();
    ["mature 0", "mature 1"].map(|name| {
        let spaces = store.gc_spaces();
        spaces.iter().find(|s| s.name == name).map_or(0, |s| s.used)
    })
}

const OBJECTS: i32 = 20_000;
/// Header and fields are 24 bytes.
const BYTES: u64 = 24 * OBJECTS as u64;

#[test]
fn objects_of_marked_sites_are_in_fast_memory_whoever_compiles() {
    for tier in TIERS {
        for (new, hot) in [(PLAIN, false), (MARKED, true), (MADE, true)] {
            let (mut store, outcome) = run(config("hints", tier), &list(new), OBJECTS);
            outcome.unwrap();
            let [fast, slow] = old(&mut store);
            let (there, elsewhere) = if hot { (fast, slow) } else { (slow, fast) };
            assert!(there >= BYTES, "{tier:?} {new}: {fast} {slow}");
            assert!(elsewhere <= 64 << 10, "{tier:?} {new}: {fast} {slow}");
            assert_eq!(store.untold().is_some(), !hot, "{tier:?} {new}");
        }
    }
}

#[test]
fn other_plans_pass_marks_by() {
    for tier in TIERS {
        let (mut store, outcome) = run(config("kg-n", tier), &list(MARKED), OBJECTS);
        outcome.unwrap();
        assert_eq!(old(&mut store)[0], 0, "{tier:?}");
        assert_eq!(store.untold(), None);
    }
}

/// With an inlined function in between, the allocation is seen as well.
#[test]
fn a_mark_of_an_object_that_an_inlined_function_made_is_seen() {
    let config = Config {
        hot: 50,
        ..config("hints", Tier::Auto)
    };
    let (mut store, outcome) = run(config, &list(MADE), OBJECTS);
    outcome.unwrap();
    assert!(old(&mut store)[0] >= BYTES);
}

/// Languages have an array in an object of its own: it is marked with that, whether the code that makes it is seen or not.
#[test]
fn arrays_that_an_object_holds_are_marked_with_it() {
    let wat = |new: &str| {
        format!(
            r#"(module
            (rec (type $elements (array (mut i64)))
                (type $box (struct (field (ref null $elements)) (field (mut (ref null $box))))))
            (import "varve" "critical" (func $critical (param (ref null $box))))
            (global $kept (mut (ref null $box)) (ref.null $box))
            (func $make (result (ref null $box))
                (struct.new $box (array.new_default $elements (i32.const 10)) (ref.null $box)))
            (func (export "f") (param i32)
                (local $b (ref null $box))
                (loop $more
                    (local.set $b {new})
                    (call $critical (local.get $b))
                    (struct.set $box 1 (local.get $b) (global.get $kept))
                    (global.set $kept (local.get $b))
                    (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
                    (br_if $more (local.get 0)))))"#
        )
    };
    let here = "(struct.new $box (array.new_default $elements (i32.const 10)) (ref.null $box))";
    let arrays = 5000;
    for tier in TIERS {
        for new in [here, "(call $make)"] {
            let (mut store, outcome) = run(config("hints", tier), &wat(new), arrays);
            outcome.unwrap();
            let [fast, slow] = old(&mut store);
            assert!(fast >= (96 + 16) * arrays as u64, "{tier:?} {new}: {fast}");
            assert!(slow <= 64 << 10, "{tier:?} {new}: {slow}");
        }
    }
}

#[test]
fn null_and_small_integers_have_no_site() {
    let wat = r#"(module
        (import "varve" "critical" (func $critical (param anyref)))
        (func (export "f") (param i32)
            (call $critical (ref.null any))
            (call $critical (ref.i31 (local.get 0)))))"#;
    for tier in TIERS {
        let (store, outcome) = run(config("hints", tier), wat, 7);
        outcome.unwrap();
        assert!(
            store
                .untold()
                .unwrap()
                .contains("marked no allocation site")
        );
    }
    let wrong = r#"(module (import "varve" "critical" (func (param i32))) (func (export "f") (param i32)))"#;
    let engine = Engine::default();
    let module = Module::new(&engine, &wat::parse_str(wrong).unwrap()).unwrap();
    let mut linker = Linker::new(&engine);
    placement::link(&mut linker);
    let mut store = Store::new(&engine, ()).unwrap();
    let error = linker.instantiate(&mut store, &module).unwrap_err();
    assert!(matches!(error, Error::ImportType { .. }), "{error}");
}

/// Keeps the records of a store; its clock is set by the test.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<(Vec<Op>, Duration)>>);

impl Sink for Ear {
    fn take(&mut self, ops: &[Op]) -> bool {
        self.0.lock().unwrap().0.extend_from_slice(ops);
        true
    }
    fn bind(&mut self, _: u64, _: u64, _: u8) {}
    fn now(&mut self) -> Duration {
        let mut told = self.0.lock().unwrap();
        told.1 += Duration::from_millis(1);
        told.1
    }
}

/// A mark leaves nothing in the code: as many instructions and accesses with it as without.
#[test]
fn a_mark_that_is_seen_costs_nothing() {
    let told = |plan: &str, new: &str, tier: Tier| {
        let ear = Ear::default();
        let engine = Engine::new(config(plan, tier));
        let store = Store::observed(&engine, (), Box::new(ear.clone())).unwrap();
        // So few objects that none survives: where they would go makes a difference then.
        let (mut store, outcome) = run_in(store, &list(new), 500);
        outcome.unwrap();
        store.tell().unwrap();
        let mut told = std::mem::take(&mut ear.0.lock().unwrap().0);
        // The code that has the mark was longer before it was compiled, and is taken to be longer after.
        told.retain(|op| op.kind != Kind::Fetch);
        told
    };
    for tier in TIERS {
        for plan in ["hints", "kg-n"] {
            assert!(
                told(plan, MARKED, tier) == told(plan, BLOCK, tier),
                "{plan}"
            );
        }
    }
    let made = |plan| told(plan, MADE, Tier::Baseline).len();
    assert!(made("hints") > made("kg-n"));
}

/// Reports intervals from 1 to the argument, of 3 ms each while objects are in slow memory, whatever that is here.
const REPORTS: &str = r#"
    (func (export "f") (param i32)
        (local $i i64)
        (loop $more
            (local.set $i (i64.add (local.get $i) (i64.const 1)))
            (global.set $kept (struct.new $cell (global.get $kept) (i32.const 1) (local.get $i)))
            (if (call $sampling) (then
                (call $interval (local.get $i) (i64.const 1000000) (i64.const 2000000))))
            (br_if $more (i64.lt_u (local.get $i) (i64.extend_i32_u (local.get 0))))))"#;

#[test]
fn reports_reach_the_plan_and_objects_move() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let ear = Ear::default();
    let engine = Engine::new(config("pima:alpha=1,hold-off=5ms", Tier::Auto));
    let mut store = Store::observed(&engine, (), Box::new(ear)).unwrap();
    let lines = Arc::clone(&log);
    store.on_phase(move |phase| lines.lock().unwrap().push(phase.to_string()));
    let (mut store, outcome) = run_in(store, &format!("(module {IMPORTS} {REPORTS})"), 6);
    outcome.unwrap();
    let lines = log.lock().unwrap();
    // The same time in both memories: fast memory does not pay.
    let phases = [
        "default, old objects in slow memory",
        "prepare",
        "sample slow memory",
        "sample fast memory: 0.0 MiB moved in",
        "cleanup, choose slow memory: 3.000 ms in slow, 3.000 ms in fast, 1.00 times, at most alpha 1",
        "hold off in slow memory: 0.0 MiB moved in",
    ];
    assert_eq!(lines.len(), phases.len(), "{lines:#?}");
    for (line, phase) in lines.iter().zip(phases) {
        assert!(line.contains(phase), "{line}: {phase}");
    }
    assert_eq!(store.phases().len(), phases.len());
    assert_eq!(store.untold(), None);
    assert_eq!(old(&mut store)[0], 0);
    // To fast memory they came from the nursery.
    assert!(store.gc_stats().moved[1] > 0);
}

#[test]
fn reports_out_of_order_end_the_program_with_both_numbers() {
    let wat = |id: i64| {
        format!(
            r#"(module {IMPORTS} (func (export "f") (param i32)
                (call $interval (i64.const 7) (i64.const 1) (i64.const 1))
                (call $interval (i64.const {id}) (i64.const 1) (i64.const 1))))"#
        )
    };
    for (id, says) in [
        (7, "interval 7 was reported after interval 7"),
        (3, "interval 3 was reported after interval 7"),
        (-1, "interval -1 was reported with an id of -1"),
    ] {
        let (_, outcome) = run(config("pima", Tier::Auto), &wat(id), 0);
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let (_, outcome) = run(config("pima", Tier::Auto), &wat(8), 0);
    outcome.unwrap();
}

#[test]
fn a_program_that_tells_nothing_is_said_to() {
    let quiet = r#"(module (func (export "f") (param i32)))"#;
    for (plan, says) in [
        ("hints", Some("marked no allocation site")),
        ("pima", Some("reported no intervals")),
        (
            "hints+pima",
            Some("marked no allocation site and reported no intervals"),
        ),
        ("kg-w", None),
        ("dram", None),
    ] {
        let (store, _) = run(config(plan, Tier::Auto), quiet, 0);
        let said = store.untold();
        assert_eq!(said.is_some(), says.is_some(), "{plan}");
        let says = says.unwrap_or_default();
        assert!(said.is_none_or(|said| said.ends_with(says)), "{plan}");
    }
}

/// Samples that a store began which is one of several.
fn samples(store: &Store<()>) -> usize {
    let sample = |p: &&PimaEntry| matches!(p.phase, PimaPhase::Sample(_));
    store.phases().iter().filter(sample).count()
}

fn one_of(instances: &Arc<Instances>) -> Config {
    Config {
        instances: Some(Arc::clone(instances)),
        ..config("pima:hold-off=0s", Tier::Auto)
    }
}

#[test]
fn a_store_samples_once_the_others_are_ready_or_gone() {
    let instances = Arc::new(Instances::new(2));
    let wat = format!("(module {IMPORTS} {REPORTS})");
    let last = Store::new(&Engine::new(one_of(&instances)), ()).unwrap();
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let (store, outcome) = run(one_of(&instances), &wat, 200);
            outcome.unwrap();
            samples(&store)
        });
        first.join().unwrap()
    });
    assert_eq!(first, 0, "the other one has not begun");
    let (last, outcome) = run_in(last, &wat, 1000);
    outcome.unwrap();
    assert!(samples(&last) > 100, "{}", samples(&last));
}

/// Threads that end at very different times, in any order: all of them end.
#[test]
fn stores_of_several_threads_hang_nowhere() {
    let wat = &format!("(module {IMPORTS} {REPORTS})");
    for _ in 0..5 {
        let instances = &Arc::new(Instances::new(3));
        std::thread::scope(|scope| {
            for intervals in [1, 200, 3000] {
                scope.spawn(move || run(one_of(instances), wat, intervals).1.unwrap());
            }
        });
    }
}

#[test]
fn a_limit_of_fast_memory_is_kept() {
    let limited = |plan: &str| Config {
        fast_max: Some(256 << 10),
        ..config(plan, Tier::Auto)
    };
    let (mut store, outcome) = run(limited("hints"), &list(MARKED), OBJECTS);
    outcome.unwrap();
    let [fast, slow] = old(&mut store);
    assert!(fast > 0 && fast <= 256 << 10, "{fast}");
    assert!(slow > 0 && fast + slow >= BYTES, "{fast} {slow}");
    let (_, outcome) = run(limited("pima"), &list(MARKED), OBJECTS);
    outcome.unwrap();
}

/// A large array is where its site wants it from birth on, and not only once everything was collected.
#[test]
fn large_objects_of_hot_sites_are_born_in_fast_memory() {
    let wat = r#"(module
        (type $bytes (array (mut i8)))
        (global $kept (mut (ref null $bytes)) (ref.null $bytes))
        (func (export "f") (param i32)
            (global.set $kept (array.new_default $bytes (local.get 0)))))"#;
    for tier in TIERS {
        // Without any profiled site every site with a name is worth its room.
        for (plan, place) in [("knapsack", "large 0"), ("kg-n", "large 1")] {
            let profile = (plan == "knapsack").then(|| Arc::new(varve_sites::Profile::default()));
            let config = Config {
                profile,
                ..config(plan, tier)
            };
            let (store, outcome) = run(config, wat, 200_000);
            outcome.unwrap();
            let spaces = store.gc_spaces();
            let there = spaces.iter().find(|s| s.name == place);
            assert!(
                there.is_some_and(|s| s.used >= 200_000),
                "{plan} {tier:?}: {spaces:?}"
            );
        }
    }
}
