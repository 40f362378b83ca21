//! Runs one script of the test suite.

use std::collections::HashMap;
use varve_runtime::*;
use wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::token::{F32, F64, Id};
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat};

/// The outcomes of a script's directives.
#[derive(Default)]
pub struct Outcome {
    pub passed: usize,
    pub failed: Vec<(usize, String)>,
    pub skipped: Vec<usize>,
}

/// The host's value behind an `externref`.
struct HostNumber(u32);

struct Script<'e> {
    engine: &'e Engine,
    store: Store<()>,
    linker: Linker<()>,
    current: Option<Instance>,
    named: HashMap<String, Instance>,
    definitions: HashMap<String, Module>,
    last_definition: Option<Module>,
}

pub fn run(engine: &Engine, name: &str, text: &str, skip: &dyn Fn(usize) -> bool) -> Outcome {
    let mut outcome = Outcome::default();
    let mut lexer = Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).unwrap_or_else(|e| panic!("{name}: {e}"));
    let wast = match parser::parse::<Wast>(&buffer) {
        Ok(w) => w,
        Err(e) => {
            outcome.failed.push((
                e.span().linecol_in(text).0 + 1,
                format!("script does not parse: {}", e.message()),
            ));
            return outcome;
        }
    };
    let mut script = Script::new(engine);
    for directive in wast.directives {
        let line = directive.span().linecol_in(text).0 + 1;
        if skip(line) {
            outcome.skipped.push(line);
            continue;
        }
        match script.directive(directive) {
            Ok(()) => outcome.passed += 1,
            Err(what) => outcome.failed.push((line, what)),
        }
    }
    outcome
}

type Check = std::result::Result<(), String>;

impl<'e> Script<'e> {
    fn new(engine: &'e Engine) -> Self {
        let mut store = Store::new(engine, ()).unwrap();
        let mut linker = Linker::new(engine);
        linker
            .func_wrap("spectest", "print", || {})
            .func_wrap("spectest", "print_i32", |_: i32| {})
            .func_wrap("spectest", "print_i64", |_: i64| {})
            .func_wrap("spectest", "print_f32", |_: f32| {})
            .func_wrap("spectest", "print_f64", |_: f64| {})
            .func_wrap("spectest", "print_i32_f32", |_: i32, _: f32| {})
            .func_wrap("spectest", "print_f64_f64", |_: f64, _: f64| {});
        let globals = [
            ("global_i32", ValType::I32, Val::I32(666)),
            ("global_i64", ValType::I64, Val::I64(666)),
            ("global_f32", ValType::F32, Val::f32(666.6)),
            ("global_f64", ValType::F64, Val::f64(666.6)),
        ];
        for (name, ty, value) in globals {
            let global = Global::new(&mut store, ty, false, value).unwrap();
            linker.define("spectest", name, global);
        }
        let element = RefType {
            nullable: true,
            heap: HeapType::Func,
        };
        let table = Table::new(&mut store, element, 10, Some(20), Val::FuncRef(None)).unwrap();
        let memory = Memory::new(&mut store, 1, Some(2)).unwrap();
        linker
            .define("spectest", "table", table)
            .define("spectest", "memory", memory);
        let wide = r#"(module (table (export "table64") i64 10 20 funcref))"#;
        let wide = Module::new(engine, &wat::parse_str(wide).unwrap()).unwrap();
        let wide = linker.instantiate(&mut store, &wide).unwrap();
        let wide = wide.get_export(&mut store, "table64").unwrap();
        linker.define("spectest", "table64", wide);
        Script {
            engine,
            store,
            linker,
            current: None,
            named: HashMap::new(),
            definitions: HashMap::new(),
            last_definition: None,
        }
    }

    fn directive(&mut self, directive: WastDirective<'_>) -> Check {
        match directive {
            WastDirective::Module(mut module) => {
                let name = module.name().map(|n| n.name().to_string());
                let bytes = module
                    .encode()
                    .map_err(|e| format!("does not encode: {e}"))?;
                let module = Module::new(self.engine, &bytes).map_err(|e| e.to_string())?;
                self.instantiate(name, &module).map_err(|e| e.to_string())
            }
            WastDirective::ModuleDefinition(mut module) => {
                let name = module.name().map(|n| n.name().to_string());
                let bytes = module
                    .encode()
                    .map_err(|e| format!("does not encode: {e}"))?;
                let module = Module::new(self.engine, &bytes).map_err(|e| e.to_string())?;
                if let Some(name) = name {
                    self.definitions.insert(name, module.clone());
                }
                self.last_definition = Some(module);
                Ok(())
            }
            WastDirective::ModuleInstance {
                instance, module, ..
            } => {
                let module = match module {
                    Some(id) => self.definitions.get(id.name()).cloned(),
                    None => self.last_definition.clone(),
                };
                let module = module.ok_or("no such module definition")?;
                self.instantiate(instance.map(|i| i.name().to_string()), &module)
                    .map_err(|e| e.to_string())
            }
            WastDirective::Register { name, module, .. } => {
                let instance = self.instance(module)?;
                self.linker.instance(&mut self.store, name, instance);
                Ok(())
            }
            WastDirective::Invoke(call) => {
                self.invoke(&call)?.map(|_| ()).map_err(|e| e.to_string())
            }
            WastDirective::AssertReturn { exec, results, .. } => {
                let values = self.execute(exec)?.map_err(|e| e.to_string())?;
                if values.len() != results.len() {
                    return Err(format!(
                        "{} results, {} expected",
                        values.len(),
                        results.len()
                    ));
                }
                for (v, expected) in values.iter().zip(&results) {
                    let WastRet::Core(expected) = expected else {
                        return Err("component result".into());
                    };
                    if !self.matches(v, expected) {
                        return Err(format!("result {v:?}, expected {expected:?}"));
                    }
                }
                Ok(())
            }
            WastDirective::AssertTrap { exec, message, .. } => match self.execute(exec)? {
                Err(Error::Trap(t)) if says(&t, message) => Ok(()),
                Err(e) => Err(format!("`{e}`, expected trap `{message}`")),
                Ok(_) => Err(format!("returned, expected trap `{message}`")),
            },
            WastDirective::AssertExhaustion { call, message, .. } => match self.invoke(&call)? {
                Err(Error::Trap(t)) if t.kind == TrapKind::StackOverflow => Ok(()),
                Err(e) => Err(format!("`{e}`, expected `{message}`")),
                Ok(_) => Err(format!("returned, expected `{message}`")),
            },
            WastDirective::AssertException { exec, .. } => match self.execute(exec)? {
                Err(Error::Exception { .. }) => Ok(()),
                Err(e) => Err(format!("`{e}`, expected an exception")),
                Ok(_) => Err("returned, expected an exception".into()),
            },
            WastDirective::AssertMalformed {
                module, message, ..
            } => self.refuses(module, message, true),
            WastDirective::AssertInvalid {
                module, message, ..
            } => self.refuses(module, message, false),
            WastDirective::AssertUnlinkable {
                module: Wat::Module(mut module),
                message,
                ..
            } => {
                let bytes = module.encode().map_err(|e| e.to_string())?;
                let module = Module::new(self.engine, &bytes).map_err(|e| e.to_string())?;
                match self.linker.instantiate(&mut self.store, &module) {
                    Err(Error::MissingImport { .. } | Error::ImportType { .. }) => Ok(()),
                    Err(e) => Err(format!("`{e}`, expected a link error `{message}`")),
                    Ok(_) => Err(format!("was linked, expected `{message}`")),
                }
            }
            // The text format's own annotations: a matter of the script's parser.
            WastDirective::AssertInvalidCustom { .. }
            | WastDirective::AssertMalformedCustom { .. } => Ok(()),
            other => Err(format!("unknown directive {other:?}")),
        }
    }

    /// Text that does not parse never becomes a module: then the script's parser has refused it.
    fn refuses(&mut self, mut module: QuoteWat<'_>, message: &str, malformed: bool) -> Check {
        let Ok(bytes) = module.encode() else {
            return if malformed || matches!(module, QuoteWat::QuoteModule(..)) {
                Ok(())
            } else {
                Err("does not encode".into())
            };
        };
        match Module::new(self.engine, &bytes) {
            Err(Error::Invalid { .. } | Error::Unsupported { .. }) => Ok(()),
            Err(e) => Err(format!("`{e}`, expected `{message}`")),
            Ok(_) => Err(format!("was loaded, expected `{message}`")),
        }
    }

    fn instantiate(&mut self, name: Option<String>, module: &Module) -> Result<()> {
        let instance = self.linker.instantiate(&mut self.store, module)?;
        if let Some(name) = name {
            self.named.insert(name, instance);
        }
        self.current = Some(instance);
        Ok(())
    }

    fn instance(&self, id: Option<Id<'_>>) -> std::result::Result<Instance, String> {
        match id {
            Some(id) => self
                .named
                .get(id.name())
                .copied()
                .ok_or(format!("no instance {}", id.name())),
            None => self.current.ok_or("no instance".into()),
        }
    }

    fn execute(&mut self, exec: WastExecute<'_>) -> std::result::Result<Result<Vec<Val>>, String> {
        match exec {
            WastExecute::Invoke(call) => self.invoke(&call),
            WastExecute::Get { module, global, .. } => {
                let instance = self.instance(module)?;
                let global = instance
                    .get_global(&mut self.store, global)
                    .ok_or("no such global")?;
                Ok(global.get(&mut self.store).map(|v| vec![v]))
            }
            WastExecute::Wat(Wat::Module(mut module)) => {
                let bytes = module.encode().map_err(|e| e.to_string())?;
                let module = Module::new(self.engine, &bytes).map_err(|e| e.to_string())?;
                Ok(self
                    .linker
                    .instantiate(&mut self.store, &module)
                    .map(|_| vec![]))
            }
            WastExecute::Wat(_) => Err("a component".into()),
        }
    }

    fn invoke(&mut self, call: &WastInvoke<'_>) -> std::result::Result<Result<Vec<Val>>, String> {
        let instance = self.instance(call.module)?;
        let func = instance
            .get_func(&mut self.store, call.name)
            .ok_or(format!("no function `{}`", call.name))?;
        let args = call
            .args
            .iter()
            .map(|a| self.argument(a))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let count = func.ty(&mut self.store).unwrap().results.len();
        let mut results = vec![Val::I32(0); count];
        Ok(func
            .call(&mut self.store, &args, &mut results)
            .map(|()| results))
    }

    fn host_value(&mut self, n: u32) -> Rooted {
        Rooted::external(&mut self.store, HostNumber(n)).unwrap()
    }

    fn argument(&mut self, arg: &WastArg<'_>) -> std::result::Result<Val, String> {
        use wast::core::{AbstractHeapType as A, HeapType as H};
        let WastArg::Core(arg) = arg else {
            return Err("component argument".into());
        };
        Ok(match arg {
            WastArgCore::I32(v) => Val::I32(*v),
            WastArgCore::I64(v) => Val::I64(*v),
            WastArgCore::F32(v) => Val::F32(v.bits),
            WastArgCore::F64(v) => Val::F64(v.bits),
            WastArgCore::V128(v) => Val::V128(u128::from_le_bytes(v.to_le_bytes())),
            WastArgCore::RefNull(H::Abstract { ty, .. }) => match ty {
                A::Func | A::NoFunc => Val::FuncRef(None),
                A::Extern | A::NoExtern => Val::ExternRef(None),
                A::Exn | A::NoExn => Val::ExnRef(None),
                _ => Val::AnyRef(None),
            },
            WastArgCore::RefExtern(n) => Val::ExternRef(Some(self.host_value(*n))),
            WastArgCore::RefHost(n) => Val::AnyRef(Some(self.host_value(*n))),
            other => return Err(format!("argument {other:?}")),
        })
    }

    fn kind(&mut self, r: &Rooted) -> Option<Kind> {
        r.kind(&mut self.store).unwrap()
    }

    fn matches(&mut self, v: &Val, expected: &WastRetCore<'_>) -> bool {
        match (v, expected) {
            (_, WastRetCore::Either(all)) => all.iter().any(|e| self.matches(v, e)),
            (Val::I32(a), WastRetCore::I32(b)) => a == b,
            (Val::I64(a), WastRetCore::I64(b)) => a == b,
            (Val::F32(a), WastRetCore::F32(p)) => is_f32(*a, p),
            (Val::F64(a), WastRetCore::F64(p)) => is_f64(*a, p),
            (Val::V128(a), WastRetCore::V128(p)) => is_vector(*a, p),
            (
                Val::FuncRef(None) | Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None),
                WastRetCore::RefNull(_),
            ) => true,
            (Val::FuncRef(Some(_)), WastRetCore::RefFunc(_)) => true,
            (Val::ExternRef(Some(_)), WastRetCore::RefExtern(None)) => true,
            (Val::ExternRef(Some(r)), WastRetCore::RefExtern(Some(n)))
            | (Val::AnyRef(Some(r)), WastRetCore::RefHost(n)) => r
                .host_value::<HostNumber, _>(&mut self.store)
                .is_some_and(|h| h.0 == *n),
            (Val::AnyRef(Some(_)), WastRetCore::RefAny) => true,
            (Val::AnyRef(Some(r)), WastRetCore::RefI31) => {
                r.as_i31(&mut self.store).unwrap().is_some()
            }
            (Val::AnyRef(Some(r)), WastRetCore::RefStruct) => self.kind(r) == Some(Kind::Struct),
            (Val::AnyRef(Some(r)), WastRetCore::RefArray) => self.kind(r) == Some(Kind::Array),
            (Val::AnyRef(Some(r)), WastRetCore::RefEq) => {
                self.kind(r).is_some() || r.as_i31(&mut self.store).unwrap().is_some()
            }
            _ => false,
        }
    }
}

fn is_f32(a: u32, p: &NanPattern<F32>) -> bool {
    match p {
        NanPattern::CanonicalNan => a & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => a & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(b) => a == b.bits,
    }
}

fn is_f64(a: u64, p: &NanPattern<F64>) -> bool {
    match p {
        NanPattern::CanonicalNan => a & 0x7fff_ffff_ffff_ffff == 0x7ff8_0000_0000_0000,
        NanPattern::ArithmeticNan => a & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        NanPattern::Value(b) => a == b.bits,
    }
}

fn is_vector(v: u128, p: &V128Pattern) -> bool {
    let lane = |bits: usize, i: usize| (v >> (bits * i)) as u64;
    let all = |bits, expected: Vec<u64>| {
        let mask = u64::MAX >> (64 - bits);
        let lanes = expected.iter().enumerate();
        lanes.fold(true, |same, (i, &e)| {
            same && (lane(bits, i) ^ e) & mask == 0
        })
    };
    match p {
        V128Pattern::I8x16(e) => all(8, e.iter().map(|&e| e as u64).collect()),
        V128Pattern::I16x8(e) => all(16, e.iter().map(|&e| e as u64).collect()),
        V128Pattern::I32x4(e) => all(32, e.iter().map(|&e| e as u64).collect()),
        V128Pattern::I64x2(e) => all(64, e.iter().map(|&e| e as u64).collect()),
        V128Pattern::F32x4(e) => (0..4).all(|i| is_f32(lane(32, i) as u32, &e[i])),
        V128Pattern::F64x2(e) => (0..2).all(|i| is_f64(lane(64, i), &e[i])),
    }
}

/// Whether a trap is the one that the suite's message means: older scripts give the beginning of the message only.
fn says(trap: &Trap, message: &str) -> bool {
    match trap.kind {
        // The suite has one for each kind of reference.
        TrapKind::NullReference => message.starts_with("null ") && message.ends_with("reference"),
        // With the index.
        TrapKind::UninitializedElement if message.starts_with("uninitialized element ") => true,
        kind => kind.to_string().starts_with(message),
    }
}
