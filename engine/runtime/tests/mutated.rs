//! Damaged modules: each loads or is refused in one line that has an offset, and of those that load every function compiles.
//!
//! The fuzz target `wasm_loader` goes further; this is the part of it that runs with every test.

#[allow(dead_code)] // a part of it is enough here
mod common;

use common::{Shared, console};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::fs;
use std::io::Cursor;
use std::path::Path;
use varve_runtime::host::{State, Wasi, teavm, wasi};
use varve_runtime::*;

/// Small modules in which most bytes mean something.
const SMALL: &[&str] = &[
    r#"(module
        (rec (type $a (sub (struct (field (mut i32)) (field (ref null $b))))) (type $b (array (mut i16))))
        (type $c (sub $a (struct (field (mut i32)) (field (ref null $b)) (field f64))))
        (global $g (ref $a) (struct.new $a (i32.const 1) (ref.null $b)))
        (func (export "f") (param (ref null any)) (result i32)
            (block $no (result (ref null any))
                (struct.get $c 0 (br_on_cast_fail $no anyref (ref $c) (local.get 0))) (return))
            (drop) (array.len (array.new $b (i32.const 3) (i32.const 70000)))))"#,
    r#"(module
        (tag $t (param i32)) (type $f (func (param i32) (result i32)))
        (table $table 4 8 funcref) (elem (i32.const 1) func $g) (elem declare func $h)
        (func $g (type $f) (throw $t (local.get 0)))
        (func $h (type $f) (block $c (result i32 exnref)
            (try_table (result i32) (catch_ref $t $c) (call_indirect (type $f) (local.get 0) (i32.const 1))) (return))
            (throw_ref))
        (func (export "run") (type $f) (return_call_ref $f (local.get 0) (ref.func $h))))"#,
    r#"(module
        (memory $m 1 2) (memory 1) (data (i32.const 8) "some data") (data $d "passive")
        (func (export "run") (param i32 i64) (result i64 f32)
            (memory.init $d (i32.const 1) (i32.const 2) (i32.const 3)) (data.drop $d)
            (memory.copy 0 1 (local.get 0) (i32.const 0) (i32.const 9))
            (block $b (loop $l (br_table 0 $l $b (i32.load8_s offset=4 (local.get 0)))))
            (i64.rotl (i64.load (local.get 0)) (local.get 1)) (f32.convert_i64_u (local.get 1))))"#,
    r#"(module $named
        (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
        (import "teavmMath" "sin" (func $sin (param f64) (result f64)))
        (type $v (array (mut externref))) (global (mut externref) (ref.null extern))
        (func $first (export "a") (result f64) (call $sin (f64.const 1)))
        (func $second (export "b") (param externref) (result (ref $v))
            (array.new_fixed $v 2 (local.get 0) (global.get 0))))"#,
];

/// A module with a few bytes changed, taken out, put in or cut off.
fn mutate(bytes: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.next_u32() % 3 {
        let below = |random: &mut ChaCha8Rng, n: usize| random.next_u32() as usize % n.max(1);
        let at = below(random, bytes.len());
        let len = below(random, 8).min(bytes.len() - at);
        match random.next_u32() % 12 {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + len)),
            2 => {
                let from = below(random, bytes.len() - len + 1);
                let part = bytes[from..from + len].to_vec();
                bytes.splice(at..at, part);
            }
            3 if !bytes.is_empty() => bytes[at] = random.next_u32() as u8,
            4 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(random, 5)],
            5 if !bytes.is_empty() => bytes[at] ^= 1 << below(random, 8),
            _ if !bytes.is_empty() => {
                bytes[at] = bytes[at].wrapping_add([1, 255][below(random, 2)])
            }
            _ => {}
        }
    }
    bytes
}

/// How far a damaged module came.
#[derive(Default, Debug)]
struct Counts {
    refused: u32,
    loaded: u32,
    compiled: u32,
    /// Why the last one that loaded did not compile.
    failed: String,
}

/// The module without its start function.
fn without_start(bytes: &[u8]) -> Vec<u8> {
    let mut end = 8;
    for payload in wasmparser::Parser::new(0).parse_all(bytes).flatten() {
        if let Some((id, range)) = payload.as_section() {
            let section = end..range.end as usize;
            if id == 8 {
                return [&bytes[..section.start], &bytes[section.end..]].concat();
            }
            end = section.end;
        }
    }
    bytes.to_vec()
}

/// Loads bytes, and compiles what loads. Nothing is run, since it might run for ever.
fn load(bytes: &[u8], counts: &mut Counts) {
    let engine = Engine::new(Config {
        heap_max: 64 << 20,
        ..Config::default()
    });
    let module = match Module::new(&engine, bytes) {
        Ok(_) => {
            Module::new(&engine, &without_start(bytes)).expect("a start function can be left out")
        }
        Err(e) => {
            counts.refused += 1;
            let (Error::Invalid { offset, .. } | Error::Unsupported { offset, .. }) = e else {
                panic!("{e}");
            };
            assert!(offset <= bytes.len() as u64, "{e}");
            return in_one_line(&e);
        }
    };
    counts.loaded += 1;
    let console = console(Cursor::new(""), &Shared::default(), &Shared::default());
    let wasi = Wasi::new();
    let mut store = Store::new(
        &engine,
        State {
            console,
            wasi,
            clock: Default::default(),
        },
    )
    .unwrap();
    let mut linker = Linker::new(&engine);
    wasi::link(&mut linker, None);
    let instance = teavm::link(&mut linker, &mut store, &module)
        .and_then(|_| linker.instantiate(&mut store, &module));
    match instance.and_then(|i| i.compile(&mut store)) {
        Ok(()) => counts.compiled += 1,
        Err(e @ Error::Internal(_)) => panic!("{e}"),
        Err(e) => {
            counts.failed = e.to_string();
            in_one_line(&e);
        }
    }
}

fn in_one_line(e: &Error) {
    let text = e.to_string();
    assert!(
        !text.contains('\n') && !text.contains("offset 0x-"),
        "{text}"
    );
}

/// Runs `count` mutations of a module; the bytes that make it panic are named by module and seed.
fn damage(name: &str, bytes: &[u8], count: u64, counts: &mut Counts) {
    for seed in 0..count {
        let mutated = mutate(bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load(&mutated, counts)));
        assert!(outcome.is_ok(), "{name}, seed {seed}");
    }
}

#[test]
fn small_modules_in_which_every_byte_counts() {
    let (mut counts, mut total) = (Counts::default(), 0);
    for (i, text) in SMALL.iter().enumerate() {
        let bytes = wat::parse_str(text).unwrap();
        load(&bytes, &mut counts);
        assert_eq!(counts.compiled, 1, "whole, it compiles: {i}: {counts:?}");
        counts.compiled = 0;
        damage(&format!("small {i}"), &bytes, 1000, &mut counts);
        total += std::mem::take(&mut counts.compiled);
    }
    assert!(
        counts.refused > 1000 && total > 300,
        "{counts:?}, {total} compiled"
    );
}

#[test]
fn programs_with_damage() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/dist");
    let mut counts = Counts::default();
    for file in fs::read_dir(dist).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "wasm") {
            continue;
        }
        let bytes = without_start(&fs::read(&path).unwrap());
        // Large ones take longer.
        let count = 1 + 600_000 / bytes.len() as u64;
        damage(&path.display().to_string(), &bytes, count, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.refused > 20 && counts.compiled > 10, "{counts:?}");
}
