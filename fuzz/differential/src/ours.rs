//! A case on this project's engine.

use crate::arguments::{Kind, arguments};
use crate::generate::{CALLS, Case, ENVIRONMENT};
use crate::seen::{DEPTH, ELEMENTS, End, FIELDS, Seen, Value, What, memory};
use std::path::Path;
use std::time::Duration;
use varve_runtime::{
    AsContextMut, Config, Engine, Error, Extern, HeapType, Instance, Linker, Module, Rooted, Store,
    Tier, TrapKind, Val, ValType,
};
use varve_runtime::{Kind as TypeKind, RootScope};

/// The settings under which each case runs, by name, one after the other: every one must do what the other engine does. Compiled code is
/// kept in `kept`, which is empty in the beginning.
pub fn configurations(case: &Case, kept: &Path) -> Vec<(&'static str, Config)> {
    let small = Config {
        heap_max: 64 << 20,
        // Each memory and table for itself, as on the other engine.
        linear_max: u64::MAX,
        nursery: 1 << 20,
        background: false,
        ..Config::default()
    };
    // Hot almost at once: the counters mislead, guards fail, and code changes under activations.
    let early = Config {
        hot: 20,
        ..small.clone()
    };
    let mut all = vec![
        (
            "baseline",
            Config {
                tier: Tier::Baseline,
                ..small.clone()
            },
        ),
        (
            "optimizing",
            Config {
                tier: Tier::Optimizing,
                ..small
            },
        ),
        ("early", early.clone()),
    ];
    // The first keeps each piece of code at once, the others what they have in the end.
    let in_the_end = early.code_cache_after;
    for (name, code_cache_after) in [
        ("keeping code", Duration::ZERO),
        ("with kept code", in_the_end),
        ("with more kept code", in_the_end),
    ] {
        let code_cache = Some(kept.into());
        all.push((
            name,
            Config {
                code_cache,
                code_cache_after,
                ..early.clone()
            },
        ));
    }
    if case.stress {
        all.push((
            "early, collecting at every allocation",
            Config {
                gc_stress: true,
                ..early
            },
        ));
    }
    all
}

/// Runs a case.
pub fn run(case: &Case, config: Config) -> Seen {
    let mut seen = Seen::default();
    if let Err(end) = steps(case, config, &mut seen) {
        seen.end("load", end);
    }
    seen
}

fn steps(case: &Case, config: Config, seen: &mut Seen) -> Result<(), End> {
    let engine = Engine::new(config);
    let refused = |e: Error| End::Refused(e.to_string());
    let environment = Module::new(&engine, &ENVIRONMENT).map_err(refused)?;
    let module = Module::new(&engine, &case.module).map_err(refused)?;
    let mut store = Store::new(&engine, ()).map_err(refused)?;
    let mut linker = Linker::new(&engine);
    let environment = linker
        .instantiate(&mut store, &environment)
        .map_err(refused)?;
    linker.instance(&mut store, "env", environment);
    match linker.instantiate(&mut store, &module) {
        Ok(instance) => {
            if !calls(case, &mut store, instance, seen) {
                return Ok(());
            }
            state(&mut store, instance, "", seen);
        }
        Err(e) => {
            let end = ended(&mut store, e);
            if !seen.end("instantiate", end) {
                return Ok(());
            }
        }
    }
    state(&mut store, environment, "env ", seen);
    Ok(())
}

fn kind(ty: ValType) -> Kind {
    match ty {
        ValType::I32 => Kind::I32,
        ValType::I64 => Kind::I64,
        ValType::F32 => Kind::F32,
        ValType::F64 => Kind::F64,
        ValType::V128 => Kind::V128,
        ValType::Ref(r) if r.nullable => Kind::Nullable,
        ValType::Ref(r) if matches!(r.heap, HeapType::Any | HeapType::Eq | HeapType::I31) => {
            Kind::Small
        }
        ValType::Ref(_) => Kind::Other,
    }
}

/// Calls what the module exports; whether it can go on after that.
fn calls(case: &Case, store: &mut Store<()>, instance: Instance, seen: &mut Seen) -> bool {
    for call in 0..CALLS {
        for (name, item) in instance.exports(&mut *store) {
            let Some(f) = item.into_func() else { continue };
            let mut store = RootScope::new(&mut *store);
            let ty = f.ty(&mut store).expect("of this store");
            let Some(values) = arguments(ty.params.iter().map(|&t| kind(t)), &case.arguments, call)
            else {
                continue;
            };
            let values: Vec<Val> = values
                .iter()
                .zip(&ty.params)
                .map(|(v, &t)| match v {
                    Value::I32(v) => Val::I32(*v),
                    Value::I64(v) => Val::I64(*v),
                    Value::F32(v) => Val::F32(*v),
                    Value::F64(v) => Val::F64(*v),
                    Value::V128(v) => Val::V128(*v),
                    Value::I31(v) => Val::AnyRef(Some(Rooted::i31(&mut store, *v))),
                    _ => Val::zero(t),
                })
                .collect();
            let mut results: Vec<Val> = ty.results.iter().map(|&t| Val::zero(t)).collect();
            let end = match f.call(&mut store, &values, &mut results) {
                Ok(()) => End::Returned(
                    results
                        .iter()
                        .map(|r| value(&mut store, r, DEPTH))
                        .collect(),
                ),
                Err(e) => ended(&mut store, e),
            };
            if !seen.end(format!("call {call} of {name}"), end) {
                return false;
            }
        }
    }
    true
}

/// What everything that is exported holds.
fn state(store: &mut Store<()>, instance: Instance, whose: &str, seen: &mut Seen) {
    for (name, item) in instance.exports(&mut *store) {
        let mut store = RootScope::new(&mut *store);
        let what = if let Some(global) = item.into_global() {
            let v = global.get(&mut store).expect("of this store");
            What::Global(value(&mut store, &v, DEPTH))
        } else if let Some(table) = item.into_table() {
            let size = table.size(&mut store).expect("of this store");
            let elements = (0..size.min(ELEMENTS)).map(|i| {
                let v = table
                    .get(&mut store, i)
                    .expect("of this store")
                    .expect("within its size");
                value(&mut store, &v, DEPTH)
            });
            What::Table(size, elements.collect())
        } else if let Some(m) = Extern::into_memory(item) {
            memory(m.data(&mut store).expect("of this store"))
        } else {
            continue;
        };
        seen.add(format!("{whose}{name}"), what);
    }
}

fn value(store: &mut impl AsContextMut, v: &Val, depth: u32) -> Value {
    match v {
        Val::I32(v) => Value::I32(*v),
        Val::I64(v) => Value::I64(*v),
        Val::F32(v) => Value::F32(*v),
        Val::F64(v) => Value::F64(*v),
        Val::V128(v) => Value::V128(*v),
        Val::FuncRef(f) => f.map_or(Value::Null, |_| Value::Func),
        Val::ExnRef(Some(e)) => Value::Exception(exception(store, e, depth)),
        Val::AnyRef(Some(r)) | Val::ExternRef(Some(r)) => reference(store, r, depth),
        Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None) => Value::Null,
    }
}

fn reference(store: &mut impl AsContextMut, r: &Rooted, depth: u32) -> Value {
    if let Some(n) = r.as_i31(&mut *store).expect("a live handle") {
        return Value::I31(n);
    }
    if depth == 0 {
        return Value::Deep;
    }
    match r.kind(&mut *store).expect("a live handle") {
        Some(TypeKind::Struct) => Value::Struct(fields(store, r, 0, depth)),
        Some(TypeKind::Array) => {
            let len = r.len(&mut *store).expect("an array");
            let elements = (0..len.min(ELEMENTS)).map(|i| {
                let v = r.element(&mut *store, i).expect("within its length");
                value(store, &v, depth - 1)
            });
            Value::Array(len, elements.collect())
        }
        other => unreachable!("no reference leads to {other:?}"),
    }
}

/// What an exception carries: its first field is its tag.
fn exception(store: &mut impl AsContextMut, e: &Rooted, depth: u32) -> Vec<Value> {
    fields(store, e, 1, depth.max(1))
}

fn fields(store: &mut impl AsContextMut, r: &Rooted, first: usize, depth: u32) -> Vec<Value> {
    let values = (first..first + FIELDS).map_while(|i| r.field(&mut *store, i).ok());
    let values: Vec<Val> = values.collect();
    values.iter().map(|v| value(store, v, depth - 1)).collect()
}

fn ended(store: &mut impl AsContextMut, e: Error) -> End {
    let trap = match e {
        Error::Trap(t) => t,
        Error::Exception { exception: e, .. } => return End::Threw(exception(store, &e, DEPTH)),
        Error::System(_) => return End::Exhausted,
        e => return End::Refused(e.to_string()),
    };
    End::Trapped(match trap.kind {
        TrapKind::OutOfMemory | TrapKind::StackOverflow => return End::Exhausted,
        TrapKind::Unreachable => "unreachable",
        TrapKind::MemoryOutOfBounds => "memory",
        // The other engine has one kind for these.
        TrapKind::TableOutOfBounds | TrapKind::UndefinedElement | TrapKind::ElementOutOfBounds => {
            "table"
        }
        TrapKind::UninitializedElement => "null element",
        TrapKind::IndirectCallType => "signature",
        TrapKind::NullReference => "null",
        TrapKind::ArrayOutOfBounds => "array",
        TrapKind::CastFailure => "cast",
        TrapKind::IntegerOverflow => "overflow",
        TrapKind::IntegerDivisionByZero => "division",
        TrapKind::BadConversion => "conversion",
        TrapKind::TableLimit => "table limit",
        TrapKind::Interrupted => unreachable!("nobody interrupts"),
        TrapKind::StringOutOfBounds | TrapKind::CodePoint => unreachable!("there are no strings"),
    })
}
