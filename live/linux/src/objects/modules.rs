//! The files of a program's modules: its own, and the libraries that the dynamic linker would load.

use super::map::base_name;
use crate::program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds files by the names of modules.
pub struct Modules<'a> {
    program: &'a Path,
    /// Files that the caller named.
    given: &'a [PathBuf],
    /// The linker's answer; asked once.
    linked: Option<Vec<PathBuf>>,
}

impl<'a> Modules<'a> {
    /// Of a program's file, and of files that it may load besides.
    pub fn new(program: &'a Path, given: &'a [PathBuf]) -> Modules<'a> {
        Modules {
            program,
            given,
            linked: None,
        }
    }

    /// The file of a module, a name or a path.
    pub fn find(&mut self, module: &str) -> Option<PathBuf> {
        let path = Path::new(module);
        if path.components().count() > 1 && path.is_file() {
            return Some(path.into());
        }
        let named = |file: &&PathBuf| file.file_name().is_some_and(|n| n == base_name(module));
        let real = self.program.canonicalize().ok();
        if let Some(own) = real.iter().find(named) {
            return Some(own.clone());
        }
        if let Some(given) = self.given.iter().find(named) {
            return Some(given.clone());
        }
        let linked = self
            .linked
            .get_or_insert_with(|| linked(self.program).unwrap_or_default());
        linked.iter().find(named).cloned()
    }
}

/// Has the program's own dynamic linker list what it would load. Nothing of the program is executed.
fn linked(program: &Path) -> Option<Vec<PathBuf>> {
    let linker = program::interpreter_of(program)?;
    let listed = Command::new(linker)
        .arg("--list")
        .arg(program)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&listed.stdout);
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, and the linker itself without an arrow.
    let files = text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Some(files.map(PathBuf::from).collect())
}
