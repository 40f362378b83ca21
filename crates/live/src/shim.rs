//! The preloaded library, carried inside this one.

use std::io::{self, Write};
use std::path::Path;

/// The shared object that the build script has made from `shim/`.
static SHIM: &[u8] = include_bytes!(env!("VARVE_LIVE_SHIM"));

/// Writes the shim to `path`, for `LD_PRELOAD`.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write(path: &Path) -> io::Result<()> {
    io::BufWriter::new(std::fs::File::create(path)?).write_all(SHIM)
}
