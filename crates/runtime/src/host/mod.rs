//! What programs of known toolchains import, and how their main functions are called.

mod console;
mod js;
mod js_string;
pub mod teavm;

pub use console::{Console, Output};
