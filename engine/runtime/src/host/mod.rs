//! What programs of known toolchains import, and how their main functions are called.

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
    /// What it may see of the system: arguments, environment, directories.
    pub wasi: Wasi,
    /// What its clocks show.
    pub clock: Clock,
}

/// The exit code of a program whose main function came back, or asked to end. What it has printed is written out in any case.
fn exit_code(store: &mut Store<State>, outcome: Result<()>) -> Result<i32> {
    let flushed = store.data_mut().console.flush();
    match outcome {
        Ok(()) => flushed.map(|()| 0),
        Err(Error::Exit(code)) => flushed.map(|()| code),
        Err(e) => Err(e),
    }
}
