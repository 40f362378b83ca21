//! A case on Wasmtime.

use crate::arguments::{Kind, arguments};
use crate::generate::{CALLS, Case, ENVIRONMENT};
use crate::seen::{DEPTH, ELEMENTS, End, FIELDS, Seen, Value, What, memory};
use std::sync::LazyLock;
use wasmtime::{
    AnyRef, AsContextMut, Config, Engine, Error, ExnRef, Extern, GcHeapOutOfMemory, HeapType, I31,
    Instance, Linker, Module, Ref, RootScope, Rooted, Store, StoreLimits, StoreLimitsBuilder,
    ThrownException, Trap, Val, ValType,
};

/// Most bytes of a memory, and of the heap.
const MOST_BYTES: usize = 64 << 20;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut config = Config::new();
    config
        .wasm_gc(true)
        .wasm_function_references(true)
        .wasm_exceptions(true)
        .wasm_tail_call(true)
        .wasm_multi_memory(true)
        .wasm_extended_const(true);
    Engine::new(&config).expect("the settings fit this machine")
});

/// Runs a case.
pub fn run(case: &Case) -> Seen {
    let mut seen = Seen::default();
    if let Err(end) = steps(case, &mut seen) {
        seen.end("load", end);
    }
    seen
}

fn steps(case: &Case, seen: &mut Seen) -> Result<(), End> {
    let refused = |e: Error| End::Refused(format!("{e:#}"));
    static OUR_ENVIRONMENT: LazyLock<Module> =
        LazyLock::new(|| Module::new(&ENGINE, &*ENVIRONMENT).expect("the environment is a module"));
    let module = Module::new(&ENGINE, &case.module).map_err(refused)?;
    let limits = StoreLimitsBuilder::new().memory_size(MOST_BYTES).build();
    let mut store = Store::new(&ENGINE, limits);
    store.limiter(|limits| limits);
    let mut linker = Linker::new(&ENGINE);
    let environment = linker
        .instantiate(&mut store, &OUR_ENVIRONMENT)
        .map_err(refused)?;
    linker
        .instance(&mut store, "env", environment)
        .map_err(refused)?;
    match linker.instantiate(&mut store, &module) {
        Ok(instance) => {
            if !calls(case, &mut store, instance, seen) {
                return Ok(());
            }
            state(&mut store, instance, "", seen);
        }
        Err(e) => {
            let end = ended(&mut RootScope::new(&mut store), e);
            if !seen.end("instantiate", end) {
                return Ok(());
            }
        }
    }
    state(&mut store, environment, "env ", seen);
    Ok(())
}

fn kind(ty: &ValType) -> Kind {
    match ty {
        ValType::I32 => Kind::I32,
        ValType::I64 => Kind::I64,
        ValType::F32 => Kind::F32,
        ValType::F64 => Kind::F64,
        ValType::V128 => Kind::V128,
        ValType::Ref(r) if r.is_nullable() => Kind::Nullable,
        ValType::Ref(r)
            if matches!(r.heap_type(), HeapType::Any | HeapType::Eq | HeapType::I31) =>
        {
            Kind::Small
        }
        _ => Kind::Other,
    }
}

/// The exports, in the module's order.
fn exports(store: &mut Store<StoreLimits>, instance: Instance) -> Vec<(String, Extern)> {
    let all = instance.exports(store);
    all.map(|e| (e.name().to_string(), e.into_extern()))
        .collect()
}

/// Calls what the module exports; whether it can go on after that.
fn calls(case: &Case, store: &mut Store<StoreLimits>, instance: Instance, seen: &mut Seen) -> bool {
    for call in 0..CALLS {
        for (name, item) in exports(store, instance) {
            let Some(f) = item.into_func() else { continue };
            let mut store = RootScope::new(&mut *store);
            let ty = f.ty(&store);
            let Some(values) = arguments(ty.params().map(|t| kind(&t)), &case.arguments, call)
            else {
                continue;
            };
            let values: Vec<Val> = values
                .iter()
                .zip(ty.params())
                .map(|(v, t)| match v {
                    Value::I32(v) => Val::I32(*v),
                    Value::I64(v) => Val::I64(*v),
                    Value::F32(v) => Val::F32(*v),
                    Value::F64(v) => Val::F64(*v),
                    Value::V128(v) => Val::V128((*v).into()),
                    Value::I31(v) => {
                        Val::AnyRef(Some(AnyRef::from_i31(&mut store, I31::wrapping_i32(*v))))
                    }
                    _ => t
                        .default_value()
                        .expect("only what can be null is given null"),
                })
                .collect();
            let mut results = vec![Val::I32(0); ty.results().len()];
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
fn state(store: &mut Store<StoreLimits>, instance: Instance, whose: &str, seen: &mut Seen) {
    for (name, item) in exports(store, instance) {
        let mut store = RootScope::new(&mut *store);
        let what = match item {
            Extern::Global(global) => {
                let v = global.get(&mut store);
                What::Global(value(&mut store, &v, DEPTH))
            }
            Extern::Table(table) => {
                let size = table.size(&store) as u32;
                let elements = (0..size.min(ELEMENTS)).map(|i| {
                    let v = match table.get(&mut store, i.into()).expect("within its size") {
                        Ref::Func(f) => Val::FuncRef(f),
                        Ref::Extern(r) => Val::ExternRef(r),
                        Ref::Any(r) => Val::AnyRef(r),
                        Ref::Exn(r) => Val::ExnRef(r),
                    };
                    value(&mut store, &v, DEPTH)
                });
                What::Table(size, elements.collect())
            }
            Extern::Memory(m) => memory(m.data(&store)),
            _ => continue,
        };
        seen.add(format!("{whose}{name}"), what);
    }
}

type Scope<'a> = RootScope<&'a mut Store<StoreLimits>>;

fn value(store: &mut Scope<'_>, v: &Val, depth: u32) -> Value {
    match v {
        Val::I32(v) => Value::I32(*v),
        Val::I64(v) => Value::I64(*v),
        Val::F32(v) => Value::F32(*v),
        Val::F64(v) => Value::F64(*v),
        Val::V128(v) => Value::V128(v.as_u128()),
        Val::FuncRef(f) => f.map_or(Value::Null, |_| Value::Func),
        Val::ExnRef(Some(e)) => Value::Exception(exception(store, e, depth)),
        Val::AnyRef(Some(r)) => reference(store, *r, depth),
        Val::ExternRef(Some(r)) => {
            let r = AnyRef::convert_extern(&mut *store, *r).expect("a live handle");
            reference(store, r, depth)
        }
        Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None) => Value::Null,
        other => unreachable!("no such values are enabled: {other:?}"),
    }
}

fn reference(store: &mut Scope<'_>, r: Rooted<AnyRef>, depth: u32) -> Value {
    if let Some(n) = r.as_i31(&*store).expect("a live handle") {
        return Value::I31(n.get_i32());
    }
    if depth == 0 {
        return Value::Deep;
    }
    if let Some(s) = r.as_struct(&*store).expect("a live handle") {
        let fields: Vec<Val> = s
            .fields(&mut *store)
            .expect("a live handle")
            .take(FIELDS)
            .collect();
        return Value::Struct(fields.iter().map(|v| value(store, v, depth - 1)).collect());
    }
    let a = r.unwrap_array(&*store).expect("a live handle");
    let len = a.len(&*store).expect("a live handle");
    let elements = (0..len.min(ELEMENTS)).map(|i| {
        let v = a.get(&mut *store, i).expect("within its length");
        value(store, &v, depth - 1)
    });
    Value::Array(len, elements.collect())
}

fn exception(store: &mut Scope<'_>, e: &Rooted<ExnRef>, depth: u32) -> Vec<Value> {
    let fields: Vec<Val> = e
        .fields(&mut *store)
        .expect("a live handle")
        .take(FIELDS)
        .collect();
    fields
        .iter()
        .map(|v| value(store, v, depth.max(1) - 1))
        .collect()
}

fn ended(store: &mut Scope<'_>, e: Error) -> End {
    if e.is::<ThrownException>() {
        let e = store
            .as_context_mut()
            .take_pending_exception()
            .expect("one was thrown");
        return End::Threw(exception(store, &e, DEPTH));
    }
    if e.is::<GcHeapOutOfMemory<()>>() {
        return End::Exhausted;
    }
    let Some(trap) = e.downcast_ref::<Trap>() else {
        return End::Refused(format!("{e:#}"));
    };
    End::Trapped(match trap {
        Trap::StackOverflow | Trap::AllocationTooLarge => return End::Exhausted,
        Trap::UnreachableCodeReached => "unreachable",
        Trap::MemoryOutOfBounds => "memory",
        Trap::TableOutOfBounds => "table",
        Trap::IndirectCallToNull => "null element",
        Trap::BadSignature => "signature",
        Trap::NullReference => "null",
        Trap::ArrayOutOfBounds => "array",
        Trap::CastFailure => "cast",
        Trap::IntegerOverflow => "overflow",
        Trap::IntegerDivisionByZero => "division",
        Trap::BadConversionToInteger => "conversion",
        other => return End::Refused(other.to_string()),
    })
}
