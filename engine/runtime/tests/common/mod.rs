//! Streams of programs under test.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use varve_runtime::host::{Console, Input, Output};
use varve_runtime::{Error, Result};

/// The output of a program.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

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
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

pub fn console(input: impl Read + Send + 'static, out: &Shared, err: &Shared) -> Console {
    Console {
        input: Input::new(Box::new(input)),
        out: Output::new(Box::new(out.clone())),
        err: Output::new(Box::new(err.clone())),
    }
}

/// The exit code and the last line of standard error, as the command line has them: a program that fails has code 1.
pub fn ended(outcome: Result<i32>) -> (i32, String) {
    match outcome {
        Ok(code) => (code, String::new()),
        Err(e @ (Error::Trap(_) | Error::Exception { .. })) => (1, e.to_string()),
        Err(e) => panic!("{e}"),
    }
}
