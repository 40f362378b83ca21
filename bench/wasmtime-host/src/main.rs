//! Runs a program of WebAssembly on wasmtime: `wasmtime-host [--collector copying|drc|null] MODULE.wasm [ARGS..]`.
//!
//! A module that TeaVM made gets what it imports, as `varve run` gives it; any other must be a WASI command. It is only as much of a host
//! as the benchmarks need: no files, no standard input.

mod js;
mod js_string;
mod teavm;
mod wasi;

use std::process::ExitCode;
use wasmtime::{Collector, Config, Engine, Error, Linker, Module, Result, Store};

/// Bytes of stack that a program may use; the thread has some more.
const STACK: usize = 32 << 20;

/// The host's state of a program.
#[derive(Default)]
struct State {
    arguments: Vec<String>,
    console: teavm::Console,
}

/// The program asked to end.
#[derive(Debug)]
struct Exit(i32);

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program ended with {}", self.0)
    }
}

impl std::error::Error for Exit {}

fn main() -> ExitCode {
    let run = std::thread::Builder::new().stack_size(2 * STACK).spawn(run);
    let outcome = run
        .map_err(Error::from)
        .and_then(|t| t.join().map_err(|_| Error::msg("the host panicked"))?);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => match e.downcast_ref::<Exit>() {
            Some(Exit(code)) => ExitCode::from(*code as u8),
            None => {
                eprintln!("wasmtime-host: {e:?}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut config = Config::new();
    config
        .wasm_gc(true)
        .wasm_function_references(true)
        .wasm_exceptions(true)
        .wasm_tail_call(true);
    // Nothing is asynchronous here, but the one may not be less than the other.
    config.max_wasm_stack(STACK).async_stack_size(STACK);
    if arguments.first().is_some_and(|a| a == "--collector") {
        let name = arguments.get(1).map_or("", |s| s.as_str());
        config.collector(match name {
            "copying" => Collector::Copying,
            "drc" => Collector::DeferredReferenceCounting,
            "null" => Collector::Null,
            _ => {
                return Err(Error::msg(format!(
                    "no collector `{name}`: copying, drc, null"
                )));
            }
        });
        arguments.drain(..2);
    }
    let Some(file) = arguments.first().cloned() else {
        return Err(Error::msg(
            "usage: wasmtime-host [--collector copying|drc|null] MODULE.wasm [ARGS..]",
        ));
    };
    let bytes = std::fs::read(&file).map_err(|e| Error::msg(format!("{file}: {e}")))?;
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, &bytes)?;
    let mut linker = Linker::new(&engine);
    let state = State {
        arguments,
        ..State::default()
    };
    let mut store = Store::new(&engine, state);
    let outcome = if module.imports().any(|i| i.module().starts_with("teavm")) {
        teavm::run_main(&mut linker, &mut store, &module, &bytes)
    } else {
        wasi::link(&mut linker, None)?;
        linker.define_unknown_imports_as_traps(&module)?;
        let instance = linker.instantiate(&mut store, &module)?;
        instance
            .get_typed_func::<(), ()>(&mut store, "_start")?
            .call(&mut store, ())
    };
    store.data_mut().console.flush();
    outcome
}
