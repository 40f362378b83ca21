//! `program FILE.wasm ARGUMENTS..`: runs a program of a known toolchain on the engine alone, without the rest of Varve. The shortest
//! way to measure a change of the compilers; with `PERF_MAP=1`, `perf report` has names of compiled functions, and with
//! `JITDUMP=FOLDER`, `perf inject --jit` has their code. `GC_THREADS=N`
//! has N threads collect.

use std::error::Error;
use std::sync::Arc;
use varve_runtime::host::{Console, State, Wasi, teavm, wasi};
use varve_runtime::{Config, Engine, JitDump, Module, PerfMap, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args
        .next()
        .ok_or("usage: program FILE.wasm [ARGUMENTS..]")?;
    let args: Vec<String> = args.collect();
    let mut config = Config::default();
    if let Ok(threads) = std::env::var("GC_THREADS") {
        config.gc_threads = Some(threads.parse()?);
    }
    if std::env::var_os("PERF_MAP").is_some() {
        config.perf_map = Some(Arc::new(PerfMap::create()?));
    }
    if let Some(folder) = std::env::var_os("JITDUMP") {
        config.jit_dump = Some(Arc::new(JitDump::create(folder.as_ref())?));
    }
    let engine = Engine::new(config);
    let module = Module::new(&engine, &std::fs::read(&file)?)?;
    let state = State {
        console: Console::inherit(),
        wasi: Wasi::new().arg(file),
        clock: Default::default(),
    };
    let mut store = Store::new(&engine, state)?;
    let code = match teavm::is_teavm(&module) {
        true => teavm::run_main(&mut store, &module, &args)?,
        false => wasi::run_command(&mut store, &module)?,
    };
    std::process::exit(code)
}
