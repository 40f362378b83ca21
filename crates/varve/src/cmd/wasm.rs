//! `varve run module.wasm`: runs a program of WebAssembly on the engine.

use super::{managed, nodes, plans};
use crate::args::{DEFAULT_MACHINE, RunArgs};
use crate::ui::{Done, Failure, failed, wrong};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use varve_runtime::host::{Console, State, Wasi, teavm, wasi};
use varve_runtime::{Clock, Config, Engine, Error, Linker, Module, Store, Val, ValType};

/// Whether the file begins as modules in binary form do, or is called like one.
pub fn is_wasm(file: &str) -> bool {
    let mut magic = [0; 4];
    let begins = File::open(file).and_then(|mut f| f.read_exact(&mut magic));
    (begins.is_ok() && magic == *b"\0asm") || file.ends_with(".wasm")
}

pub fn run(a: &RunArgs, file: &str) -> Done {
    let on_model = a.machine != DEFAULT_MACHINE;
    if let Some((option, why)) = refused(a, on_model) {
        return Err(wrong(format!("{file}: {option} {why}: leave it out")));
    }
    let mut config = Config::default();
    config.heap_max = a.heap_max.map_or(config.heap_max, |b| b.0);
    config.nursery = a
        .nursery
        .map_or(config.nursery, |b| b.0)
        .min(config.heap_max);
    config.tier = a.tier.unwrap_or_default();
    let bytes = std::fs::read(file).map_err(|e| {
        wrong(format!(
            "{file}: {e}; name a WebAssembly module, such as those in programs/dist"
        ))
    })?;
    if on_model {
        return managed::run(a, file, config, &bytes);
    }
    config.plan = a.plan.as_deref().map(plans::named).transpose()?;
    let placed = nodes::memory(a, file)?;
    let engine = Engine::new(config);
    let module = Module::new(&engine, &bytes).map_err(|e| of(file, &e))?;
    let mut store = state(file, a, Console::inherit())
        .and_then(|state| nodes::store(&engine, state, placed.clone()))
        .map_err(|e| of(file, &e))?;
    if let Some(to) = &a.gc_log {
        log_collections(&mut store, to)?;
    }
    let outcome = start(a, &mut store, &module);
    if a.gc_stats {
        // A program that failed is the one whose collections are looked at.
        eprintln!("{}", store.gc_stats());
        if a.plan.is_some() && placed.is_none() {
            eprintln!("{}", plans::spaces(&store.gc_spaces()));
        }
    }
    // A program that failed has its own line.
    if let Some(memory) = placed.filter(|_| a.gc_stats || outcome.is_ok()) {
        nodes::tell(&store, &memory, a.gc_stats);
    }
    outcome.map_err(|e| of(file, &e))
}

/// Runs the program's main function, or the export that is asked for.
pub fn start(a: &RunArgs, store: &mut Store<State>, module: &Module) -> Result<ExitCode, Error> {
    let arguments: Vec<String> = a
        .command
        .iter()
        .map(|w| w.to_string_lossy().into_owned())
        .collect();
    match &a.invoke {
        Some(name) => invoke(store, module, name, &arguments),
        None => main(store, module, &arguments),
    }
}

/// One line per collection on standard error, or in a file.
fn log_collections(store: &mut Store<State>, to: &Path) -> Result<(), Failure> {
    let mut out: Box<dyn Write + Send> = match to.as_os_str() == "-" {
        true => Box::new(std::io::stderr()),
        false => Box::new(File::create(to).map_err(|e| {
            wrong(format!(
                "{}: {e}; name a file that can be written for --gc-log",
                to.display()
            ))
        })?),
    };
    let to = to.to_path_buf();
    let mut failed = false;
    store.on_collection(move |record| {
        // The program goes on without its log, and somebody is told, once.
        if let Err(e) = writeln!(out, "{record}")
            && !std::mem::replace(&mut failed, true)
        {
            eprintln!("{}: {e}; the log of collections ends here", to.display());
        }
    });
    Ok(())
}

/// An option that was given, not as its default says, and means nothing here; and why.
fn refused(a: &RunArgs, on_model: bool) -> Option<(&'static str, &'static str)> {
    const NEVER: &str = "means nothing to a WebAssembly program";
    const MODEL: &str = "means something on a modelled machine only, such as --machine optane-6242";
    const REAL: &str = "means something without a modelled machine only";
    [
        (a.policy != "all", "--policy", NEVER),
        (a.scale.is_some(), "--scale", NEVER),
        (a.cores != 0, "--cores", NEVER),
        (a.until.is_some(), "--until", NEVER),
        (a.out.is_some(), "--out", NEVER),
        (a.jobs != 0, "--jobs", NEVER),
        (!on_model && a.page.is_some(), "--page", MODEL),
        (!on_model && a.seed != 1, "--seed", MODEL),
        (!on_model && a.json, "--json", MODEL),
        (a.bins.is_some(), "--bins", NEVER),
        (a.ways != 1, "--ways", NEVER),
        (a.count_only, "--count-only", NEVER),
        (on_model && a.live, "--live", REAL),
        (on_model && a.nodes.is_some(), "--nodes", REAL),
        (on_model && a.tier.is_some(), "--tier", REAL),
        (on_model && a.gc_log.is_some(), "--gc-log", REAL),
        (on_model && a.gc_stats, "--gc-stats", REAL),
    ]
    .into_iter()
    .find_map(|(given, name, why)| given.then_some((name, why)))
}

/// Wrong input has exit code 2, a program that fails 1.
pub fn of(file: &str, e: &Error) -> Failure {
    let line = format!("{file}: {e}");
    match e {
        Error::Trap(_)
        | Error::Exception { .. }
        | Error::Host(_)
        | Error::Output { .. }
        | Error::System(_) => failed(line),
        _ => wrong(line),
    }
}

/// The program sees the environment and the files as every process does.
pub fn state(file: &str, a: &RunArgs, console: Console) -> Result<State, Error> {
    let mut wasi = Wasi::new().arg(file).inherit_env();
    if let Ok(here) = std::env::current_dir() {
        wasi = wasi.env("PWD", here.into_os_string().into_encoded_bytes());
    }
    for word in &a.command {
        wasi = wasi.arg(word.as_encoded_bytes());
    }
    Ok(State {
        console,
        wasi: wasi.preopen(Path::new("/"), "/")?,
        clock: Clock::default(),
    })
}

fn main(
    store: &mut Store<State>,
    module: &Module,
    arguments: &[String],
) -> Result<ExitCode, Error> {
    let code = if teavm::is_teavm(module) {
        teavm::run_main(store, module, arguments)?
    } else if wasi::is_command(module) {
        wasi::run_command(store, module)?
    } else {
        return Err(Error::Usage(format!(
            "the module is no program of a known toolchain (TeaVM, WASI); call an export with --invoke NAME: it has {}",
            names(module)
        )));
    };
    // As everywhere, what does not fit a byte loses its upper bits.
    Ok(ExitCode::from(code as u8))
}

fn names(module: &Module) -> String {
    let names: Vec<_> = module
        .exports()
        .take(20)
        .map(|n| format!("`{n}`"))
        .collect();
    match names.len() {
        0 => "none".into(),
        _ => names.join(", "),
    }
}

fn invoke(
    store: &mut Store<State>,
    module: &Module,
    name: &str,
    arguments: &[String],
) -> Result<ExitCode, Error> {
    let mut linker = Linker::new(module.engine());
    if teavm::is_teavm(module) {
        teavm::link(&mut linker, &mut *store, module)?;
    } else if wasi::is_used(module) {
        wasi::link(&mut linker, None);
    }
    let instance = linker.instantiate(&mut *store, module)?;
    let func = instance.get_func(&mut *store, name).ok_or_else(|| {
        Error::Usage(format!(
            "the module exports no function `{name}`; it exports {}",
            names(module)
        ))
    })?;
    let ty = func.ty(&mut *store)?;
    if ty.params.len() != arguments.len() {
        return Err(Error::Usage(format!(
            "`{name}` has type {ty}: give {} arguments after `--`, not {}",
            ty.params.len(),
            arguments.len()
        )));
    }
    let values = ty
        .params
        .iter()
        .zip(arguments)
        .map(|(&t, a)| value(t, a))
        .collect::<Result<Vec<_>, _>>()?;
    let mut results: Vec<Val> = ty.results.iter().map(|&t| Val::zero(t)).collect();
    let outcome = func.call(&mut *store, &values, &mut results);
    store.data_mut().console.flush()?;
    if let Err(Error::Exit(code)) = outcome {
        return Ok(ExitCode::from(code as u8));
    }
    outcome?;
    let lines: String = results.iter().map(|r| text(r) + "\n").collect();
    let out = &mut store.data_mut().console.out;
    out.text(&lines).map_err(|error| Error::Output {
        stream: "standard output",
        error,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// An argument as a value of a type.
fn value(ty: ValType, text: &str) -> Result<Val, Error> {
    let wrong = |_| Error::Usage(format!("argument `{text}` is no {ty}"));
    match ty {
        // Unsigned numbers mean the same bits.
        ValType::I32 => text
            .parse()
            .or_else(|_| text.parse::<u32>().map(|v| v as i32))
            .map(Val::I32)
            .map_err(|_| wrong(())),
        ValType::I64 => text
            .parse()
            .or_else(|_| text.parse::<u64>().map(|v| v as i64))
            .map(Val::I64)
            .map_err(|_| wrong(())),
        ValType::F32 => text.parse().map(Val::f32).map_err(|_| wrong(())),
        ValType::F64 => text.parse().map(Val::f64).map_err(|_| wrong(())),
        ValType::Ref(_) if text == "null" => Ok(Val::zero(ty)),
        ValType::Ref(_) => Err(Error::Usage(format!(
            "argument `{text}`: of type {ty}, only `null` can be given"
        ))),
    }
}

fn text(v: &Val) -> String {
    match v {
        Val::I32(v) => v.to_string(),
        Val::I64(v) => v.to_string(),
        Val::F32(b) => f32::from_bits(*b).to_string(),
        Val::F64(b) => f64::from_bits(*b).to_string(),
        Val::FuncRef(None) | Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None) => {
            "null".into()
        }
        Val::FuncRef(_) => "funcref".into(),
        Val::AnyRef(_) => "anyref".into(),
        Val::ExternRef(_) => "externref".into(),
        Val::ExnRef(_) => "exnref".into(),
    }
}
