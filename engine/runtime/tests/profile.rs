//! Stories of site profiles: the counted accesses, the counting code, the names, and the use by a plan.

mod common;

use common::{Shared, console, ended};
use std::collections::BTreeMap;
use std::sync::Arc;
use varve_runtime::host::{State, Wasi, teavm, wasi};
use varve_runtime::*;
use varve_sites::{Counts, Key, Profile, SitesFile};

/// All ways through the compilers; hot code comes early and at once.
fn tiers() -> Vec<Config> {
    let all = [Tier::Baseline, Tier::Optimizing, Tier::Auto];
    let config = |tier| Config {
        tier,
        hot: 100,
        background: false,
        nursery: 64 << 10,
        ..Config::default()
    };
    all.map(config).into()
}

struct Program {
    store: Store<()>,
    instance: Instance,
}

impl Program {
    fn new(config: Config, wat: &str) -> Program {
        Program::in_store(wat, |engine| Store::profiled(engine, ()), config)
    }

    fn in_store(
        wat: &str,
        store: impl FnOnce(&Engine) -> Result<Store<()>>,
        config: Config,
    ) -> Program {
        let engine = Engine::new(config);
        let module = Module::new(&engine, &wat::parse_str(wat).unwrap()).unwrap();
        let mut store = store(&engine).unwrap();
        let instance = Linker::new(&engine)
            .instantiate(&mut store, &module)
            .unwrap();
        Program { store, instance }
    }

    fn call(&mut self, name: &str, n: i32) {
        let f = self
            .instance
            .get_typed_func::<i32, ()>(&mut self.store, name)
            .unwrap();
        f.call(&mut self.store, n).unwrap();
    }

    fn sites(&mut self) -> BTreeMap<Key, Counts> {
        let profile = self.store.profile("p.wasm").unwrap();
        let sites = profile.sites.into_iter();
        sites.map(|site| (site.key, site.counts)).collect()
    }

    /// Bytes in spaces of old objects in a memory.
    fn old_bytes(&self, tier: u8) -> u64 {
        let spaces = self.store.gc_spaces();
        let old = spaces
            .iter()
            .filter(|s| s.name != "nursery" && s.tier.0 == tier);
        old.map(|s| s.used).sum()
    }
}

fn key(function: &str, ty: &str, nth: u32) -> Key {
    Key {
        function: function.into(),
        ty: ty.into(),
        nth,
    }
}

/// Makes cells; every 16th is kept in a list, and read by `walk` and changed by `touch`.
const LIST: &str = r#"(module
    (rec (type $cell (struct (field (mut (ref null $cell))) (field (mut i32)))))
    (type $note (struct (field i64)))
    (global $kept (mut (ref null $cell)) (ref.null $cell))
    (global $note (ref $note) (struct.new $note (i64.const 1)))
    (func $make (export "make") (param $n i32) (local $c (ref null $cell))
        (loop $more
            (local.set $c (struct.new $cell (ref.null $cell) (local.get $n)))
            (if (i32.eqz (i32.and (local.get $n) (i32.const 15))) (then
                (struct.set $cell 0 (local.get $c) (global.get $kept))
                (global.set $kept (local.get $c))))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br_if $more (local.get $n))))
    (func $walk (export "walk") (param $times i32) (local $c (ref null $cell)) (local $sum i32)
        (loop $again
            (local.set $c (global.get $kept))
            (block $end (loop $more
                (br_if $end (ref.is_null (local.get $c)))
                (local.set $sum (i32.add (local.get $sum) (struct.get $cell 1 (local.get $c))))
                (local.set $c (struct.get $cell 0 (local.get $c)))
                (br $more)))
            (local.set $times (i32.sub (local.get $times) (i32.const 1)))
            (br_if $again (local.get $times))))
    (func $touch (export "touch") (param $n i32) (local $c (ref null $cell))
        (local.set $c (global.get $kept))
        (block $end (loop $more
            (br_if $end (ref.is_null (local.get $c)))
            (struct.set $cell 1 (local.get $c) (local.get $n))
            (local.set $c (struct.get $cell 0 (local.get $c)))
            (br $more)))))"#;

/// The list has 1250 cells of 20,000, which are 320 KB: several nurseries.
#[test]
fn a_list_is_counted_as_it_was_used() {
    for config in tiers() {
        let tier = config.tier;
        let mut p = Program::new(config, LIST);
        p.call("make", 20_000);
        p.store.gc().unwrap();
        p.call("walk", 3);
        p.call("touch", 7);
        p.call("walk", 5);
        let (kept, all) = (1250, 20_000);
        let cells = Counts {
            objects: all,
            bytes: 16 * all,
            survivors: kept,
            survived_bytes: 16 * kept,
            // Two in each walk, one in `touch`.
            reads: (2 * 8 + 1) * kept,
            // Once when they were young, and once in `touch`.
            writes: 2 * kept,
            old_reads: 17 * kept,
            old_writes: kept,
            // 18 times: at least 16 and less than 32.
            accesses: vec![0, 0, 0, 0, 0, kept],
            ..Counts::default()
        };
        let note = Counts {
            objects: 1,
            bytes: 16,
            survivors: 1,
            survived_bytes: 16,
            accesses: vec![1],
            ..Counts::default()
        };
        let expected = BTreeMap::from([
            (key("make", "cell", 0), cells),
            (key("(globals)", "note", 0), note),
        ]);
        assert_eq!(p.sites(), expected, "{tier:?}");
        // Reading changes nothing.
        assert_eq!(p.sites(), expected, "{tier:?}");
        let hot = varve_sites::classify::by_frequency(&p.store.profile("p.wasm").unwrap(), 1.0);
        assert_eq!(
            hot.into_iter().collect::<Vec<_>>(),
            [key("make", "cell", 0)]
        );
    }
}

/// Each operator once, or as often as it says.
#[test]
fn arrays_are_counted_by_elements() {
    let wat = r#"(module
        (type $bytes (array (mut i8)))
        (data $d "0123456789")
        (func (export "f") (param $n i32) (local $a (ref $bytes)) (local $b (ref $bytes))
            (local.set $a (array.new $bytes (i32.const 7) (i32.const 100)))
            (local.set $b (array.new_data $bytes $d (i32.const 0) (i32.const 10)))
            (array.fill $bytes (local.get $a) (i32.const 0) (i32.const 1) (i32.const 40))
            (array.copy $bytes $bytes
                (local.get $a) (i32.const 50) (local.get $b) (i32.const 0) (i32.const 6))
            (array.init_data $bytes $d (local.get $b) (i32.const 0) (i32.const 0) (i32.const 4))
            (array.set $bytes (local.get $b) (i32.const 0) (array.get_u $bytes (local.get $a) (i32.const 3)))
            (array.set $bytes (local.get $b) (array.len (local.get $b)) (i32.const 1))))"#;
    for config in tiers() {
        let mut p = Program::new(config, wat);
        let f = p
            .instance
            .get_typed_func::<i32, ()>(&mut p.store, "f")
            .unwrap();
        // The last store is out of bounds: it traps, and is not counted.
        assert!(f.call(&mut p.store, 0).is_err());
        let sites = p.sites();
        let a = &sites[&key("f", "bytes", 0)];
        assert_eq!((a.objects, a.bytes), (1, 112));
        assert_eq!((a.reads, a.writes), (1, 40 + 6));
        let b = &sites[&key("f", "bytes", 1)];
        assert_eq!((b.reads, b.writes), (6 + 1, 4 + 1));
    }
}

/// As TeaVM makes arrays: all of a type in one function.
const MAKERS: &str = r#"(module
    (type $data (array (mut i32)))
    (type $array (struct (field (ref $data))))
    (type $maker (func (param i32) (result (ref $array))))
    (elem declare func $new)
    (global $kept (mut (ref null $array)) (ref.null $array))
    (func $new (type $maker) (struct.new $array (array.new_default $data (local.get 0))))
    (func $new_twice (param i32) (result (ref $array))
        (global.set $kept (call $new (local.get 0)))
        (struct.new $array (struct.get $array 0 (call $new (local.get 0)))))
    (func $loops (param $n i32) (result (ref $array)) (local $i i32)
        (loop $more (br_if $more (i32.lt_u
            (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (call $new (local.get $n)))
    (func $one (param i32) (global.set $kept (call $new (local.get 0))))
    (func $two (param i32)
        (global.set $kept (call $new (local.get 0)))
        (global.set $kept (call $new_twice (local.get 0))))
    (func $three (param i32) (global.set $kept (call $loops (local.get 0))))
    (func $four (param i32)
        (global.set $kept (call_ref $maker (local.get 0) (ref.func $new))))
    (func $five (param i32) (result (ref $array)) (return_call $new (local.get 0)))
    (func (export "f") (param $n i32)
        (loop $more
            (call $one (i32.const 2))
            (call $two (i32.const 4))
            (call $three (i32.const 6))
            (call $four (i32.const 8))
            (global.set $kept (call $five (i32.const 10)))
            (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))"#;

#[test]
fn what_a_maker_makes_counts_as_made_by_its_caller() {
    for config in tiers() {
        let tier = config.tier;
        let mut p = Program::new(config, MAKERS);
        p.call("f", 500);
        let sites = p.sites();
        let made = sites.iter().filter(|(_, c)| c.objects > 0);
        let mut made: Vec<(String, u64)> = made
            .map(|(key, c)| (key.to_string(), c.bytes / c.objects))
            .collect();
        made.sort();
        let of_all = |c: &Counts| c.objects.is_multiple_of(500);
        assert!(sites.values().all(of_all), "{tier:?}");
        let expected = [
            // Through a reference, and in a tail call, the caller is unknown.
            ("array in new (0)", 16),
            ("data in new (0)", (48 + 56) / 2),
            ("array in one (0)", 16),
            ("data in one (0)", 24),
            ("array in loops (0)", 16),
            ("data in loops (0)", 40),
            ("array in two (0)", 16),
            ("array in two (1)", 16),
            ("array in two (2)", 16),
            ("array in two (3)", 16),
            ("data in two (0)", 32),
            ("data in two (1)", 32),
            ("data in two (2)", 32),
        ];
        let mut expected = expected.map(|(key, bytes)| (key.to_string(), bytes));
        expected.sort();
        assert_eq!(made, expected, "{tier:?}");
    }
}

/// A collection at every allocation, which moves all objects: they take their counts along.
#[test]
fn counts_follow_objects_that_move() {
    let aligns = [8, 64, 256].map(|bytes| ObjectAlign::new(bytes).unwrap());
    let all = aligns.map(|align| tiers().into_iter().map(move |config| (align, config)));
    for (object_align, config) in all.into_iter().flatten() {
        let run = |gc_stress| {
            let config = Config {
                gc_stress,
                object_align,
                hot: 20,
                ..config.clone()
            };
            let mut list = Program::new(config.clone(), LIST);
            list.call("make", 64);
            list.call("walk", 3);
            let mut makers = Program::new(config, MAKERS);
            makers.call("f", 30);
            let all = list.sites().into_iter().chain(makers.sites());
            all.map(|(key, c)| (key, (c.objects, c.bytes, c.reads, c.writes)))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(true), run(false), "{:?} {object_align:?}", config.tier);
    }
}

/// A build that has another function before, and more types, calls the sites the same.
#[test]
fn names_last_from_build_to_build() {
    let with = |before: &str, first: &str| {
        format!(
            r#"(module {before}
            (type $a (struct (field i32))) (type $b (struct (field i64)))
            (func $f (export "f") (param i32)
                {first}
                (drop (struct.new $b (i64.const 1)))
                (drop (struct.new $a (i32.const 1)))
                (drop (struct.new $b (i64.const 1)))))"#
        )
    };
    let names = |wat: &str| {
        let mut p = Program::new(Config::default(), wat);
        p.call("f", 0);
        p.sites().into_keys().collect::<Vec<_>>()
    };
    let one = names(&with("", ""));
    assert_eq!(one, [key("f", "a", 0), key("f", "b", 0), key("f", "b", 1)]);
    let before = "(type $c (struct (field f64))) (func $g (drop (struct.new $c (f64.const 1))))";
    let other = names(&with(before, "(drop (struct.new $c (f64.const 2)))"));
    assert!(one.iter().all(|key| other.contains(key)), "{other:?}");
    assert_eq!(other.len(), 4);
}

#[test]
fn functions_without_a_name_of_their_own_are_told_apart() {
    let wat = r#"(module
        (type $t (struct (field i32)))
        (type (array (mut f64)))
        (func $a (@name "same") (drop (struct.new $t (i32.const 1))))
        (func $b (@name "same") (drop (struct.new $t (i32.const 1))))
        (func (drop (array.new_default 1 (i32.const 3))))
        (func (export "f") (param i32) (call $a) (call $b) (call 2)))"#;
    let mut p = Program::new(Config::default(), wat);
    p.call("f", 0);
    let names: Vec<Key> = p.sites().into_keys().collect();
    let expected = [
        key("func 2", "f64[]", 0),
        key("same", "t", 0),
        key("same #2", "t", 0),
    ];
    assert_eq!(names, expected);
}

/// Two kinds of cells in lists: those of one are written to again and again.
const TWO: &str = r#"(module
    (rec (type $cell (struct (field (mut (ref null $cell))) (field (mut i64)))))
    (global $hot (mut (ref null $cell)) (ref.null $cell))
    (global $cold (mut (ref null $cell)) (ref.null $cell))
    (func $write (param $c (ref null $cell))
        (block $end (loop $more
            (br_if $end (ref.is_null (local.get $c)))
            (struct.set $cell 1 (local.get $c) (i64.const 5))
            (local.set $c (struct.get $cell 0 (local.get $c)))
            (br $more))))
    (func $counter (global.set $hot (struct.new $cell (global.get $hot) (i64.const 0))))
    (func $text (global.set $cold (struct.new $cell (global.get $cold) (i64.const 0))))
    (func (export "make") (param $n i32)
        (loop $more
            (call $counter) (call $text) (call $text) (call $text)
            (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (func (export "write") (param i32) (call $write (global.get $hot))))"#;

#[test]
fn a_profile_of_one_input_places_the_objects_of_another() {
    let mut p = Program::new(Config::default(), TWO);
    p.call("make", 100);
    p.store.gc().unwrap();
    p.call("write", 0);
    p.call("write", 0);
    let profile = p.store.profile("p.wasm").unwrap();
    let profile = Arc::new(Profile::parse("p", &profile.text()).unwrap());
    for plan in ["cgz-f", "hot-sites", "knapsack:capacity=0.01"] {
        for config in tiers() {
            let config = Config {
                plan: Some(plan.into()),
                profile: Some(profile.clone()),
                nursery: 1 << 20,
                ..config
            };
            let mut p = Program::in_store(TWO, |engine| Store::new(engine, ()), config);
            p.call("make", 4000);
            p.store.gc().unwrap();
            // Cells of 24 bytes; the last line of a space may hold fewer.
            let [hot, cold] = [0, 1].map(|tier| p.old_bytes(tier));
            let expected = [24 * 4000, 3 * 24 * 4000];
            for (found, expected) in [hot, cold].into_iter().zip(expected) {
                assert!(
                    (expected..expected + (32 << 10)).contains(&found),
                    "{plan}: {hot} and {cold}"
                );
            }
            let known = p.store.allocation_sites();
            assert!(
                known
                    .iter()
                    .all(|key| profile.sites.iter().any(|s| s.key == *key))
            );
        }
    }
}

#[test]
fn a_profile_needs_one_memory_and_a_profiled_store() {
    let engine = Engine::new(Config {
        plan: Some("kg-n".into()),
        ..Config::default()
    });
    let error = Store::profiled(&engine, ()).err().unwrap().to_string();
    assert!(error.contains("leave the heap plan out"), "{error}");
    assert!(Store::new(&engine, ()).unwrap().profile("p.wasm").is_none());
    let engine = Engine::new(Config {
        plan: Some("cgz-f".into()),
        ..Config::default()
    });
    let error = Store::new(&engine, ()).err().unwrap().to_string();
    assert!(error.contains("needs a site profile"), "{error}");
}

/// The counts of a program of `programs/dist`, by site.
fn counted(config: Config, program: &str, args: &[&str]) -> BTreeMap<Key, Counts> {
    let programs = format!("{}/../../programs", env!("CARGO_MANIFEST_DIR"));
    let engine = Engine::new(config);
    let bytes = std::fs::read(format!("{programs}/dist/{program}.wasm")).unwrap();
    let module = Module::new(&engine, &bytes).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(std::io::empty(), &out, &err),
        wasi: Wasi::new(),
        clock: Default::default(),
    };
    let mut store = Store::profiled(&engine, state).unwrap();
    let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    let outcome = match teavm::is_teavm(&module) {
        true => teavm::run_main(&mut store, &module, &args),
        false => wasi::run_command(&mut store, &module),
    };
    let (code, last) = ended(outcome);
    assert_eq!(code, 0, "{}{last}", err.text());
    let profile = store.profile(program).unwrap();
    let sites = profile.sites.into_iter();
    let made = sites.filter(|site| site.counts.objects > 0);
    made.map(|site| (site.key, site.counts)).collect()
}

/// Which objects survive depends on how long code holds on to them; the totals do not depend on the code.
#[test]
fn all_compilers_count_the_same() {
    for (program, args) in [
        ("graph", &["pagerank", "--scale", "8"][..]),
        ("classics", &["deltablue", "100"]),
        ("errors", &["caught"]),
        ("formulas", &[]),
    ] {
        let [one, two, three]: [BTreeMap<Key, Counts>; 3] = tiers()
            .into_iter()
            .map(|config| {
                counted(
                    Config {
                        nursery: 1 << 20,
                        hot: 2000,
                        ..config
                    },
                    program,
                    args,
                )
            })
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        // Programs print how long they took, in more or fewer digits.
        let of_time = |key: &&Key| {
            let words = ["java.", "Stopwatch", "DoubleAnalyzer", "WasmGC"];
            let text = key.ty.starts_with("java.lang.String");
            program != "errors" && (text || words.iter().any(|w| key.function.contains(w)))
        };
        let all: Vec<&Key> = one.keys().filter(|key| !of_time(key)).collect();
        assert!(all.len() > 10, "{program}");
        for key in all {
            let counts = |sites: &BTreeMap<Key, Counts>| {
                let c = sites.get(key).cloned().unwrap_or_default();
                (c.objects, c.bytes, c.reads, c.writes)
            };
            assert_eq!(counts(&one), counts(&two), "{program}: {key}");
            assert_eq!(counts(&one), counts(&three), "{program}: {key}");
        }
    }
}
