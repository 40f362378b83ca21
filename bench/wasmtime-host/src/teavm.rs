//! Java programs compiled by TeaVM: their imports, and their main function. What a benchmark does not call is left undefined,
//! and a call of it ends the program with its name.

use crate::js::Js;
use crate::{State, js_string, wasi};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use wasmtime::*;

type C<'a> = Caller<'a, State>;

/// Standard output and error, of UTF-16 characters one by one.
#[derive(Default)]
pub struct Console {
    out: Vec<u16>,
    err: Vec<u16>,
}

impl Console {
    fn put(&mut self, error: bool, unit: i32) {
        let line = if error { &mut self.err } else { &mut self.out };
        line.push(unit as u16);
        if unit == '\n' as i32 {
            self.flush();
        }
    }

    /// Writes what is left.
    pub fn flush(&mut self) {
        let _ = std::io::stdout().write_all(String::from_utf16_lossy(&self.out).as_bytes());
        let _ = std::io::stderr().write_all(String::from_utf16_lossy(&self.err).as_bytes());
        self.out.clear();
        self.err.clear();
    }
}

/// Runs a program's main function to its end.
pub fn run_main(
    linker: &mut Linker<State>,
    store: &mut Store<State>,
    module: &Module,
    bytes: &[u8],
) -> Result<()> {
    memory(linker, store, bytes)?;
    numbers(linker)?;
    for import in module.imports() {
        if let ExternType::Func(ty) = import.ty() {
            match import.module() {
                "wasm:js-string" => js_string::link(linker, import.name(), ty)?,
                "teavmJso" | "teavm" => values(linker, import.module(), import.name(), ty)?,
                _ => {}
            }
        }
    }
    linker.define_unknown_imports_as_traps(module)?;
    let instance = linker.instantiate(&mut *store, module)?;
    let main = instance
        .get_global(&mut *store, "main")
        .ok_or_else(|| Error::msg("the program has no main function"))?;
    let main = main.get(&mut *store);
    let Some(Js::Function(main)) = Js::get(&*store, &main)? else {
        return Err(Error::msg("the program's `main` is no function"));
    };
    // The first one is the module's file.
    let arguments = store
        .data()
        .arguments
        .iter()
        .skip(1)
        .map(|a| a.encode_utf16().collect())
        .collect();
    let arguments = Js::Strings(arguments).put(&mut *store)?;
    let mut results = vec![Val::I32(0); main.ty(&*store).results().len()];
    main.call(&mut *store, &[arguments], &mut results)
}

/// The linear memory, and where in it the program's own allocator begins.
fn memory(linker: &mut Linker<State>, store: &mut Store<State>, bytes: &[u8]) -> Result<()> {
    const PAGE: u32 = 65536;
    const MOST_PAGES: u32 = 1 << 15;
    let offset = data_size(bytes).next_multiple_of(8);
    // At least what all of the compiler's modules ask for.
    let pages = offset.div_ceil(PAGE).max(64);
    let memory = Memory::new(&mut *store, MemoryType::new(pages, Some(MOST_PAGES)))?;
    linker.define(&mut *store, "env", "memory", memory)?;
    for (name, value) in [("heapOffset", offset as i32), ("maxSize", i32::MAX)] {
        let global = Global::new(
            &mut *store,
            GlobalType::new(ValType::I32, Mutability::Const),
            Val::I32(value),
        )?;
        linker.define(&mut *store, "teavmMemory", name, global)?;
    }
    linker.func_wrap("teavmMemory", "notifyHeapResized", || {})?;
    wasi::link(linker, Some(memory))
}

/// `dataSize`, in bytes, of the custom section `teavm.memoryRequirements`, a flat JSON object. The name is in no other place of a module.
fn data_size(bytes: &[u8]) -> u32 {
    let name = b"teavm.memoryRequirements";
    let Some(at) = bytes.windows(name.len()).position(|w| w == name) else {
        return 0;
    };
    let text: String = bytes[at + name.len()..]
        .iter()
        .take_while(|&&b| b != b'}')
        .map(|&b| b as char)
        .collect();
    let Some((_, rest)) = text.split_once("\"dataSize\"") else {
        return 0;
    };
    let digits: String = rest
        .trim_start_matches([':', ' '])
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

/// Functions of plain numbers, by wasmtime's fastest path.
fn numbers(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap(
        "teavmConsole",
        "putcharStdout",
        |mut c: C<'_>, unit: i32| c.data_mut().console.put(false, unit),
    )?;
    linker.func_wrap(
        "teavmConsole",
        "putcharStderr",
        |mut c: C<'_>, unit: i32| c.data_mut().console.put(true, unit),
    )?;
    linker.func_wrap("teavmDate", "currentTimeMillis", || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as f64
    })?;
    let functions: [(&str, fn(f64) -> f64); 6] = [
        ("sqrt", f64::sqrt),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("abs", f64::abs),
    ];
    for (name, f) in functions {
        linker.func_wrap("teavmMath", name, move |x: f64| f(x))?;
    }
    linker.func_wrap("teavmMath", "pow", f64::powf)?;
    linker.func_wrap("teavmJso", "stringBuiltinsSupported", || 1)?;
    Ok(())
}

/// Functions of values of JavaScript.
fn values(linker: &mut Linker<State>, module: &str, name: &str, ty: FuncType) -> Result<()> {
    let f: fn(C<'_>, &[Val], &mut [Val]) -> Result<()> = match name {
        "takeStackTrace" | "createClass" | "global" => |c, _, r| {
            r[0] = Js::Opaque.put(c)?;
            Ok(())
        },
        "decorateException"
        | "defineMethod"
        | "defineStaticMethod"
        | "defineProperty"
        | "defineStaticProperty" => |_, _, _| Ok(()),
        "isUndefined" => |c, a, r| {
            r[0] = Val::I32(matches!(Js::get(&c, &a[0])?, Some(Js::Undefined)).into());
            Ok(())
        },
        "isPrimitive" => |c, a, r| {
            let wanted = String::from_utf16_lossy(&Js::string(&c, &a[1])?);
            r[0] = Val::I32(
                Js::get(&c, &a[0])?
                    .is_none_or(|v| v.type_of() == wanted)
                    .into(),
            );
            Ok(())
        },
        "wrapInt" => |c, a, r| {
            r[0] = Js::Number(a[0].unwrap_i32().into()).put(c)?;
            Ok(())
        },
        "unwrapInt" => |c, a, r| {
            let Some(Js::Number(n)) = Js::get(&c, &a[0])? else {
                return Err(Error::msg("a number of JavaScript was expected"));
            };
            r[0] = Val::I32(n as i32);
            Ok(())
        },
        "wrapObject" => |mut c, a, r| {
            if a[0].ref_().is_some_and(|reference| reference.is_null()) {
                return Ok(());
            }
            let create = c
                .get_export("teavm.jso.createWrapper")
                .and_then(Extern::into_func);
            let create = create.ok_or_else(|| Error::msg("the module cannot wrap objects"))?;
            create.call(&mut c, &a[..1], &mut r[..1])
        },
        "getProperty" => |c, a, r| {
            let value = match (Js::get(&c, &a[0])?, Js::get(&c, &a[1])?) {
                (Some(Js::Strings(s)), Some(Js::Number(i))) => s
                    .get(i as usize)
                    .map_or(Js::Undefined, |s| Js::String(s.clone())),
                (Some(Js::Strings(s)), Some(Js::String(p)))
                    if String::from_utf16_lossy(&p) == "length" =>
                {
                    Js::Number(s.len() as f64)
                }
                _ => return Err(Error::msg("a property of JavaScript that is not there")),
            };
            r[0] = value.put(c)?;
            Ok(())
        },
        "defineFunction" => |c, a, r| {
            let Val::FuncRef(Some(function)) = &a[0] else {
                return Err(Error::msg("a function was expected"));
            };
            r[0] = Js::Function(*function).put(c)?;
            Ok(())
        },
        // The library makes only one function from text: the one that gives back its argument.
        "createFunction1" => |c, _, r| {
            r[0] = Js::Identity.put(c)?;
            Ok(())
        },
        "callFunction1" => |_, a, r| {
            r[0] = a[1];
            Ok(())
        },
        _ => return Ok(()),
    };
    linker.func_new(module, name, ty, f)?;
    Ok(())
}
