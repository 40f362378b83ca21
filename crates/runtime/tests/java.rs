//! Java programs from `programs/dist`: they print what the JDK prints for the same sources.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use varve_runtime::host::{Console, Output, teavm};
use varve_runtime::*;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, b: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(b);
        Ok(b.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Output, errors and exit code.
fn run(config: Config, name: &str, args: &[&str]) -> (String, String, i32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../programs/dist")
        .join(name);
    let engine = Engine::new(config);
    let module = Module::new(&engine, &std::fs::read(path).unwrap()).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let console = Console {
        out: Output::new(Box::new(out.clone())),
        err: Output::new(Box::new(err.clone())),
    };
    let mut store = Store::new(&engine, teavm::State { console }).unwrap();
    let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    let code = teavm::run_main(&mut store, &module, &args)
        .unwrap_or_else(|e| panic!("{e}\n{:?}", e.trap()));
    (out.text(), err.text(), code)
}

#[test]
fn hello_greets_its_arguments() {
    assert_eq!(
        run(Config::default(), "hello.wasm", &[]).0,
        "Hello, world!\n"
    );
    assert_eq!(
        run(Config::default(), "hello.wasm", &["Ada", "Bob 🌍"]).0,
        "Hello, Ada and Bob 🌍!\n"
    );
}

#[test]
fn collections_strings_streams_and_exceptions_are_those_of_the_jdk() {
    let (out, err, code) = run(Config::default(), "collections.wasm", &["20000"]);
    assert_eq!(
        (out.as_str(), err.as_str(), code),
        (include_str!("java/collections.txt"), "", 0)
    );
}

#[test]
fn and_in_a_small_heap_with_many_collections() {
    let config = Config {
        heap_max: 24 << 20,
        nursery: 256 << 10,
        ..Config::default()
    };
    assert_eq!(
        run(config, "collections.wasm", &["20000"]).0,
        include_str!("java/collections.txt")
    );
}

#[test]
fn an_exception_that_escapes_prints_its_stack_and_fails() {
    let (_, err, code) = run(Config::default(), "collections.wasm", &["100", "fail"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("Exception in thread \"main\" java.lang.IllegalStateException: asked to fail\n\tat varve.collections.Collections.main"), "{err}");
}
