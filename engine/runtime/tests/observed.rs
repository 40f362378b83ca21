//! Stories of observed stores: the records of a program's accesses.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use varve_access::{Kind, Op};
use varve_runtime::{Config, Engine, Error, Linker, Module, ObjectAlign, Sink, Store, Tier, Val};

/// Where the model has linear memories.
const MEMORY: u64 = 2 << 40;

#[derive(Default)]
struct Recorded {
    ops: Vec<Op>,
    binds: Vec<(u64, u64, u8)>,
    /// The number of ops after which the sink takes no more.
    most: Option<usize>,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Recorded>>);

impl Sink for Ear {
    fn take(&mut self, ops: &[Op]) -> bool {
        let mut told = self.0.lock().unwrap();
        told.ops.extend_from_slice(ops);
        told.most.is_none_or(|most| told.ops.len() < most)
    }

    fn bind(&mut self, address: u64, bytes: u64, tier: u8) {
        self.0.lock().unwrap().binds.push((address, bytes, tier));
    }

    /// A nanosecond for each access.
    fn now(&mut self) -> Duration {
        Duration::from_nanos(self.0.lock().unwrap().ops.len() as u64)
    }
}

/// Calls the export `f` with a number.
fn hear(wat: &str, plan: &str, argument: i32, ear: &Ear) -> Result<(), Error> {
    hear_aligned(wat, plan, ObjectAlign::default(), argument, ear)
}

/// The same, with objects that are aligned so.
fn hear_aligned(
    wat: &str,
    plan: &str,
    object_align: ObjectAlign,
    argument: i32,
    ear: &Ear,
) -> Result<(), Error> {
    let config = Config {
        object_align,
        ..config(plan)
    };
    hear_with(wat, config, argument, ear)
}

fn config(plan: &str) -> Config {
    Config {
        plan: Some(plan.into()),
        nursery: 64 << 10,
        ..Config::default()
    }
}

fn hear_with(wat: &str, config: Config, argument: i32, ear: &Ear) -> Result<(), Error> {
    let engine = Engine::new(config);
    let module = Module::new(&engine, &wat::parse_str(wat).unwrap())?;
    let mut store = Store::observed(&engine, (), Box::new(ear.clone()))?;
    let instance = Linker::new(&engine).instantiate(&mut store, &module)?;
    let f = instance.get_func(&mut store, "f").unwrap();
    f.call(&mut store, &[Val::I32(argument)], &mut [])?;
    store.tell()
}

#[test]
fn each_access_is_told_once_in_order_with_its_instructions() {
    let wat = r#"(module
        (type $pair (struct (field (mut i32)) (field (mut i64))))
        (memory 1)
        (global $g (mut i32) (i32.const 0))
        (func (export "f") (param i32)
            (local $r (ref null $pair))
            (local.set $r (struct.new $pair (i32.const 1) (i64.const 2)))
            (i32.store offset=8 (local.get 0) (i32.const 7))
            (global.set $g (struct.get $pair 0 (local.get $r)))
            (struct.set $pair 1 (local.get $r) (i64.load8_u (local.get 0)))
            (if (i32.add (local.get 0) (i32.const 1)) (then (i32.store (i32.load offset=8 (local.get 0)) (local.get 0))))))"#;
    let ear = Ear::default();
    hear(wat, "dram", 100, &ear).unwrap();
    let told = ear.0.lock().unwrap();
    // Its code is fetched first: ten bytes for each of the bytecode, in quick code.
    assert_eq!((told.ops[0].kind, told.ops[0].size % 10), (Kind::Fetch, 0));
    assert!(told.ops[0].size > 0);
    let seen: Vec<_> = told.ops[1..]
        .iter()
        .map(|o| (o.kind, o.size, o.instructions, o.dependent))
        .collect();
    assert_eq!(
        seen,
        [
            // The object is born: its header and fields.
            (Kind::Write, 8, 12, 0),
            (Kind::Write, 4, 0, 0),
            (Kind::Write, 8, 0, 0),
            (Kind::Write, 4, 1, 0),
            (Kind::Read, 4, 1, 0),
            (Kind::Write, 4, 1, 0),
            (Kind::Read, 1, 1, 0),
            (Kind::Write, 8, 1, 0),
            // The addition and the branch come with the load after them; the last address was just loaded.
            (Kind::Read, 4, 3, 0),
            (Kind::Write, 4, 1, 1),
        ]
    );
    let at = |n: usize| told.ops[1 + n].addr;
    assert_eq!((at(1) - at(0), at(2) - at(0)), (8, 16));
    assert_eq!((at(4), at(7)), (at(1), at(2)));
    assert_eq!(at(3), MEMORY + 108);
    assert_eq!(
        (at(6), at(8), at(9)),
        (MEMORY + 100, MEMORY + 108, MEMORY + 7)
    );
}

/// Vectors are recorded like other accesses: with their 16 bytes, or with the part that the operator accesses.
#[test]
fn vectors_are_told_with_as_many_bytes_as_are_accessed() {
    let wat = r#"(module
        (type $row (array (mut v128)))
        (type $pair (struct (field (mut i32)) (field (mut v128))))
        (memory 1)
        (global $g (mut v128) (v128.const i64x2 1 2))
        (func (export "f") (param i32)
            (local $v v128) (local $row (ref null $row)) (local $pair (ref null $pair))
            (local.set $v (v128.load offset=4 (local.get 0)))
            (v128.store offset=57 (local.get 0) (local.get $v))
            (local.set $v (i8x16.add (local.get $v) (v128.load8_splat (local.get 0))))
            (local.set $v (i8x16.add (local.get $v) (v128.load32x2_u (local.get 0))))
            (local.set $v (v128.load16_lane 3 (local.get 0) (local.get $v)))
            (v128.store64_lane 1 (local.get 0) (local.get $v))
            (global.set $g (local.get $v))
            (local.set $pair (struct.new $pair (i32.const 7) (local.get $v)))
            (struct.set $pair 1 (local.get $pair) (global.get $g))
            (local.set $row (array.new_default $row (i32.const 3)))
            (array.set $row (local.get $row) (i32.const 1) (local.get $v))
            (global.set $g (array.get $row (local.get $row) (i32.const 2)))
            (array.fill $row (local.get $row) (i32.const 0) (local.get $v) (i32.const 3))))"#;
    use Kind::{Read, Write};
    for tier in [Tier::Baseline, Tier::Optimizing] {
        let ear = Ear::default();
        hear_with(
            wat,
            Config {
                tier,
                ..config("dram")
            },
            100,
            &ear,
        )
        .unwrap();
        let told = ear.0.lock().unwrap();
        let data = told.ops.iter().filter(|o| o.kind != Kind::Fetch);
        // How often the array's length is read is for the tier to say.
        let data: Vec<_> = data.filter(|o| (o.kind, o.size) != (Read, 4)).collect();
        assert_eq!(data[0].addr, MEMORY + 104);
        assert_eq!(data[1].addr, MEMORY + 157, "on two cache lines");
        let sizes: Vec<_> = data.iter().map(|o| (o.kind, o.size)).collect();
        let memory = [
            (Read, 16),
            (Write, 16),
            (Read, 1),
            (Read, 8),
            (Read, 2),
            (Write, 8),
        ];
        let global = [(Write, 16)];
        // Born with header, number and vector; then the global is read and stored into it. Optimized code knows what it holds.
        let born = [(Write, 8), (Write, 4), (Write, 16)];
        let stored = match tier {
            Tier::Baseline => vec![(Read, 16), (Write, 16)],
            _ => vec![(Write, 16)],
        };
        // Born with header and length; an element stored, one read and put into the global, all filled.
        let row = [
            (Write, 12),
            (Write, 16),
            (Read, 16),
            (Write, 16),
            (Write, 48),
        ];
        let all = [&memory[..], &global, &born, &stored, &row].concat();
        assert_eq!(sizes, all, "{tier:?}");
    }
}

#[test]
fn addresses_of_64_bits_are_told_like_others() {
    let wat = r#"(module
        (memory i64 1)
        (func (export "f") (param i32)
            (i64.store offset=8 (i64.extend_i32_u (local.get 0)) (i64.const 7))
            (drop (v128.load (i64.const 200)))
            (memory.fill (i64.const 300) (i32.const 1) (i64.const 40))))"#;
    let ear = Ear::default();
    hear(wat, "dram", 100, &ear).unwrap();
    let told = ear.0.lock().unwrap();
    let data = told.ops.iter().filter(|o| o.kind != Kind::Fetch);
    let seen: Vec<_> = data.map(|o| (o.kind, o.addr - MEMORY, o.size)).collect();
    assert_eq!(
        seen,
        [
            (Kind::Write, 108, 8),
            (Kind::Read, 200, 16),
            (Kind::Write, 300, 40),
        ]
    );
}

/// Keeps every 16th of a number of objects in a list.
const LIST: &str = r#"(module
    (rec (type $cell (struct (field (mut (ref null $cell))) (field i32))))
    (global $kept (mut (ref null $cell)) (ref.null $cell))
    (func (export "f") (param i32)
        (local $c (ref null $cell))
        (loop $more
            (local.set $c (struct.new $cell (ref.null $cell) (local.get 0)))
            (if (i32.eqz (i32.and (local.get 0) (i32.const 15))) (then
                (struct.set $cell 0 (local.get $c) (global.get $kept))
                (global.set $kept (local.get $c))))
            (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
            (br_if $more (local.get 0)))))"#;

/// Recorded addresses are not those of the host, which differ.
#[test]
fn two_runs_tell_the_same() {
    for plan in ["dram", "kg-n", "slow"] {
        let (one, two) = (Ear::default(), Ear::default());
        hear(LIST, plan, 20_000, &one).unwrap();
        hear(LIST, plan, 20_000, &two).unwrap();
        let (one, two) = (one.0.lock().unwrap(), two.0.lock().unwrap());
        assert!(one.ops.len() > 60_000);
        assert!(one.ops == two.ops, "{plan}");
        assert_eq!(one.binds, two.binds, "{plan}");
    }
}

/// As long as nothing is collected, the alignment of objects changes where they are and nothing else.
#[test]
fn accesses_are_the_same_at_every_alignment() {
    let told = |align: ObjectAlign| {
        let ear = Ear::default();
        hear_aligned(LIST, "kg-n", align, 200, &ear).unwrap();
        let told = ear.0.lock().unwrap();
        told.ops.clone()
    };
    let what = |o: &Op| (o.kind, o.size, o.instructions, o.dependent);
    let usual = told(ObjectAlign::default());
    for align in ObjectAlign::all() {
        let ops = told(align);
        assert!(ops.iter().map(what).eq(usual.iter().map(what)), "{align:?}");
        // A header is written when its object is born.
        let is_born = |o: &&Op| (o.kind, o.size) == (Kind::Write, 8);
        let born: Vec<u64> = ops.iter().filter(is_born).map(|o| o.addr).collect();
        assert_eq!(born.len(), 200);
        for two in born.windows(2) {
            assert_eq!(two[1] - two[0], align.object_size(16), "{align:?}");
        }
    }
}

#[test]
fn survivors_are_copied_to_memory_of_the_plans_tier() {
    let ear = Ear::default();
    hear(LIST, "kg-n", 20_000, &ear).unwrap();
    let told = ear.0.lock().unwrap();
    let slow: Vec<_> = told.binds.iter().filter(|(.., tier)| *tier == 1).collect();
    assert!(!slow.is_empty());
    let inside = |o: &Op| {
        slow.iter()
            .any(|(at, bytes, _)| (*at..at + bytes).contains(&o.addr))
    };
    let copied: u64 = told
        .ops
        .iter()
        .filter(|o| o.kind == Kind::Write && o.size == 16 && inside(o))
        .map(|o| u64::from(o.size))
        .sum();
    // 1250 cells of 16 bytes, but for those that were still young at the end.
    assert!((12_000..=20_000).contains(&copied), "{copied}");
    let dram = Ear::default();
    hear(LIST, "dram", 20_000, &dram).unwrap();
    assert!(
        dram.0
            .lock()
            .unwrap()
            .binds
            .iter()
            .all(|(.., tier)| *tier == 0)
    );
}

#[test]
fn a_program_that_nobody_observes_any_more_ends() {
    let ear = Ear::default();
    ear.0.lock().unwrap().most = Some(10_000);
    let ended = hear(LIST, "kg-n", i32::MAX, &ear);
    assert!(matches!(ended, Err(Error::Unobserved)), "{ended:?}");
}

#[test]
fn a_plan_that_does_not_exist_is_one_line_with_the_nearest_name() {
    let error = hear(LIST, "kgn", 1, &Ear::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("did you mean `kg-n`?"), "{error}");
}
