//! Any bytes are a module, of which every function compiles, or are refused in one line with an offset.
//!
//! Nothing is run, since a program may run for ever: a start function is left out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::{empty, sink};
use varve_runtime::host::{Console, Input, Output, State, Wasi, teavm, wasi};
use varve_runtime::{Clock, Config, Engine, Error, Linker, Module, Result, Store};

fuzz_target!(|bytes: &[u8]| {
    let engine = Engine::new(Config {
        heap_max: 64 << 20,
        ..Config::default()
    });
    match Module::new(&engine, bytes) {
        Ok(_) => {
            let module = Module::new(&engine, &without_start(bytes))
                .expect("a start function can be left out");
            match compile(&engine, &module) {
                Ok(()) => {}
                Err(e @ Error::Internal(_)) => panic!("{e}"),
                Err(e) => in_one_line(&e),
            }
        }
        Err(e) => {
            let (Error::Invalid { offset, .. } | Error::Unsupported { offset, .. }) = e else {
                panic!("{e}");
            };
            assert!(offset <= bytes.len() as u64, "{e}");
            in_one_line(&e);
        }
    }
});

/// Compiles everything, with the imports that programs have.
fn compile(engine: &Engine, module: &Module) -> Result<()> {
    let state = State {
        console: Console {
            input: Input::new(Box::new(empty())),
            out: Output::new(Box::new(sink())),
            err: Output::new(Box::new(sink())),
        },
        wasi: Wasi::new(),
        clock: Clock::default(),
    };
    let mut store = Store::new(engine, state)?;
    let mut linker = Linker::new(engine);
    wasi::link(&mut linker, None);
    teavm::link(&mut linker, &mut store, module)?;
    linker.instantiate(&mut store, module)?.compile(&mut store)
}

fn in_one_line(e: &Error) {
    assert!(!e.to_string().contains('\n'), "{e}");
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
