//! Modules from bytes.

use arbitrary::{Result, Unstructured};
use std::sync::LazyLock;
use wasm_smith::{Config, Module};

/// Loop turns and calls that a module has before it traps.
const FUEL: u32 = 2000;

/// How often every exported function is called.
pub const CALLS: usize = 2;

/// What generated modules may import: state of every kind, and functions that change it. It is a module itself, so that
/// both engines run the same one.
pub static ENVIRONMENT: LazyLock<Vec<u8>> = LazyLock::new(|| parse(EXPORTED));

/// The same as imports, as the generator wants it.
static IMPORTS: LazyLock<Vec<u8>> = LazyLock::new(|| parse(IMPORTED));

const IMPORTED: &str = r#"(module
    (import "env" "log" (func (param i32)))
    (import "env" "mix" (func (param i64 f64) (result i64)))
    (import "env" "keep" (func (param anyref) (result anyref)))
    (import "env" "fail" (func (param i32)))
    (import "env" "pair" (func (param i32) (result i32 i64)))
    (import "env" "sum" (global (mut i64)))
    (import "env" "seed" (global i32))
    (import "env" "kept" (global (mut anyref)))
    (import "env" "memory" (memory 1 4))
    (import "env" "functions" (table 8 16 funcref))
    (import "env" "tag" (tag (param i32))))"#;

const EXPORTED: &str = r#"(module
    (global $sum (export "sum") (mut i64) (i64.const 0))
    (global (export "seed") i32 (i32.const 77))
    (global $kept (export "kept") (mut anyref) (ref.null any))
    (memory (export "memory") 1 4)
    (table (export "functions") 8 16 funcref)
    (tag $tag (export "tag") (param i32))
    (func $log (export "log") (param i32)
        (global.set $sum (i64.add (i64.mul (global.get $sum) (i64.const 31)) (i64.extend_i32_s (local.get 0)))))
    (func $mix (export "mix") (param i64 f64) (result i64)
        (i64.xor (local.get 0) (i64.trunc_sat_f64_s (local.get 1))))
    (func (export "keep") (param anyref) (result anyref)
        (global.get $kept) (global.set $kept (local.get 0)))
    (func (export "fail") (param i32)
        (if (i32.and (local.get 0) (i32.const 1)) (then (throw $tag (local.get 0)))))
    (func (export "pair") (param i32) (result i32 i64)
        (i32.mul (local.get 0) (i32.const 3)) (i64.extend_i32_u (local.get 0)))
    (elem (i32.const 0) func $log $mix))"#;

fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text is a module")
}

/// A module and how it is run.
pub struct Case {
    /// The module in binary form.
    pub module: Vec<u8>,
    /// What arguments are made from.
    pub arguments: Vec<u8>,
    /// Whether to run it once more with a collection at every allocation.
    pub stress: bool,
}

impl Case {
    /// A case from bytes; none if they are too few.
    pub fn new(bytes: &[u8]) -> Option<Case> {
        let mut u = Unstructured::new(bytes);
        let config = config(&mut u).ok()?;
        let stress = u.ratio(1, 3).ok()?;
        let arguments = u.bytes(16.min(u.len())).ok()?.to_vec();
        let mut module = Module::new(config, &mut u).ok()?;
        module
            .ensure_termination(FUEL)
            .expect("all functions are generated ones");
        Some(Case {
            module: module.to_bytes(),
            arguments,
            stress,
        })
    }

    /// A case from a module in text or binary form.
    ///
    /// # Errors
    /// If the text is no module.
    pub fn of_module(module: &[u8]) -> std::result::Result<Case, String> {
        Ok(Case {
            module: wat::parse_bytes(module)
                .map_err(|e| e.to_string())?
                .into_owned(),
            arguments: Vec::new(),
            stress: true,
        })
    }
}

/// Everything that the engine implements, and sizes that vary.
fn config(u: &mut Unstructured<'_>) -> Result<Config> {
    let imports = u.arbitrary()?;
    Ok(Config {
        available_imports: Some(IMPORTS.clone()).filter(|_| imports),
        // Else it would invent imports that nobody provides.
        max_imports: if imports { 20 } else { 0 },
        export_everything: true,
        // So that code runs to its end in a part of the cases.
        disallow_traps: u.arbitrary()?,
        // The standard leaves open which of many NaNs comes out.
        canonicalize_nans: true,

        max_funcs: u.int_in_range(1..=12)?,
        min_funcs: 1,
        max_instructions: u.int_in_range(20..=400)?,
        max_types: u.int_in_range(1..=30)?,
        max_type_size: 200,
        max_globals: 12,
        max_tags: 4,
        max_memories: 3,
        max_tables: 3,
        max_data_segments: 4,
        max_element_segments: 6,
        max_elements: 10,
        max_memory32_bytes: 4 << 16,
        memory_max_size_required: true,
        max_table_elements: 1000,
        table_max_size_required: true,

        bulk_memory_enabled: true,
        exceptions_enabled: true,
        extended_const_enabled: true,
        gc_enabled: true,
        multi_value_enabled: true,
        reference_types_enabled: true,
        saturating_float_to_int_enabled: true,
        sign_extension_ops_enabled: true,
        tail_call_enabled: true,

        compact_imports_enabled: false,
        custom_descriptors_enabled: false,
        custom_page_sizes_enabled: false,
        memory64_enabled: u.arbitrary()?,
        max_memory64_bytes: 4 << 16,
        relaxed_simd_enabled: false,
        shared_everything_threads_enabled: false,
        simd_enabled: u.arbitrary()?,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    })
}
