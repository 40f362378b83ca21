//! The preloaded libraries, carried inside this one.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// The shared object that the build script has made from `shim/`.
static SHIM: &[u8] = include_bytes!(env!("VARVE_LIVE_SHIM"));

/// Writes the shim to `path`, for `LD_PRELOAD`.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write(path: &Path) -> io::Result<()> {
    io::BufWriter::new(std::fs::File::create(path)?).write_all(SHIM)
}

/// The allocator that places objects, which the build script has made from `objects/`.
static OBJECTS: &[u8] = include_bytes!(env!("VARVE_LIVE_OBJECTS"));

/// Writes the allocator to `path`, for `LD_PRELOAD`.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write_objects(path: &Path) -> io::Result<()> {
    std::fs::write(path, OBJECTS)
}

/// The agent inside Java virtual machines, which the build script has made from the recorder's.
static AGENT: &[u8] = include_bytes!(env!("VARVE_LIVE_AGENT"));

/// Writes the agent to `path`, for `-agentpath` and `LD_PRELOAD`.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write_agent(path: &Path) -> io::Result<()> {
    std::fs::write(path, AGENT)
}

/// The agent that samples allocations of Java virtual machines, which the build script has made from `sites/`.
static SITES: &[u8] = include_bytes!(env!("VARVE_LIVE_SITES"));

/// Writes that agent to `path`, for `-agentpath`.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write_sites(path: &Path) -> io::Result<()> {
    std::fs::write(path, SITES)
}

/// `LD_PRELOAD` with this library before those that are preloaded anyway.
pub fn preload(library: &Path) -> OsString {
    before(library, std::env::var_os("LD_PRELOAD"))
}

/// The same of a command, which may preload others by a variable of its own.
pub fn preload_of(library: &Path, command: &Command) -> OsString {
    before(library, variable(command, "LD_PRELOAD"))
}

fn before(library: &Path, others: Option<OsString>) -> OsString {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|o| !o.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    preload
}

/// A variable that a command will have: its own, or the one that it inherits.
pub fn variable(command: &Command, name: &str) -> Option<OsString> {
    match command.get_envs().find(|(key, _)| *key == name) {
        Some((_, own)) => own.map(OsString::from),
        None => std::env::var_os(name),
    }
}
