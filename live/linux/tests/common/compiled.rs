//! A compiled C program whose allocation sites are known: where its calls return to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use varve_live::objects::FrameRef;

/// A compiled program and where its calls return to.
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// By function and what it calls.
    returns: BTreeMap<(String, String), u64>,
    _dir: tempfile::TempDir,
}

impl Program {
    /// Compiles `tests/programs/NAME.c`; `None`, with the reason printed, without a compiler.
    pub fn new(name: &str, flags: &[&str]) -> Option<Program> {
        let dir = tempfile::tempdir().ok()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
        let path = dir.path().join(name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-w", "-pthread"])
            .args(flags)
            .arg("-o")
            .arg(&path)
            .arg(source);
        let compiled = gcc.status().is_ok_and(|s| s.success());
        let listed = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(&path)
            .output();
        let (true, Ok(listed)) = (compiled, listed) else {
            varve_skip::skip!("no gcc and binutils");
            return None;
        };
        let returns = returns(&String::from_utf8_lossy(&listed.stdout));
        Some(Program {
            path,
            returns,
            _dir: dir,
        })
    }

    /// The frame of a function that called another.
    pub fn frame(&self, function: &str, callee: &str) -> FrameRef {
        let key = (function.to_owned(), callee.to_owned());
        let offset = *self
            .returns
            .get(&key)
            .unwrap_or_else(|| panic!("{key:?} of {:?}", self.returns.keys()));
        let module = self.path.file_name().unwrap().to_str().unwrap().to_owned();
        FrameRef {
            module,
            build_id: String::new(),
            offset,
        }
    }
}

/// Return addresses from a disassembly: the line behind `1189: call 1050 <malloc@plt>` begins with one.
fn returns(listing: &str) -> BTreeMap<(String, String), u64> {
    let mut found = BTreeMap::new();
    let (mut function, mut called) = (String::new(), None);
    for line in listing.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
            function = name.1.to_owned();
            continue;
        }
        let Some((address, instruction)) = line.split_once(':') else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else {
            continue;
        };
        if let Some(callee) = called.take() {
            found.entry((function.clone(), callee)).or_insert(address);
        }
        if instruction.contains("call") {
            let name = instruction
                .split_once('<')
                .map(|(_, n)| n.trim_end_matches('>'));
            called = name.map(|n| n.split('@').next().unwrap_or(n).to_owned());
        }
    }
    found
}
