//! `varve cc` and `varve c++`: the user's own compiler, with the probe in what it makes.
//!
//! Sources are compiled with `-fsanitize=thread`, whose calls before every access are what the probe implements. The
//! compiler's command line stays as it is, so that it does all that the compiler does. Where it links, the linker finds
//! an empty library in place of the sanitizer's own, and the probe as one more object.

mod compiler;
mod line;
mod wrapped;

use super::command::MARK;
use super::error::RecordError;
use compiler::{Compiler, Words};
use line::Line;
use object::{Object, ObjectSymbol};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use wrapped::WRAPPED;

const PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tsan.o"));

/// Which compiler is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `$CC`, or `cc`.
    C,
    /// `$CXX`, or `c++`.
    Cpp,
}

/// Runs the compiler with `args`, as the user would have run it.
///
/// # Errors
/// The compiler does not exist, or is this one again; or the command line asks for a program that cannot have the
/// probe, such as a static one. Errors in the program are the compiler's to report: they are in its exit status.
pub fn compile(language: Language, args: &[OsString]) -> Result<ExitStatus, RecordError> {
    if PROBE.is_empty() {
        return Err(RecordError::Host);
    }
    let compiler = Compiler::find(language)?;
    let line = Line::of(compiler.own_args().iter().chain(args));
    if let Some(why) = line.refused {
        return Err(RecordError::Compiler(why.into()));
    }
    if !line.inputs {
        return compiler.run(args.to_vec());
    }
    let mut words: Words = compiler.instrumented();
    if line.compiles_only || line.headers_only || line.relocatable {
        words.extend_from_slice(args);
        return compiler.run(words);
    }
    let io = |source| RecordError::Io {
        path: std::env::temp_dir(),
        source,
    };
    let folder = tempfile::Builder::new()
        .prefix("varve-cc-")
        .tempdir()
        .map_err(io)?;
    let probe = folder.path().join("varve-probe.o");
    fs::write(&probe, PROBE).map_err(io)?;
    words.extend(compiler.without_runtime(folder.path()).map_err(io)?);
    words.extend_from_slice(args);
    if line.shared {
        words.extend(compiler.stub(folder.path(), &functions()));
    } else {
        words.extend(with_probe(&probe));
    }
    compiler.run(words)
}

/// Functions of the probe that compiled code calls.
fn functions() -> Vec<String> {
    // In memory of its own, which is aligned as the reader wants it.
    let bytes = PROBE.to_vec();
    let file = object::File::parse(&*bytes).ok();
    let symbols = file.iter().flat_map(|file| file.symbols());
    let named = symbols.filter(|symbol| symbol.is_definition() && symbol.is_global());
    let names = named.filter_map(|symbol| symbol.name().ok());
    names
        .filter(|name| name.starts_with("__tsan_"))
        .map(String::from)
        .collect()
}

/// Words that link a program with the probe and the wrapped functions.
fn with_probe(probe: &Path) -> Words {
    // The language of what follows is the linker's again.
    let mut words: Words = vec!["-x".into(), "none".into(), probe.into()];
    words.extend(
        WRAPPED
            .iter()
            .map(|name| format!("-Wl,--wrap={name}").into()),
    );
    words.extend([
        "-Wl,--export-dynamic-symbol=__tsan_*".into(),
        "-pthread".into(),
    ]);
    words
}

const _: () = assert!(MARK.len() > 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_has_the_functions_that_compiled_code_calls() {
        let functions = functions();
        for name in [
            "__tsan_init",
            "__tsan_read4",
            "__tsan_write8",
            "__tsan_func_entry",
        ] {
            assert!(functions.iter().any(|function| function == name), "{name}");
        }
    }
}
