//! The imports of programs of known toolchains, and the call of their main functions.

mod arguments;
mod console;
mod dates;
pub mod durable;
mod js;
pub mod js_string;
pub mod placement;
pub mod teavm;
pub mod toolchains;
pub mod wasi;

pub use console::{Console, Input, Output};
pub use wasi::Wasi;

use crate::{Clock, Error, Result, Store};

/// The host's state of a program.
pub struct State {
    /// Where its input comes from, and its output goes.
    pub console: Console,
    /// The parts of the system that it may access: arguments, environment, directories.
    pub wasi: Wasi,
    /// The source of its clocks.
    pub clock: Clock,
}

/// The exit code of a program whose main function came back, or asked to end. Its output is flushed in any case.
fn exit_code(store: &mut Store<State>, outcome: Result<()>) -> Result<i32> {
    let flushed = store.data_mut().console.flush();
    match outcome {
        Ok(()) => flushed.map(|()| 0),
        Err(Error::Exit(code)) => flushed.map(|()| code),
        Err(e) => Err(e),
    }
}
