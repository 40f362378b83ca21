//! Java programs compiled by TeaVM: their imports, and their main function.
//!
//! TeaVM's library reaches the outside through a few dozen functions and, for strings and the main function's arguments, through
//! values of JavaScript. There is no JavaScript here: the parts that the library itself needs are provided; a program that uses
//! JavaScript of its own ends with an error that says so.

use super::arguments::{C, number, result, unsupported};
use super::console::{Output, err_failed, out_failed};
use super::js::Js;
use super::{State, Wasi, dates, exit_code, js_string, wasi};
use crate::*;
use std::io;

/// Whether a module is TeaVM's output.
pub fn is_teavm(module: &Module) -> bool {
    module.imports().any(|(m, ..)| m.starts_with("teavm"))
}

fn put_char(output: &mut Output, v: &Val) -> io::Result<()> {
    output.put(v.i32().unwrap_or(0) as u16)
}

/// Defines all that the module imports, except for functions that only exist in a browser; the linear memory, which modules import and do not export.
///
/// # Errors
/// If the host gives no memory.
pub fn link(
    linker: &mut Linker<State>,
    store: &mut Store<State>,
    module: &Module,
) -> Result<Memory> {
    js_string::link(linker, store, module)?;
    super::placement::link(linker);
    console(linker);
    dates::link(linker);
    math(linker);
    exceptions(linker);
    references(linker);
    values(linker);
    functions(linker);
    memory(linker, store, module)
}

/// The imports that [`link`] does not define, by both names: a program with such imports cannot start.
///
/// # Errors
/// As [`link`].
pub fn undefined<'m>(
    store: &mut Store<State>,
    module: &'m Module,
) -> Result<Vec<(&'m str, &'m str)>> {
    let mut linker = Linker::new(module.engine());
    link(&mut linker, store, module)?;
    Ok(linker.undefined(module))
}

fn console(linker: &mut Linker<State>) {
    linker.func_any(
        "teavmConsole",
        "putcharStdout",
        (1, 0),
        |mut c: C<'_>, a, _| put_char(&mut c.data_mut().console.out, &a[0]).map_err(out_failed),
    );
    linker.func_any(
        "teavmConsole",
        "putcharStderr",
        (1, 0),
        |mut c: C<'_>, a, _| put_char(&mut c.data_mut().console.err, &a[0]).map_err(err_failed),
    );
}

/// Leaves of one number from functions of Rust.
macro_rules! unary {
    ($($name:literal = $f:expr;)*) => {
        [$(($name, Leaf::Unary({
            extern "C" fn leaf(x: f64) -> f64 {
                $f(x)
            }
            leaf
        }))),*]
    };
}

/// Leaves of two numbers.
macro_rules! binary {
    ($($name:literal = $f:expr;)*) => {
        [$(($name, Leaf::Binary({
            extern "C" fn leaf(x: f64, y: f64) -> f64 {
                $f(x, y)
            }
            leaf
        }))),*]
    };
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        x
    } else {
        x.signum()
    }
}

fn math(linker: &mut Linker<State>) {
    let leaves = [
        ("sqrt", Leaf::Sqrt),
        ("abs", Leaf::Abs),
        ("floor", Leaf::Floor),
        ("ceil", Leaf::Ceil),
    ];
    let unary = unary! {
        "sin" = f64::sin;
        "cos" = f64::cos;
        "tan" = f64::tan;
        "asin" = f64::asin;
        "acos" = f64::acos;
        "atan" = f64::atan;
        "sinh" = f64::sinh;
        "cosh" = f64::cosh;
        "tanh" = f64::tanh;
        "exp" = f64::exp;
        "expm1" = f64::exp_m1;
        "log" = f64::ln;
        "log10" = f64::log10;
        "log1p" = f64::ln_1p;
        "cbrt" = f64::cbrt;
        "sign" = sign;
    };
    let binary = binary! {
        "pow" = pow;
        "atan2" = f64::atan2;
        "hypot" = f64::hypot;
    };
    for (name, leaf) in leaves.into_iter().chain(unary).chain(binary) {
        linker.func_leaf("teavmMath", name, leaf);
    }
    linker.func_any("teavmMath", "random", (0, 1), |mut c: C<'_>, _, r| {
        result(&mut r[0], random(&mut c.data_mut().wasi)?);
        Ok(())
    });
}

/// Java's and JavaScript's power: one to a power that is no number is no number.
fn pow(x: f64, y: f64) -> f64 {
    if y.is_nan() || x.abs() == 1.0 && y.is_infinite() {
        f64::NAN
    } else {
        x.powf(y)
    }
}

/// A number from 0 to 1.
fn random(wasi: &mut Wasi) -> Result<f64> {
    let mut bytes = [0u8; 8];
    wasi.random(&mut bytes)
        .map_err(|e| Error::Usage(format!("the system has no random numbers: {e}")))?;
    Ok((u64::from_ne_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64)
}

fn exceptions(linker: &mut Linker<State>) {
    linker.func_any("teavm", "takeStackTrace", (0, 1), |mut c: C<'_>, _, r| {
        r[0] = Js::Stack(c.stack()).put(c)?;
        Ok(())
    });
    // The text that JavaScript would show for the exception: here its stack, for the message of an uncaught one.
    linker.func_any(
        "teavm",
        "decorateException",
        (1, 0),
        |mut c: C<'_>, a, _| {
            let Some(set) = c
                .get_export("teavm.setJsException")
                .and_then(Extern::into_func)
            else {
                return Ok(());
            };
            let stack = Js::Stack(c.stack()).put(&mut c)?;
            set.call(&mut c, &[a[0], stack], &mut [])
        },
    );
}

/// Weak and soft references keep their objects until they are cleared, as Java allows: nothing obliges a collector to clear one, or to put it
/// into its queue. Here the value behind a reference is the object itself.
fn references(linker: &mut Linker<State>) {
    // The object, the reference, and its queue or null; of a string in the table of interned ones, the string and its entry.
    for (name, parameters) in [
        ("createWeakRef", 3),
        ("createStringWeakRef", 2),
        ("deref", 1),
        ("stringDeref", 1),
    ] {
        linker.func_any("teavm", name, (parameters, 1), |_: C<'_>, a, r| {
            let object = a[0].rooted();
            r[0] = match r[0] {
                Val::ExternRef(_) => Val::ExternRef(object),
                _ => Val::AnyRef(object),
            };
            Ok(())
        });
    }
}

fn values(linker: &mut Linker<State>) {
    let m = "teavmJso";
    linker.func_any(m, "stringBuiltinsSupported", (0, 1), |_: C<'_>, _, r| {
        r[0] = Val::I32(1);
        Ok(())
    });
    linker.func_any(m, "isUndefined", (1, 1), |mut c: C<'_>, a, r| {
        r[0] = Val::I32(matches!(Js::get(&mut c, &a[0])?, Some(Js::Undefined)) as i32);
        Ok(())
    });
    linker.func_any(m, "isPrimitive", (2, 1), |mut c: C<'_>, a, r| {
        let (value, wanted) = (Js::get(&mut c, &a[0])?, Js::str(&mut c, &a[1])?);
        r[0] = Val::I32(value.is_none_or(|v| v.type_of() == wanted) as i32);
        Ok(())
    });
    for name in [
        "wrapByte",
        "wrapShort",
        "wrapChar",
        "wrapInt",
        "wrapFloat",
        "wrapDouble",
    ] {
        linker.func_any(m, name, (1, 1), |c: C<'_>, a, r| {
            r[0] = Js::Number(number(&a[0])).put(c)?;
            Ok(())
        });
    }
    for name in [
        "unwrapByte",
        "unwrapShort",
        "unwrapChar",
        "unwrapInt",
        "unwrapFloat",
        "unwrapDouble",
        "unwrapLong",
    ] {
        linker.func_any(m, name, (1, 1), |mut c: C<'_>, a, r| {
            match Js::get(&mut c, &a[0])? {
                Some(Js::Number(n)) => result(&mut r[0], n),
                Some(Js::Long(n)) => r[0] = Val::I64(n),
                other => return Err(unsupported(format!("{other:?} as a number"))),
            }
            Ok(())
        });
    }
    linker.func_any(m, "wrapLong", (1, 1), |c: C<'_>, a, r| {
        r[0] = Js::Long(a[0].i64().unwrap_or(0)).put(c)?;
        Ok(())
    });
    linker.func_any(m, "wrapBoolean", (1, 1), |c: C<'_>, a, r| {
        r[0] = Js::Bool(a[0].i32() != Some(0)).put(c)?;
        Ok(())
    });
    linker.func_any(m, "unwrapBoolean", (1, 1), |mut c: C<'_>, a, r| {
        r[0] = Val::I32(matches!(Js::get(&mut c, &a[0])?, Some(Js::Bool(true))) as i32);
        Ok(())
    });
    linker.func_any(m, "wrapObject", (1, 1), |mut c: C<'_>, a, r| {
        if a[0].rooted().is_none() {
            r[0] = Val::AnyRef(None);
            return Ok(());
        }
        let create = c
            .get_export("teavm.jso.createWrapper")
            .and_then(Extern::into_func);
        let create = create
            .ok_or_else(|| Error::usage("the module exports no `teavm.jso.createWrapper`"))?;
        create.call(&mut c, &a[..1], &mut r[..1])
    });
    linker.func_any(m, "sameRef", (2, 1), |mut c: C<'_>, a, r| {
        let same = match (a[0].rooted(), a[1].rooted()) {
            (Some(x), Some(y)) => x.same(&y, &mut c)?,
            (x, y) => x.is_none() && y.is_none(),
        };
        r[0] = Val::I32(same as i32);
        Ok(())
    });
    linker.func_any(m, "getProperty", (2, 1), |mut c: C<'_>, a, r| {
        let (object, property) = (Js::get(&mut c, &a[0])?, Js::get(&mut c, &a[1])?);
        let value = match (&object, &property) {
            (Some(Js::Strings(s)), Some(Js::String(p)))
                if String::from_utf16_lossy(p) == "length" =>
            {
                Js::Number(s.len() as f64)
            }
            (Some(Js::Strings(s)), Some(Js::Number(i))) => s
                .get(*i as usize)
                .map_or(Js::Undefined, |s| Js::String(s.clone())),
            _ => return Err(unsupported(format!("property {property:?} of {object:?}"))),
        };
        r[0] = value.put(c)?;
        Ok(())
    });
}

fn functions(linker: &mut Linker<State>) {
    let m = "teavmJso";
    linker.func_any(m, "createClass", (0, 1), |c: C<'_>, _, r| {
        r[0] = Js::Class.put(c)?;
        Ok(())
    });
    linker.func_any(m, "defineFunction", (1, 1), |c: C<'_>, a, r| {
        let Val::FuncRef(Some(f)) = a[0] else {
            return Err(unsupported("a function that is none".into()));
        };
        r[0] = Js::Function(f).put(c)?;
        Ok(())
    });
    // Methods for JavaScript to call: there is no caller here.
    for name in [
        "defineMethod",
        "defineStaticMethod",
        "defineProperty",
        "defineStaticProperty",
    ] {
        linker.func_any(m, name, (0, 0), |_: C<'_>, _, _| Ok(()));
    }
    // Functions of JavaScript from their text. The library itself has the one that returns its argument, and the one that makes a date.
    linker.func_any(m, "createFunction1", (2, 1), |mut c: C<'_>, a, r| {
        let (name, body) = (Js::str(&mut c, &a[0])?, Js::str(&mut c, &a[1])?);
        let function = match body.trim() {
            body if body == format!("return {name};") => Js::Identity,
            body if body == format!("return new Date({name});") => Js::DateClass,
            body => return Err(unsupported(format!("function ({name}) {{ {body} }}"))),
        };
        r[0] = function.put(c)?;
        Ok(())
    });
    linker.func_any(m, "callFunction1", (2, 1), |mut c: C<'_>, a, r| {
        match (Js::get(&mut c, &a[0])?, Js::get(&mut c, &a[1])?) {
            (Some(Js::Identity), _) => r[0] = a[1],
            (Some(Js::DateClass), Some(Js::Number(millis))) => {
                r[0] = Js::date(millis as i64).put(c)?;
            }
            (other, _) => return Err(unsupported(format!("a call of {other:?}"))),
        }
        Ok(())
    });
    // The library asks whether what was thrown is JavaScript's own error, and for the text of whatever else it is.
    linker.func_any(m, "global", (1, 1), |mut c: C<'_>, a, r| {
        let name = Js::str(&mut c, &a[0])?;
        let class = match &name[..] {
            "Error" => Js::Class,
            "Date" => Js::DateClass,
            _ => return Err(unsupported(format!("the global `{name}`"))),
        };
        r[0] = class.put(c)?;
        Ok(())
    });
    for (name, null) in [("instanceOf", 0), ("instanceOfOrNull", 1)] {
        linker.func_any(m, name, (2, 1), move |mut c: C<'_>, a, r| {
            let (value, class) = (Js::get(&mut c, &a[0])?, Js::get(&mut c, &a[1])?);
            if !matches!(class, Some(Js::Class)) {
                return Err(unsupported(format!("instances of {class:?}")));
            }
            r[0] = Val::I32(if value.is_none() { null } else { 0 });
            Ok(())
        });
    }
    linker.func_any(m, "callMethod0", (2, 1), |mut c: C<'_>, a, r| {
        let (object, method) = (Js::get(&mut c, &a[0])?, Js::str(&mut c, &a[1])?);
        match object {
            Some(text @ Js::String(_)) if method == "toString" => {
                r[0] = text.put(c)?;
                Ok(())
            }
            Some(Js::Date(date)) => {
                r[0] = dates::get(&date, &method)?.put(c)?;
                Ok(())
            }
            other => Err(unsupported(format!("the method `{method}` of {other:?}"))),
        }
    });
    linker.func_any(m, "callMethod1", (3, 1), |mut c: C<'_>, a, r| {
        let (object, method) = (Js::get(&mut c, &a[0])?, Js::str(&mut c, &a[1])?);
        match (object, Js::get(&mut c, &a[2])?) {
            (Some(Js::Date(date)), Some(Js::Number(n))) => {
                r[0] = dates::set(&date, &method, n)?.put(c)?;
                Ok(())
            }
            (object, _) => Err(unsupported(format!("the method `{method}` of {object:?}"))),
        }
    });
    linker.func_any(m, "construct1", (2, 1), |mut c: C<'_>, a, r| {
        let (class, value) = (Js::get(&mut c, &a[0])?, Js::get(&mut c, &a[1])?);
        match (class, value) {
            (Some(Js::DateClass), Some(Js::Number(millis))) => {
                r[0] = Js::date(millis as i64).put(c)?;
                Ok(())
            }
            (class, value) => Err(unsupported(format!("a new {class:?} of {value:?}"))),
        }
    });
    for name in ["unwrapJavaObject", "javaObjectToJS"] {
        linker.func_any(m, name, (0, 0), move |_: C<'_>, _, _| {
            Err(unsupported(format!(
                "an object of Java as one of JavaScript ({name})"
            )))
        });
    }
}

/// The linear memory that the module imports, and where in it the program's own allocator begins.
fn memory(linker: &mut Linker<State>, store: &mut Store<State>, module: &Module) -> Result<Memory> {
    const MOST_BYTES: i32 = i32::MAX;
    let (data, min) = memory_requirements(module);
    let heap_offset = data.checked_next_multiple_of(8).ok_or_else(|| {
        Error::usage(format!(
            "the module asks for {data} bytes of data in its memory"
        ))
    })?;
    let declared = module.inner.imports.iter().find_map(|i| match &i.ty {
        crate::module::ExternType::Memory(m) if i.module == "env" && i.name == "memory" => {
            u32::try_from(m.min_pages).ok()
        }
        _ => None,
    });
    let pages = heap_offset
        .div_ceil(65536)
        .max(min)
        .max(declared.unwrap_or(0))
        .max(1);
    let memory = Memory::new(&mut *store, pages, Some(1 << 15))?;
    let constant =
        |store: &mut Store<State>, v: i32| Global::new(store, ValType::I32, false, Val::I32(v));
    let offset = constant(store, heap_offset as i32)?;
    let most = constant(store, MOST_BYTES)?;
    linker.define("env", "memory", memory);
    linker
        .define("teavmMemory", "heapOffset", offset)
        .define("teavmMemory", "maxSize", most);
    linker.func_any(
        "teavmMemory",
        "notifyHeapResized",
        (0, 0),
        |_: C<'_>, _, _| Ok(()),
    );
    // The library of `programs/host` uses WASI for functions that a browser lacks, through the same memory.
    wasi::link(linker, Some(memory));
    Ok(memory)
}

/// `dataSize`, in bytes, and `min`, in pages, of the custom section `teavm.memoryRequirements`, a flat JSON object of numbers.
fn memory_requirements(module: &Module) -> (u32, u32) {
    let section = module
        .custom_section("teavm.memoryRequirements")
        .unwrap_or_default();
    let text = String::from_utf8_lossy(section);
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("\"{name}\""))?;
        let digits: String = rest
            .trim_start_matches([':', ' '])
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    };
    (field("dataSize").unwrap_or(0), field("min").unwrap_or(0))
}

/// Runs a program's main function to its end; the process's exit code.
///
/// An exception that escapes is printed with its stack on the program's standard error; the code is 1 then.
///
/// # Errors
/// If the module is no program, lacks imports, or traps.
pub fn run_main(store: &mut Store<State>, module: &Module, args: &[String]) -> Result<i32> {
    start(store, module, args).map(|started| started.code)
}

/// A program whose main function has come back, and whose exports may be called.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// The main function's exit code.
    pub code: i32,
    /// The program.
    pub instance: Instance,
    /// Its linear memory.
    pub memory: Memory,
}

/// The same as [`run_main`], for a program whose exports are called afterwards.
///
/// # Errors
/// As [`run_main`].
pub fn start(store: &mut Store<State>, module: &Module, args: &[String]) -> Result<Started> {
    let mut linker = Linker::new(module.engine());
    let memory = link(&mut linker, store, module)?;
    let instance = linker.instantiate(&mut *store, module)?;
    let main = instance
        .get_global(&mut *store, "main")
        .ok_or_else(|| Error::usage("the program has no main function"))?;
    let main = main.get(&mut *store)?;
    let Some(Js::Function(main)) = Js::get(store, &main)? else {
        return Err(Error::usage("the program's `main` is no function"));
    };
    let args =
        Js::Strings(args.iter().map(|a| a.encode_utf16().collect()).collect()).put(&mut *store)?;
    let mut results = vec![Val::I32(0); main.ty(&mut *store)?.results.len()];
    let outcome = main.call(&mut *store, &[args], &mut results);
    let code = match exit_code(store, outcome) {
        Err(Error::Exception { exception, .. }) => {
            let text = describe(store, instance, exception)?;
            let err = &mut store.data_mut().console.err;
            err.text(&text).map_err(err_failed)?;
            Ok(1)
        }
        other => other,
    }?;
    Ok(Started {
        code,
        instance,
        memory,
    })
}

/// An uncaught exception as Java prints it.
fn describe(store: &mut Store<State>, instance: Instance, exception: Rooted) -> Result<String> {
    let object = exception.field(&mut *store, 1)?;
    let call = |store: &mut Store<State>, name: &str, arg: Val| -> Result<Option<Val>> {
        let Some(f) = instance.get_func(&mut *store, name) else {
            return Ok(None);
        };
        let mut results = [Val::I32(0)];
        f.call(store, &[arg], &mut results)?;
        Ok(results[0].rooted().map(|_| results[0]))
    };
    let class = match object.rooted() {
        Some(o) => o
            .type_name(&mut *store)?
            .unwrap_or_else(|| "an exception".into()),
        None => "an exception".into(),
    };
    let mut text = format!("Exception in thread \"main\" {class}");
    if let Some(message) = call(store, "teavm.exceptionMessage", object)?
        && let Some(message) = call(store, "teavm.stringToJs", message)?
    {
        text += &format!(": {}", Js::str(store, &message)?);
    }
    text.push('\n');
    if let Some(stack) = call(store, "teavm.getJsException", object)?
        && let Some(Js::Stack(stack)) = Js::get(store, &stack)?
    {
        let frames = store.frames_at(&stack);
        // The constructors of the exception itself are no news.
        for frame in frames.iter().skip_while(|f| {
            f.function.contains("::<init>") || f.function.contains("::fillInStackTrace")
        }) {
            let function = frame.function.trim_matches('`').replace("::", ".");
            match &frame.line {
                Some(line) => text += &format!("\tat {function}({line})\n"),
                None => text += &format!("\tat {function}\n"),
            }
        }
    }
    Ok(text)
}
