//! `varve cc` and `varve c++`.

use crate::ui::{Done, Failure, wrong};
use std::ffi::OsString;
use std::process::ExitCode;
use varve_trace::host::{Language, compile};

pub fn cc(language: Language, arguments: &[OsString]) -> Done {
    let status = compile(language, arguments).map_err(wrong)?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        // The compiler has said what is wrong.
        Some(code) => Err(Failure::Quiet(code.clamp(1, 255) as u8)),
        None => Err(wrong("the compiler was killed")),
    }
}
