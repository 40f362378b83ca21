//! Common parts of the live tests: compiling a C program, and saying why a test is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use varve_live::{LiveOptions, Placer};

/// Small enough that random frames collide in it, and that the test machine has many frames for each bin.
pub const CACHE_BYTES: u64 = 64 << 20;

/// Options with a load table of the test's own, so that tests and other programs do not meet.
pub fn options(table_dir: &Path) -> LiveOptions {
    LiveOptions {
        table_dir: table_dir.into(),
        ..LiveOptions::new(CACHE_BYTES)
    }
}

/// A directory for a test's load table; `None`, with the reason printed, when this process may not place pages.
pub fn allowed() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().ok()?;
    match Placer::new(&options(dir.path())) {
        Ok(_) => Some(dir),
        Err(why) => {
            varve_skip::skip!("{why}");
            None
        }
    }
}

/// Compiles `tests/programs/<name>.c` into `dir`; `None`, with the reason printed, without a compiler.
#[allow(dead_code)]
pub fn program(name: &str, dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let out = dir.join(name);
    let compiled = Command::new("cc")
        .args(["-O1", "-w", "-pthread", "-o"])
        .arg(&out)
        .arg(source)
        .status();
    match compiled {
        Ok(status) if status.success() => Some(out),
        _ => {
            varve_skip::skip!("no C compiler");
            None
        }
    }
}
